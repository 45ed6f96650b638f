// Grants of CPUs and memory, through the API and the command line, as the kernel sees them: on any
// machine with NUMA nodes. Run by node --test.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { affinity, memoryPlacement } from '../../../dist/entries/diagnostics.js';
import { CpuSet, pin } from '../../../dist/index.js';
import * as kernel from './kernel-view.mjs';
import { stopNumaBalancing } from './numa-balancing.mjs';
import { newStateDir, open } from './state-folders.mjs';

const CLI = fileURLToPath(new URL('../../../packages/cli/dist/main.cjs', import.meta.url));
const MIB = 2 ** 20;
// More than malloc ever keeps from earlier use (its mmap threshold ends at 32 MiB): new pages.
const BYTES = 40 * MIB;
const OWN_CPUS = affinity();
const wholeNodes = kernel.wholeNodes();
const isolated = kernel.parseList(kernel.read('/sys/devices/system/cpu/isolated'));
const cpuNodes = kernel.nodeIds().filter((node) => kernel.cpusOfNode(node).length > 0);
const sizes = cpuNodes.map((node) => kernel.cpusOfNode(node).length);
const most = Math.max(...sizes);

stopNumaBalancing();

// A garbage collection while the process is measured would count against it.
const kept = [];

/** Where the kernel has the process and newly touched memory of a grant that it is pinned for. */
function checkInKernel(grant, result) {
  const cpus = grant.cpus.toArray();
  for (const mask of kernel.masks()) assert.deepEqual(mask, cpus);
  assert.ok(cpus.includes(kernel.processor()), `runs on CPU ${kernel.processor()}, not on ${grant.cpus}`);
  assert.deepEqual(
    [result.memory.applied, result.memory.mode, String(result.memory.nodes)],
    [true, 'preferred', String(grant.memoryNodes)],
  );
  const before = kernel.bytesByNode();
  const touched = new Uint8Array(BYTES).fill(1);
  kept.push(touched);
  const now = kernel.bytesByNode();
  const { byNode, source } = memoryPlacement(touched);
  assert.equal(source, 'move_pages');
  const nodes = grant.memoryNodes.toArray();
  assert.equal(
    nodes.reduce((sum, node) => sum + (byNode[node] ?? 0), 0),
    BYTES,
  );
  // The same without numalign: the process has grown there, and little elsewhere.
  const grown = (node) => (now.get(node) ?? 0) - (before.get(node) ?? 0);
  assert.ok(nodes.reduce((sum, node) => sum + grown(node), 0) > BYTES * 0.9);
  for (const node of kernel.nodeIds()) if (!nodes.includes(node)) assert.ok(grown(node) < BYTES * 0.1);
}

async function released(grant) {
  const { unmovable } = await grant.release();
  assert.deepEqual(unmovable, []);
}

describe('single-numa-node', () => {
  test('puts CPUs and memory on one node, on each node in its turn', async () => {
    const manager = await open({ reservedSystemCPUs: String(kernel.online()[0]) });
    const grants = [];
    const used = new Set();
    for (;;) {
      let grant;
      try {
        grant = await manager.acquire({ cpu: 2, memory: '64Mi', policy: 'single-numa-node' });
      } catch (error) {
        assert.ok(['ERR_TOPOLOGY_AFFINITY', 'ERR_INSUFFICIENT_CPUS'].includes(error.code), error);
        break;
      }
      grants.push(grant);
      const nodes = kernel.nodesOf(grant.cpus.toArray());
      assert.equal(nodes.length, 1);
      assert.deepEqual(grant.memory, [{ type: 'memory', bytes: 64 * MIB, nodes }]);
      // Each node once: pinning is slow in an emulated machine.
      if (used.has(nodes[0])) continue;
      used.add(nodes[0]);
      checkInKernel(grant, grant.pin());
      await grant.unpin();
    }
    const roomy = wholeNodes.filter(
      (node) =>
        kernel.cpusOfNode(node).filter((cpu) => cpu !== kernel.online()[0] && !isolated.includes(cpu))
          .length >= 2,
    );
    assert.deepEqual(
      [...used].sort((a, b) => a - b),
      roomy,
    );
    const all = grants.map(({ cpus }) => cpus);
    const union = all.reduce((one, other) => one.union(other), CpuSet.EMPTY);
    assert.equal(
      union.size,
      all.reduce((sum, { size }) => sum + size, 0),
      'a CPU was granted twice',
    );
    for (const grant of grants) await released(grant);
    pin(OWN_CPUS);
  });

  test('refuses what no node has free, also under restricted, and best-effort takes the fewest nodes', async () => {
    const reserved = cpuNodes.filter((_, i) => sizes[i] > 1).map((node) => kernel.cpusOfNode(node)[0]);
    const manager = await open({ reservedSystemCPUs: String(CpuSet.from(reserved)) });
    const before = manager.generation();
    for (const policy of ['single-numa-node', 'restricted']) {
      await assert.rejects(manager.acquire({ cpu: most, policy }), { code: 'ERR_TOPOLOGY_AFFINITY' });
    }
    assert.equal(manager.generation(), before);
    const grant = await manager.acquire({ cpu: most, policy: 'best-effort' });
    const nodes = kernel.nodesOf(grant.cpus.toArray());
    assert.deepEqual(grant.numaNodes.toArray(), nodes);
    assert.equal(nodes.length, 2);
    checkInKernel(grant, grant.pin());
    await released(grant);
    pin(OWN_CPUS);
  });
});

