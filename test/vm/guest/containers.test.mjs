// Containers of a real containerd and runc, placed by numalign-node, in a machine of 4 NUMA nodes
// with cgroup v2. Run by node --test, as root.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { CpuSet } from '../../../dist/index.js';
import {
  guaranteed,
  NodeFixture,
  until,
} from '../../../packages/kubernetes/test/containers/support/node-fixture.mjs';
import { Pods } from '../../../packages/kubernetes/test/containers/support/pods.mjs';
import * as kernel from './kernel-view.mjs';

const MOUNT = '/sys/fs/cgroup';
// The container's shell keeps a variable of this many pages.
const PAGES = 1024;
const FILL = `x=$(head -c ${PAGES * 4096} /dev/zero | tr '\\0' x); : > /seen/full`;
const WAIT = 'trap exit TERM; sleep infinity & wait';
// States of runtime.v1.ContainerState.
const EXITED = 2;
// Emulation is slow: an event of the end proves more than its time.
const PATIENCE_MS = 30_000;

const nodes = kernel.wholeNodes();
const all = CpuSet.from(kernel.online());
const foldersIn = (folder) =>
  readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);

/**
 * The nodes before `first`, and one CPU of each other node: then as many CPUs as a node has fit
 * into none of these, and only alignment puts them on one node.
 */
const reservedBefore = (first) =>
  CpuSet.from(nodes.flatMap((node) => kernel.cpusOfNode(node).slice(0, node < first ? undefined : 1)));

/** The kernel's values in the cpuset files of a container. */
async function cpusetOf(container) {
  const folder = await container.cpusetFolder();
  return { cpus: kernel.read(folder, 'cpuset.cpus'), mems: kernel.read(folder, 'cpuset.mems') };
}

const groupsBefore = foldersIn(MOUNT);
const fixture = new NodeFixture();
let pods;
let shared;
let pod;
const groups = () => foldersIn(join(MOUNT, fixture.runtime.cgroupParent));

before(async () => {
  await fixture.open({ nriTimeout: '60s' });
  pods = new Pods(fixture.runtime);
  shared = await pods.runPod('shared');
});
after(async () => {
  await pods.close();
  assert.deepEqual(groups(), ['runtime']);
  await fixture.close();
  assert.deepEqual(foldersIn(MOUNT), groupsBefore);
});

/** A container in a pod that all tests share: to create one takes as long as a test. */
async function run(options) {
  if (!pod) {
    pod = await pods.runPod('exclusive', options);
    return;
  }
  await pod.removeContainer();
  await pod.createContainer(options);
  await pod.start();
}

