// The memory nodes of the cgroups of containers, with cgroup v2 and then, in the same machine, with
// cpusets of v1: at least 4 NUMA nodes, root, and no other cgroups with cpusets. Run by node --test.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { affinity, memoryPlacement } from '../../../dist/entries/diagnostics.js';
import { CpuSet, openManager, pin } from '../../../dist/index.js';
import { mountCpusetV1, unmountCpusetV1 } from './cpuset-v1.mjs';
import * as kernel from './kernel-view.mjs';
import { stopNumaBalancing } from './numa-balancing.mjs';
import { newStateDir } from './state-folders.mjs';

const BYTES = 32 * 2 ** 20;
const MEMORY = '64Mi';
const UNIFIED = '/sys/fs/cgroup';
const memoryNodes = kernel.nodeIds().filter((node) => kernel.bytesOfNode(node) > 0);
const nodes = kernel.wholeNodes();
const memoryOnly = memoryNodes.find((node) => kernel.cpusOfNode(node).length === 0);
// Machines with such a node run only the tests that concern it.
const elsewhere = { skip: memoryOnly !== undefined && 'of other machines' };
const first = nodes[0];
const last = nodes.at(-1);
const cpusOf = (...list) => String(CpuSet.from(list.flatMap((node) => kernel.cpusOfNode(node))));
const put = (folder, file, text) => writeFileSync(join(folder, file), `${text}\n`);
const mems = (folder) => kernel.read(folder, 'cpuset.mems');

stopNumaBalancing();

