// Memory of grants on a machine with several nodes that have memory: policies, migration, buffers.
// Root. Run by node --test.
import assert from 'node:assert/strict';
import { release } from 'node:os';
import { test } from 'node:test';
import { affinity, memoryPlacement } from '../../../dist/entries/diagnostics.js';
import { CpuSet, pin } from '../../../dist/index.js';
import * as kernel from './kernel-view.mjs';
import { stopNumaBalancing } from './numa-balancing.mjs';
import { open } from './state-folders.mjs';

// More than malloc ever keeps from earlier use (its mmap threshold ends at 32 MiB): new pages.
const BYTES = 40 * 2 ** 20;
const OWN_CPUS = affinity();
const wholeNodes = kernel.wholeNodes();
const [first, last] = [wholeNodes[0], wholeNodes.at(-1)];
const where = (buffer) => memoryPlacement(buffer).byNode;
const touched = () => new Uint8Array(BYTES).fill(1);

stopNumaBalancing();

/** A grant of CPUs of these nodes, pinned for as long as `body` lasts. */
async function pinnedOn(nodes, options, body) {
  const managedCPUs = String(CpuSet.from(nodes.flatMap((node) => kernel.cpusOfNode(node))));
  const manager = await open({ managedCPUs });
  // On several nodes, more CPUs than one of them has.
  const grant = await manager.acquire({ cpu: nodes.length > 1 ? kernel.cpusOfNode(nodes[0]).length + 1 : 2 });
  assert.deepEqual(kernel.nodesOf(grant.cpus.toArray()), nodes);
  try {
    return await body(grant.pin({ threads: 'current', ...options }), grant);
  } finally {
    await grant.release();
    pin(OWN_CPUS);
  }
}

test('bound memory lies on the node, whichever it is, and the policy ends with the grant', async () => {
  for (const node of [first, last]) {
    await pinnedOn([node], { memory: 'bind' }, ({ memory }) => {
      assert.deepEqual([memory.mode, String(memory.nodes), memory.applied], ['bind', String(node), true]);
      assert.deepEqual(where(touched()), { [node]: BYTES });
    });
  }
  pin(String(CpuSet.from(kernel.cpusOfNode(last))));
  assert.deepEqual(where(touched()), { [last]: BYTES });
  pin(OWN_CPUS);
});

test('interleaved memory lies on all nodes in equal parts', async () => {
  await pinnedOn([first, last], { memory: 'interleave' }, ({ memory }) => {
    assert.deepEqual([memory.mode, memory.nodes.toArray()], ['interleave', [first, last]]);
    const byNode = where(touched());
    assert.deepEqual(Object.keys(byNode).map(Number), [first, last]);
    for (const bytes of Object.values(byNode))
      assert.ok(Math.abs(bytes - BYTES / 2) < BYTES / 10, JSON.stringify(byNode));
  });
});

test('memory of a running process moves to the nodes of its grant, if the options say so', async () => {
  const buffer = await pinnedOn([first], { memory: 'bind' }, touched);
  assert.deepEqual(where(buffer), { [first]: BYTES });
  await pinnedOn([last], {}, () => assert.deepEqual(where(buffer), { [first]: BYTES }));
  await pinnedOn([last], { migrate: true }, ({ memory }) => {
    assert.equal(memory.migrated.reason, null);
    assert.deepEqual(where(buffer), { [last]: BYTES });
    const sums = kernel.bytesByNode();
    const elsewhere = wholeNodes
      .filter((node) => node !== last)
      .reduce((sum, node) => sum + (sums.get(node) ?? 0), 0);
    // Files that other processes share may stay.
    assert.ok(sums.get(last) > elsewhere, JSON.stringify([...sums]));
  });
});

test('a strict buffer lies on the requested node, whatever the policy is', async () => {
  await pinnedOn([first, last], { memory: 'none' }, (_, grant) => {
    for (const node of [first, last]) {
      const buffer = grant.buffer(BYTES, { node });
      assert.deepEqual(where(buffer), { [node]: BYTES });
    }
    assert.throws(() => grant.buffer(BYTES, { node: 63 }), { code: 'ERR_INVALID_OPTION' });
  });
});

const memoryOnly = kernel
  .nodeIds()
  .filter((node) => kernel.cpusOfNode(node).length === 0 && kernel.bytesOfNode(node) > 0);
/** Options that leave this much of each node with CPUs. */
const leaving = (bytes) => ({
  reservedMemory: wholeNodes.map((numaNode) => ({
    numaNode,
    limits: { memory: kernel.bytesOfNode(numaNode) - bytes },
  })),
});