for (const [policy, first] of [
  ['best-effort', nodes[0]],
  ['restricted', nodes[1]],
  ['single-numa-node', nodes[2]],
]) {
  describe(`containers under the policy ${policy}`, () => {
    const whole = kernel.cpusOfNode(first).length;
    let manager;
    let decided;
    before(async () => {
      fixture.begin();
      const reserved = String(reservedBefore(first));
      ({ manager } = await fixture.startNode({
        policy,
        reservedSystemCPUs: reserved,
      }));
      await run({ resources: guaranteed(2), command: `${FILL}; ${WAIT}` });
      [decided] = manager.pod(pod.containerId).containers;
    });
    after(() => fixture.end());

    it('are born on the CPUs and the memory node of their hint', async () => {
      assert.deepEqual([decided.hint.nodes.toArray(), decided.hint.preferred], [[first], true]);
      const { cpus, mems, env } = await pod.seen();
      assert.deepEqual([cpus, mems], [String(decided.cpus), String(first)]);
      assert.deepEqual(kernel.nodesOf(kernel.parseList(cpus)), [first]);
      assert.equal(CpuSet.parse(cpus).size, 2);
      assert.equal(env.NUMALIGN_CPUS, cpus);
    });

    it('have both in the files of their cgroup, in force in the kernel', async () => {
      assert.deepEqual(await cpusetOf(pod), {
        cpus: String(decided.cpus),
        mems: String(decided.hint.nodes),
      });
      const folder = await pod.cpusetFolder();
      assert.equal(kernel.read(folder, 'cpuset.cpus.effective'), String(decided.cpus));
      assert.equal(kernel.read(folder, 'cpuset.mems.effective'), String(first));
    });

    it('have all their memory on that node', async () => {
      await pod.waitFor('full');
      const pid = await pod.pid();
      // Small pages are counted on no node while the kernel merges them into a large one.
      const byNode = await until(`${PAGES} pages`, () => {
        const pages = kernel.anonymousPages(pid);
        return [...pages.values()].reduce((sum, count) => sum + count, 0) > PAGES && pages;
      });
      assert.deepEqual([...byNode.keys()], [first]);
    });

    it('keep the shared container off their CPUs until they stop, and leave no cgroup', async () => {
      const pool = String(all.difference(decided.cpus));
      assert.equal((await shared.seen()).cpus, String(all));
      assert.equal((await shared.allowed()).cpus, pool);
      assert.equal((await cpusetOf(shared)).cpus, pool);
      const folder = await pod.cpusetFolder();
      await pod.stop();
      assert.deepEqual([(await cpusetOf(shared)).cpus, manager.grants()], [String(all), []]);
      await pod.removeContainer();
      assert.equal(existsSync(folder), false);
    });

    if (policy === 'best-effort')
      it('are admitted across nodes if no single node has room', async () => {
        await run({ resources: guaranteed(whole) });
        const [{ cpus, hint }] = manager.pod(pod.containerId).containers;
        const taken = kernel.nodesOf(cpus.toArray());
        assert.deepEqual([cpus.size, taken.length, hint.preferred], [whole, 2, false]);
        assert.deepEqual(hint.nodes.toArray(), taken);
        const expected = { cpus: String(cpus), mems: String(hint.nodes) };
        const seen = await pod.seen();
        assert.deepEqual({ cpus: seen.cpus, mems: seen.mems }, expected);
        assert.deepEqual(await cpusetOf(pod), expected);
      });
    else
      it('are refused if no node has room, and the client learns why', async () => {
        const before = groups();
        const request = { cpu: whole, memory: '64Mi' };
        const { message } = await manager.acquire(request).catch((error) => error);
        await assert.rejects(run({ resources: guaranteed(whole) }), (error) => {
          assert.ok(error.message.endsWith(message), `${error.message}\nnot\n${message}`);
          return true;
        });
        assert.match(message, new RegExp(`best-effort would admit it now, ${policy} does not`));
        assert.deepEqual([manager.grants(), groups()], [[], before]);
        assert.equal((await shared.allowed()).cpus, String(all));
      });
  });
}

describe('a container whose plugin has been killed', () => {
  before(() => fixture.begin());
  after(() => fixture.end());

  it('keeps its grant until it ends, which the kernel reports to other processes', async (test) => {
    const options = { cpuManagerReconcilePeriod: 0 };
    const plugin = await fixture.startProcess(options);
    const manager = await fixture.openManager(options);
    await run({ resources: guaranteed(2) });
    await until('the cgroup owns the grant', () => manager.grants()[0]?.owner.kind === 'cgroup');
    await plugin.kill();
    const [{ uid, alive, cpus }] = manager.grants();
    assert.deepEqual([uid, alive], [pod.containerId, true]);
    const pid = await pod.pid();
    const begin = performance.now();
    process.kill(pid, 'SIGKILL');
    // Nothing polls: only an event of the kernel makes a change.
    while (manager.grants().length > 0)
      await once(manager, 'change', { signal: AbortSignal.timeout(PATIENCE_MS) });
    test.diagnostic(`the grant had ended after ${Math.round(performance.now() - begin)} ms`);
    assert.equal((await shared.allowed()).cpus, String(all.difference(cpus)));
    const request = { container_id: pod.containerId };
    const isOver = async () => (await pods.call('ContainerStatus', request)).status.state === EXITED;
    await until('the runtime has noticed', isOver, PATIENCE_MS);
    await fixture.startNode(options);
    const isWide = async () => (await shared.allowed()).cpus === String(all);
    await until('the shared one is on all CPUs', isWide, PATIENCE_MS);
  });
});
