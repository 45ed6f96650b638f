// Hugepages of 2 MiB, created on each node separately. Root. Run by node --test.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { after, test } from 'node:test';
import { affinity, memoryPlacement } from '../../../dist/entries/diagnostics.js';
import { discover } from '../../../dist/entries/topology.js';
import { CpuSet, pin } from '../../../dist/index.js';
import * as kernel from './kernel-view.mjs';
import { open } from './state-folders.mjs';

const PAGE = 2 * 2 ** 20;
const OWN_CPUS = affinity();
const nodes = kernel.wholeNodes();
/** A different number for each. */
const pagesOf = (node) => 4 * (nodes.indexOf(node) + 1);
const free = () => nodes.map((node) => Number(kernel.read(kernel.hugepagesFile(node, 'free_hugepages'))));

for (const node of nodes) writeFileSync(kernel.hugepagesFile(node), String(pagesOf(node)));
after(() => {
  for (const node of nodes) writeFileSync(kernel.hugepagesFile(node), '0');
});

test('the machine has as many on each node as the kernel', async () => {
  const topology = await discover();
  for (const node of nodes) {
    const { hugepages } = topology.nodes.find(({ id }) => id === node);
    assert.deepEqual(
      hugepages.find(({ bytes }) => bytes === PAGE),
      { bytes: PAGE, count: pagesOf(node) },
    );
  }
});

test('a grant that only one node can hold is placed there with its CPUs', async () => {
  const manager = await open();
  const [most] = nodes.slice(-1);
  const bytes = pagesOf(most) * PAGE;
  const request = { cpu: 2, resources: { 'hugepages-2Mi': bytes }, policy: 'single-numa-node' };
  const grant = await manager.acquire(request);
  assert.deepEqual(kernel.nodesOf(grant.cpus.toArray()), [most]);
  assert.deepEqual(grant.memory, [{ type: 'hugepages-2Mi', bytes, nodes: [most] }]);
  await assert.rejects(manager.acquire(request), { code: 'ERR_TOPOLOGY_AFFINITY' });
  await grant.release();
});

test('a strict request goes to a node with enough free pages in the kernel, and is refused if none has them', async () => {
  const manager = await open({ policy: 'single-numa-node' });
  const [first, second] = nodes;
  const setPages = (node, pages) => writeFileSync(kernel.hugepagesFile(node), String(pages));
  const ask = (pages) => ({ cpu: 1, resources: { 'hugepages-2Mi': pages * PAGE } });
  // The manager counts all pages of the node.
  setPages(first, 0);
  const recorded = await manager.acquire(ask(pagesOf(first) - 1));
  assert.deepEqual(recorded.numaNodes.toArray(), [first]);
  assert.deepEqual(
    recorded.flags().map(({ code, nodes: where, free: bytes, expected }) => [code, where, bytes, expected]),
    [['HUGEPAGES_TAKEN', [first], 0, PAGE]],
  );
  await recorded.release();
  const strict = await manager.acquire({ ...ask(pagesOf(first) - 1), strictHugepages: true });
  assert.deepEqual(strict.numaNodes.toArray(), [second]);
  await strict.release();
  const last = nodes.at(-1);
  setPages(last, pagesOf(last) - 1);
  await assert.rejects(manager.acquire({ ...ask(pagesOf(last)), strictHugepages: true }), {
    code: 'ERR_TOPOLOGY_AFFINITY',
  });
  for (const node of [first, last]) setPages(node, pagesOf(node));
});

test('a buffer in them takes them from the node of the grant, and from no other', async () => {
  for (const node of [nodes[0], nodes.at(-1)]) {
    const manager = await open({ managedCPUs: String(CpuSet.from(kernel.cpusOfNode(node))) });
    const grant = await manager.acquire({
      cpu: 2,
      resources: { 'hugepages-2Mi': '8Mi' },
      policy: 'single-numa-node',
    });
    grant.pin({ threads: 'current' });
    const before = free();
    const buffer = grant.buffer('8Mi', { pageSize: '2Mi', node });
    buffer.fill(1);
    assert.deepEqual(memoryPlacement(buffer).byNode, { [node]: 4 * PAGE });
    assert.deepEqual(
      free().map((pages, i) => before[i] - pages),
      nodes.map((each) => (each === node ? 4 : 0)),
    );
    assert.match(
      readFileSync('/proc/self/numa_maps', 'utf8'),
      new RegExp(`huge .*N${node}=4 kernelpagesize_kB=2048`),
    );
    await grant.release();
    pin(OWN_CPUS);
  }
});

test('a buffer that needs more pages than the node has is refused, though others have more', async () => {
  const manager = await open({ managedCPUs: String(CpuSet.from(kernel.cpusOfNode(nodes[0]))) });
  const grant = await manager.acquire({ cpu: 2 });
  const before = free();
  assert.throws(() => grant.buffer((pagesOf(nodes[0]) + 1) * PAGE, { pageSize: '2Mi', node: nodes[0] }), {
    code: 'ERR_MEMORY_SHORTAGE',
  });
  assert.deepEqual(free(), before);
  await grant.release();
});