const twins = sizes.filter((size) => size === most).length >= 2;
test('restricted takes the fewest possible nodes, with CPUs and memory on the same ones', {
  skip: !twins && 'no two nodes as large',
}, async () => {
  const manager = await open({ reservedSystemCPUs: String(kernel.online()[0]) });
  const memory = Math.max(...kernel.nodeIds().map((node) => kernel.bytesOfNode(node))) + 64 * MIB;
  const grant = await manager.acquire({ cpu: most + 2, memory, policy: 'restricted' });
  const nodes = kernel.nodesOf(grant.cpus.toArray());
  assert.equal(nodes.length, 2);
  assert.deepEqual(grant.memory, [{ type: 'memory', bytes: memory, nodes }]);
  checkInKernel(grant, grant.pin());
  await released(grant);
  pin(OWN_CPUS);
});

describe('the command line', () => {
  const cli = (...args) => execFileSync(process.execPath, [CLI, ...args], { encoding: 'utf8' });

  test('runs a command on CPUs and memory of one node', () => {
    const options = ['--cpus', '2', '--memory', '64Mi', '--policy', 'single-numa-node', '--silent'];
    const script = 'echo $NUMALIGN_CPUS; cat /proc/self/status /proc/self/numa_maps';
    const answer = cli('run', ...options, '--state-dir', newStateDir(), '--', 'sh', '-c', script);
    const cpus = kernel.parseList(answer.split('\n', 1)[0]);
    assert.equal(cpus.length, 2);
    assert.deepEqual(kernel.maskIn(answer), cpus);
    const nodes = kernel.nodesOf(cpus);
    assert.equal(nodes.length, 1);
    assert.match(answer, new RegExp(`prefer(?: \\(many\\))?:${nodes[0]} .*heap`));
    // Only its own memory, not files that all processes share.
    for (const [, node] of answer.matchAll(/ heap .*? N(\d+)=/g)) assert.equal(Number(node), nodes[0]);
  });

  test('admits a pod, reports it, and gives it back', () => {
    const stateDir = newStateDir();
    const file = `${stateDir}.yaml`;
    const resources = '{ limits: { cpu: 2, memory: 64Mi } }';
    writeFileSync(
      file,
      `apiVersion: v1\nkind: Pod\nmetadata: { name: gateway, uid: a }\nspec: { containers: [{ name: one, resources: ${resources} }, { name: other, resources: ${resources} }] }\n`,
    );
    cli('admit', '-f', file, '--policy', 'single-numa-node', '--state-dir', stateDir);
    const { grants } = JSON.parse(cli('status', '--output', 'json', '--state-dir', stateDir));
    assert.equal(grants.length, 1);
    const nodes = kernel.nodesOf(kernel.parseList(grants[0].cpus));
    assert.deepEqual(grants[0].numaNodes, nodes.length === 1 ? String(nodes[0]) : nodes.join());
    cli('release', 'a', '--state-dir', stateDir);
    assert.deepEqual(JSON.parse(cli('status', '--output', 'json', '--state-dir', stateDir)).grants, []);
  });
});
