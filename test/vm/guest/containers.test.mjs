// Containers of a real containerd and runc in a machine of 4 NUMA nodes with cgroup v2, placed by
// numalign-node under each policy that refuses something or nothing. Run by node --test, as root.
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { CpuSet, NodeSet } from '../../../dist/index.js';
import {
  guaranteed,
  NodeFixture,
  until,
} from '../../../packages/kubernetes/test/containers/support/node-fixture.mjs';
import * as kernel from './kernel-view.mjs';

const MOUNT = '/sys/fs/cgroup';
// Of one page each, the pages of a variable that the container's shell keeps.
const PAGES = 1024;
const FILL = `x=$(head -c ${PAGES * 4096} /dev/zero | tr '\\0' x); : > /seen/full`;
const WAIT = 'trap exit TERM; sleep infinity & wait';
const SECOND = 1000;

const nodes = kernel.wholeNodes();
const cpusOf = (...list) => CpuSet.from(list.flatMap((node) => kernel.cpusOfNode(node)));
const foldersIn = (folder) =>
  readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);

/**
 * Reserves the nodes before `first`, and one CPU of each other: no node has room for as many CPUs as
 * it has, though it would be the only one needed.
 */
const reservedBefore = (first) =>
  CpuSet.from(nodes.flatMap((node) => kernel.cpusOfNode(node).slice(0, node < first ? undefined : 1)));

/** What the kernel has in the files of a container's cpuset. */
async function cpusetOf(pod) {
  const folder = await pod.cpusetFolder();
  return { cpus: kernel.read(folder, 'cpuset.cpus'), mems: kernel.read(folder, 'cpuset.mems') };
}

const groupsBefore = foldersIn(MOUNT);
let fixture;
before(async () => {
  fixture = await NodeFixture.start();
});
after(async () => {
  await fixture.close();
  assert.deepEqual(foldersIn(MOUNT), groupsBefore);
});

for (const [policy, first] of [
  ['best-effort', nodes[2]],
  ['restricted', nodes[1]],
  ['single-numa-node', nodes[0]],
]) {
  describe(`containers under the policy ${policy}`, () => {
    const reserved = reservedBefore(first);
    const whole = kernel.cpusOfNode(first).length;
    let manager;
    let shared;
    let pod;
    let decided;
    before(async () => {
      fixture.begin();
      const options = { topologyManagerPolicy: policy, reservedSystemCPUs: String(reserved) };
      ({ manager } = await fixture.startNode(options));
      shared = await fixture.pods.runPod('shared');
      pod = await fixture.pods.runPod('aligned', { resources: guaranteed(2), command: `${FILL}; ${WAIT}` });
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

    it('have them in the files of their cgroup, and in what these amount to', async () => {
      assert.deepEqual(await cpusetOf(pod), { cpus: String(decided.cpus), mems: String(decided.hint.nodes) });
      const folder = await pod.cpusetFolder();
      assert.equal(kernel.read(folder, 'cpuset.cpus.effective'), String(decided.cpus));
      assert.equal(kernel.read(folder, 'cpuset.mems.effective'), String(first));
    });

    it('have all their memory on that node', async () => {
      await pod.waitFor('full');
      const pages = kernel.anonymousPages(await pod.pid());
      assert.deepEqual([...pages.keys()], [first]);
      assert.ok(pages.get(first) > PAGES, `${pages.get(first)} pages`);
    });

    it('keep the shared ones off their CPUs until they are stopped', async () => {
      const pool = cpusOf(...nodes).difference(decided.cpus);
      const seen = await shared.seen();
      assert.equal(seen.cpus, String(cpusOf(...nodes)));
      assert.equal((await shared.allowed()).cpus, String(pool));
      assert.equal((await cpusetOf(shared)).cpus, String(pool));
      const folder = await pod.cpusetFolder();
      await pod.stop();
      assert.equal((await cpusetOf(shared)).cpus, seen.cpus);
      assert.deepEqual([(await shared.allowed()).cpus, manager.grants()], [seen.cpus, []]);
      assert.equal(existsSync(folder), false);
    });

    if (policy === 'best-effort')
      it('are admitted across nodes where none has room, and have both nodes’ memory', async () => {
        const wide = await fixture.pods.runPod('wide', { resources: guaranteed(whole) });
        const [{ cpus, hint, memory }] = manager.pod(wide.containerId).containers;
        const taken = kernel.nodesOf(cpus.toArray());
        assert.deepEqual([cpus.size, taken.length, hint.preferred], [whole, 2, false]);
        const seen = await wide.seen();
        const mems = String(NodeSet.from(memory.flatMap((block) => block.nodes)));
        assert.deepEqual([seen.cpus, seen.mems], [String(cpus), mems]);
        assert.deepEqual(await cpusetOf(wide), { cpus: String(cpus), mems });
        await wide.remove();
      });
    else
      it('are refused where no node has room, in the words of the explanation', async () => {
        const groups = foldersIn(join(MOUNT, fixture.runtime.cgroupParent));
        const request = { cpu: whole, memory: '64Mi' };
        const { message } = await manager.acquire(request).catch((error) => error);
        const rejection = await fixture.pods
          .runPod('wide', { resources: guaranteed(whole) })
          .catch((error) => error);
        console.log(message, '\n', rejection.message);
        assert.deepEqual(manager.grants(), []);
        assert.deepEqual(foldersIn(join(MOUNT, fixture.runtime.cgroupParent)), groups);
      });

    it('leave no cgroups and no grants once they are removed', async () => {
      await pod.remove();
      await shared.remove();
      assert.deepEqual(foldersIn(join(MOUNT, fixture.runtime.cgroupParent)), ['runtime']);
      assert.deepEqual(manager.grants(), []);
    });
  });
}

describe('a container whose plugin has been killed', () => {
  before(() => fixture.begin());
  after(() => fixture.end());

  it('keeps its grant until its cgroup is empty: the kernel tells other processes of it', async (test) => {
    const plugin = await fixture.startProcess();
    // It would find out by its own rounds, too.
    const manager = await fixture.openManager({ cpuManagerReconcilePeriod: 0 });
    const shared = await fixture.pods.runPod('shared');
    const pod = await fixture.pods.runPod('lasting', { resources: guaranteed(2) });
    await until('the cgroup owns the grant', () => manager.grants()[0]?.owner.kind === 'cgroup');
    await plugin.kill();
    const [{ uid, alive, cpus }] = manager.grants();
    assert.deepEqual([uid, alive], [pod.containerId, true]);
    const gone = new Promise((resolve) => {
      manager.on('change', () => manager.grants().length === 0 && resolve());
    });
    const pid = await pod.pid();
    const begin = performance.now();
    process.kill(pid, 'SIGKILL');
    await gone;
    const ms = performance.now() - begin;
    test.diagnostic(`the grant was gone after ${Math.round(ms)} ms`);
    assert.ok(ms < SECOND, `${ms} ms`);
    assert.ok(!CpuSet.parse((await shared.allowed()).cpus).intersection(cpus).size);
    await fixture.startNode();
    await until(
      'the shared one is wide again',
      async () => (await shared.allowed()).cpus === String(cpusOf(...nodes)),
    );
  });
});