/** A process that touches memory on request; the first pages of it on `node`. */
async function toucher(node) {
  const script = `const kept = [];
    process.stdin.on('data', () => { kept.push(Buffer.alloc(${BYTES}, 1)); process.stdout.write('.'); });
    process.stdout.write('.');`;
  const child = spawn('taskset', ['-c', cpusOf(node), process.execPath, '-e', script], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  children.add(child);
  await once(child.stdout, 'data');
  const touch = async () => {
    child.stdin.write('.');
    await once(child.stdout, 'data');
  };
  await touch();
  const on = (id) => kernel.bytesByNode(child.pid).get(id) ?? 0;
  assert.ok(on(node) >= BYTES, `${on(node)} bytes on node ${node}`);
  return { pid: child.pid, touch, on };
}

/** A process with hardly any memory. */
function idler() {
  const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
  children.add(child);
  return child.pid;
}

const container = (name, cpu, memory = MEMORY) => ({
  name,
  resources: { requests: { cpu, memory }, limits: { cpu, memory } },
});

const children = new Set();
const managers = new Set();
let pods = 0;
const admit = (manager, ...containers) => {
  const uid = `pod-${pods++}`;
  return manager.admit({ uid, name: uid, containers });
};

async function end(child) {
  child.kill('SIGKILL');
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
}

function removeAll(folder) {
  for (const each of readdirSync(folder, { withFileTypes: true }))
    if (each.isDirectory()) removeAll(join(folder, each.name));
  rmdirSync(folder);
}

/** Repeats a call that the kernel refuses while it still counts processes that have just ended. */
async function untilDone(step) {
  for (let tries = 0; ; tries++) {
    try {
      return step();
    } catch (error) {
      if (tries === 200) throw error;
      await pause(20);
    }
  }
}

/** The same for both versions; `mount`: the mount point of the hierarchy. */
function suite(version, mount) {
  const open = async (options = {}) => {
    const manager = await openManager({
      ...{ stateDir: newStateDir(), cgroupRoot: '/numalign-mems', managedCPUs: cpusOf(last) },
      ...{ sharedMember: false, cpuManagerReconcilePeriod: 0, policy: 'single-numa-node' },
      ...options,
    });
    managers.add(manager);
    return manager;
  };
  const groupOf = (pod, index = 0) => pod.memoryEnforcement[index].cgroup;

  afterEach(async () => {
    for (const child of children) await end(child);
    children.clear();
    for (const manager of managers) {
      for (const { uid } of manager.grants()) await manager.release(uid);
      manager.close();
    }
    managers.clear();
    for (const name of ['numalign-mems', 'outer'])
      if (existsSync(join(mount(), name))) await untilDone(() => removeAll(join(mount(), name)));
  });

  for (const migrate of [false, true]) {
    it(
      `memory of an attached process comes from the node of its hint, and its earlier memory ${migrate || version === 2 ? 'moves there' : 'stays'} with migrate: ${migrate}`,
      elsewhere,
      async () => {
        const manager = await open();
        const pod = await admit(manager, container('main', '2'));
        const { hint } = pod.containers[0];
        assert.deepEqual(hint.nodes.toArray(), [last]);
        assert.equal(pod.memoryEnforcement[0].reason, 'not-made');
        const { pid, touch, on } = await toucher(first);
        const before = [on(first), on(last)];
        const { memory } = await pod.container('main').attach(pid, { migrate });
        assert.deepEqual(
          [String(memory.nodes), memory.applied, memory.reason, memory.migrates],
          [String(last), true, null, migrate || version === 2],
        );
        assert.deepEqual(pod.memoryEnforcement, [memory]);
        assert.equal(mems(memory.cgroup), String(last));
        const had = [on(first), on(last)];
        const moved = [before[0] - had[0], had[1] - before[1]];
        // Besides the memory of the test there are the pages of the program.
        for (const bytes of moved)
          assert.equal(bytes >= BYTES, memory.migrates, `moved ${moved} of ${before}`);
        await touch();
        // The program gives some pages of its own back meanwhile.
        assert.ok(on(last) > had[1] + BYTES / 2, `${on(last)} after ${had[1]}`);
        assert.ok(on(first) < had[0] + BYTES / 2, `${on(first)} after ${had[0]}`);
        await pod.release();
        assert.equal(existsSync(memory.cgroup), false);
      },
    );
  }

  it('changes by other programs are undone by reconciling, and by the next opener', elsewhere, async () => {
    const stateDir = newStateDir();
    const manager = await open({ stateDir });
    const pod = await admit(manager, container('main', '2'));
    const pid = idler();
    await pod.container('main').attach(pid);
    const group = groupOf(pod);
    put(group, 'cpuset.mems', first);
    assert.deepEqual(
      pod.memoryEnforcement.map(({ nodes: now, applied, reason }) => [String(now), applied, reason]),
      [[String(first), false, 'changed']],
    );
    const { drifts } = await manager.reconcile();
    assert.deepEqual(
      drifts.map(({ kind, uid, repaired }) => [kind, uid, repaired]),
      [['memory', pod.uid, true]],
    );
    assert.equal(mems(group), String(last));
    assert.equal((await manager.reconcile()).writes, 0);
    put(group, 'cpuset.mems', first);
    await open({ stateDir });
    assert.equal(mems(group), String(last));
  });

  it('under the policy None nothing is written', elsewhere, async () => {
    const manager = await open({ memoryManagerPolicy: 'None' });
    const pod = await admit(manager, container('main', '2'));
    const pid = idler();
    const { memory } = await pod.container('main').attach(pid);
    assert.deepEqual([memory, pod.memoryEnforcement], [null, []]);
    const path = /:(?:cpuset|):(\/numalign-mems\/.*)$/m.exec(kernel.read(`/proc/${pid}/cgroup`))[1];
    assert.deepEqual(kernel.parseList(mems(join(mount(), path))), memoryNodes);
  });

  it(
    'nodes that the parent cgroup lacks are reported, and processes are attached nevertheless',
    elsewhere,
    async () => {
      const outer = join(mount(), 'outer');
      mkdirSync(outer);
      put(outer, 'cpuset.cpus', kernel.read('/sys/devices/system/cpu/online'));
      put(outer, 'cpuset.mems', first);
      const manager = await open({ cgroupRoot: '/outer/numalign', enforcement: 'cpuset' });
      const pod = await admit(manager, container('main', '2'));
      const pid = idler();
      const { memory } = await pod.container('main').attach(pid);
      assert.deepEqual(
        [memory?.applied, memory?.reason],
        [false, pod.memoryEnforcement[0].cgroup ? 'outside-parent' : 'no-cgroup'],
      );
      assert.deepEqual((await manager.reconcile()).drifts, []);
    },
  );

  it(
    'a grant that grows beyond a node has both nodes, and each container of a pod has its own',
    elsewhere,
    async () => {
      const manager = await open({
        managedCPUs: cpusOf(...nodes.slice(-3)),
        policy: 'best-effort',
      });
      const grant = await manager.acquire({ cpu: 2, memory: BYTES });
      const [only] = grant.memoryNodes;
      const pid = idler();
      const { memory } = await grant.attach(pid);
      assert.equal(mems(memory.cgroup), String(only));
      await grant.resize({ memory: Math.round(kernel.bytesOfNode(last) * 1.2), noticeMs: 0 });
      assert.deepEqual(grant.memoryNodes.toArray().length, 2);
      assert.equal(mems(memory.cgroup), String(grant.memoryNodes));
      assert.deepEqual(
        grant.memoryEnforcement.map(({ wanted, applied }) => [String(wanted), applied]),
        [[String(grant.memoryNodes), true]],
      );
      await grant.release();

      const pod = await admit(manager, container('a', '4'), container('b', '4'));
      for (const { name, hint } of pod.containers) {
        const member = idler();
        const bound = (await pod.container(name).attach(member)).memory;
        assert.equal(mems(bound.cgroup), String(hint.nodes));
      }
      assert.notEqual(mems(groupOf(pod, 0)), mems(groupOf(pod, 1)));
      const all = await manager.grant(pod.uid).attach(idler());
      assert.deepEqual([all.memory.container, all.memory.applied], [null, true]);
      assert.deepEqual(
        kernel.parseList(mems(all.memory.cgroup)),
        pod.containers.flatMap(({ hint }) => hint.nodes.toArray()).sort(),
      );
    },
  );

  if (version === 1)
    it('pin() binds the process too, and only strict moves its pages', elsewhere, async () => {
      const own = affinity();
      pin(cpusOf(first), { threads: 'current' });
      const buffer = new Uint8Array(BYTES).fill(1);
      assert.deepEqual(memoryPlacement(buffer).byNode, { [first]: BYTES });
      pin(own);
      const manager = await open();
      const grant = await manager.acquire({ cpu: 2, memory: MEMORY });
      grant.pin();
      const [{ cgroup, applied }] = grant.memoryEnforcement;
      assert.deepEqual([applied, mems(cgroup)], [true, String(last)]);
      assert.deepEqual(memoryPlacement(buffer).byNode, { [first]: BYTES });
      grant.pin({ memory: 'strict' });
      assert.deepEqual(memoryPlacement(buffer).byNode, { [last]: BYTES });
      // Whatever other memory moves in.
      assert.equal((await grant.attach(idler())).memory.migrates, true);
      await grant.unpin();
      assert.equal(mems(cgroup), String(last));
      await grant.release();
      pin(own);
    });

  it('a memory-only node is bound if memory is booked on it', {
    skip: memoryOnly === undefined && 'no such node',
  }, async () => {
    const reservedMemory = nodes.map((numaNode) => ({
      numaNode,
      limits: { memory: kernel.bytesOfNode(numaNode) - BYTES },
    }));
    const manager = await open({ reservedMemory, policy: 'best-effort', memoryTiers: 'any' });
    const pod = await admit(manager, container('main', '2', String(4 * BYTES)));
    const pid = idler();
    const { memory } = await pod.container('main').attach(pid);
    assert.ok(memory.wanted.has(memoryOnly) && memory.applied, JSON.stringify(memory));
    assert.equal(mems(memory.cgroup), String(memory.wanted));
  });

  if (version === 1)
    it("the kernel's refusal is reported, and on record as long as it lasts", elsewhere, async () => {
      const stateDir = newStateDir();
      const manager = await open({ stateDir });
      const pod = await admit(manager, container('main', '2'));
      const pid = idler();
      await pod.container('main').attach(pid);
      const group = groupOf(pod);
      put(group, 'cpuset.mems', first);
      const root = join(mount(), 'numalign-mems');
      const exclusive = join(root, 'exclusive');
      mkdirSync(exclusive);
      put(exclusive, 'cpuset.mems', last);
      put(root, 'cpuset.mem_exclusive', 1);
      put(exclusive, 'cpuset.mem_exclusive', 1);
      const { drifts } = await manager.reconcile();
      assert.deepEqual(
        drifts.map(({ kind, repaired }) => [kind, repaired]),
        [['memory', false]],
      );
      assert.match(drifts[0].what, /memory nodes/);
      assert.equal(pod.memoryEnforcement[0].reason, 'EINVAL');
      assert.match(kernel.read(stateDir, 'state.json'), /"memory":\{"main":"EINVAL"\}/);
      rmdirSync(exclusive);
      const { memory } = await pod.container('main').attach(pid);
      assert.deepEqual([memory.applied, memory.reason], [true, null]);
      put(group, 'cpuset.mems', first);
      assert.equal(pod.memoryEnforcement[0].reason, 'changed');
    });
}

describe('with cgroup v2', () => suite(2, () => UNIFIED));

describe('with cpusets of cgroup v1', () => {
  let point;
  before(async () => {
    point = await mountCpusetV1();
  });
  after(() => unmountCpusetV1(point));
  suite(1, () => point);
});