test('a memory-only node is booked if no other has room and all count alike, and holds buffers', {
  skip: memoryOnly.length === 0 && 'no such node',
}, async () => {
  const manager = await open(leaving(BYTES));
  await assert.rejects(manager.acquire({ cpu: 2, memory: 4 * BYTES, policy: 'best-effort' }), {
    code: 'ERR_INSUFFICIENT_MEMORY',
  });
  await assert.rejects(manager.acquire({ cpu: 2, memory: 4 * BYTES, policy: 'single-numa-node' }), {
    code: 'ERR_TOPOLOGY_AFFINITY',
  });
  const grant = await manager.acquire({
    ...{ cpu: 2, memory: 4 * BYTES },
    ...{ policy: 'best-effort', memoryTiers: 'any' },
  });
  const [node] = memoryOnly;
  assert.ok(grant.memoryNodes.has(node), `booked on ${grant.memoryNodes}`);
  assert.deepEqual(where(grant.buffer(BYTES, { node })), { [node]: BYTES });
  await grant.release();
});

const tiers = new Map(memoryOnly.map((node) => [kernel.tierOf(node), node]));
const needs = (tier) => ({ skip: !tiers.has(tier) && `no node of ${tier}` });

/** A grant of memory of some tiers, and its CPUs where its memory is, for as long as `body` lasts. */
async function grantOf(options, size, tier, body) {
  const manager = await open(options);
  const memory = { size, tier };
  const grant = await manager.acquire({ cpu: 2, memory, policy: 'single-numa-node' });
  try {
    await body(grant, manager);
  } finally {
    await grant.release();
    pin(OWN_CPUS);
  }
}

for (const tier of ['hbm', 'cxl'])
  test(`memory of ${tier} lies on its node: policy, new memory and buffers`, needs(tier), async () => {
    const node = tiers.get(tier);
    await grantOf({}, 4 * BYTES, tier, (grant, { topology }) => {
      assert.equal(topology.nodes.find(({ id }) => id === node).tier, tier);
      assert.deepEqual(grant.memory, [{ nodes: [node], type: 'memory', bytes: 4 * BYTES }]);
      assert.deepEqual(kernel.nodesOf(grant.cpus.toArray()), [kernel.nearestNode(node, wholeNodes)]);
      const { memory } = grant.pin({ threads: 'current' });
      assert.deepEqual([memory.mode, memory.nodes.toArray(), memory.applied], ['preferred', [node], true]);
      assert.deepEqual(where(touched()), { [node]: BYTES });
      assert.deepEqual(where(grant.buffer(BYTES)), { [node]: BYTES });
    });
  });

test('memory that overflows to CXL lies on DRAM first, and is on both as booked', needs('cxl'), async () => {
  const node = tiers.get('cxl');
  const near = kernel.nearestNode(node, wholeNodes);
  await grantOf(leaving(BYTES), 3 * BYTES, ['dram', 'cxl'], (grant) => {
    assert.deepEqual(grant.memory, [
      { nodes: [near], type: 'memory', bytes: BYTES },
      { nodes: [node], type: 'memory', bytes: 2 * BYTES },
    ]);
    for (const { nodes, bytes } of grant.memory)
      assert.deepEqual(where(grant.buffer(bytes, { node: nodes[0] })), { [nodes[0]]: bytes });
    grant.pin({ threads: 'current' });
    assert.deepEqual(where(touched()), { [near]: BYTES });
  });
});

test('memory of HBM before DRAM lies on HBM first', needs('hbm'), async () => {
  const node = tiers.get('hbm');
  const near = kernel.nearestNode(node, wholeNodes);
  const bytes = kernel.bytesOfNode(node);
  await grantOf({}, bytes + BYTES, ['hbm', 'dram'], (grant) => {
    assert.deepEqual(grant.memory, [
      { nodes: [node], type: 'memory', bytes },
      { nodes: [near], type: 'memory', bytes: BYTES },
    ]);
    grant.pin({ threads: 'current' });
    assert.deepEqual(where(touched()), { [node]: BYTES });
    assert.deepEqual(where(grant.buffer(BYTES)), { [node]: BYTES });
  });
});

test('weighted interleaving is in force from Linux 6.9, and is said not to be before', async () => {
  const [major, minor] = release().split('.').map(Number);
  const isKnown = major > 6 || (major === 6 && minor >= 9);
  await pinnedOn([first, last], { memory: 'weighted-interleave' }, ({ memory }) => {
    const expected = isKnown ? ['weighted-interleave', true, null] : ['interleave', false, 'unweighted'];
    assert.deepEqual([memory.mode, memory.applied, memory.reason], expected);
    assert.deepEqual(Object.keys(where(touched())).map(Number), [first, last]);
  });
});
