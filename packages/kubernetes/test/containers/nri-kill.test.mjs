// numalign-node is killed in the middle of each call of the runtime, and started again.
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { CpuSet } from 'numalign';
import { ALL, allCpusBut, EXCLUSIVE, until, useNodeFixture } from './support/node-fixture.mjs';

const MOMENTS = ['before', 'after'];

describe('numalign-node is killed, and started again', () => {
  const fixture = useNodeFixture();
  let shared;
  before(async () => {
    shared = await fixture.lastingPods.runPod('shared');
  });

  // The runtime carries out the answer to Synchronize after it has it.
  const hasCpus = (pod, cpus) =>
    until(`${pod.name} has CPUs ${cpus}`, async () => (await pod.allowed()).cpus === cpus);

  /**
   * One container has its own CPUs, on record and in the kernel, and no other container has them.
   */
  async function assertPlaced(pod) {
    const manager = await fixture.openManager({ readOnly: true });
    const [grant, ...more] = manager.grants();
    assert.deepEqual(more, []);
    assert.equal(grant.uid, pod.containerId);
    await until('its cgroup owns the grant', () => manager.grants()[0].owner.kind === 'cgroup');
    const cpus = String(grant.cpus);
    assert.equal(CpuSet.parse(cpus).size, 1);
    await hasCpus(pod, cpus);
    await hasCpus(shared, allCpusBut(cpus));
  }

  async function assertNothingPlaced() {
    const manager = await fixture.openManager({ readOnly: true });
    assert.deepEqual(manager.grants(), []);
    await hasCpus(shared, ALL.cpus);
  }

  async function dieAt(plugin, call, when, act) {
    await plugin.arm(call, when);
    const result = await act();
    assert.equal(await plugin.ended, 'SIGKILL');
    return result;
  }

  for (const when of MOMENTS) {
    for (const call of ['runPodSandbox', 'createContainer', 'postCreateContainer', 'startContainer']) {
      it(`${when} ${call}: the container has its CPUs then`, async () => {
        const plugin = await fixture.startProcess();
        const pod = await dieAt(plugin, call, when, () => fixture.pods.runPod('exclusive', EXCLUSIVE));
        await fixture.startProcess();
        await assertPlaced(pod);
      });
    }

    it(`${when} synchronize: a container keeps its CPUs`, async () => {
      const plugin = await fixture.startProcess();
      const pod = await fixture.pods.runPod('exclusive', EXCLUSIVE);
      const { cpus } = await pod.allowed();
      await plugin.kill();
      const dying = await fixture.startProcess({ death: { call: 'synchronize', when } });
      assert.equal(await dying.ended, 'SIGKILL');
      await fixture.startProcess();
      await assertPlaced(pod);
      assert.equal((await pod.allowed()).cpus, cpus);
    });

    it(`${when} updateContainer: a container has its CPUs again`, async () => {
      const plugin = await fixture.startProcess();
      const pod = await fixture.pods.runPod('exclusive', EXCLUSIVE);
      await dieAt(plugin, 'updateContainer', when, () => pod.update({ cpuset_cpus: ALL.cpus }));
      assert.equal((await pod.allowed()).cpus, ALL.cpus);
      await fixture.startProcess();
      await assertPlaced(pod);
    });

    for (const call of ['stopContainer', 'removeContainer', 'removePodSandbox']) {
      it(`${when} ${call}: the CPUs are given back`, async () => {
        const plugin = await fixture.startProcess();
        const pod = await fixture.pods.runPod('exclusive', EXCLUSIVE);
        await dieAt(plugin, call, when, () => pod.remove());
        await fixture.startProcess();
        await assertNothingPlaced();
      });
    }
  }

  describe('while containers come and go', () => {
    it('has found ended containers, and places new ones', async () => {
      const plugin = await fixture.startProcess();
      const first = await fixture.pods.runPod('first', EXCLUSIVE);
      await plugin.kill();
      await first.remove();
      const second = await fixture.pods.runPod('second', EXCLUSIVE);
      assert.equal((await second.allowed()).cpus, ALL.cpus);
      await fixture.startProcess();
      await assertPlaced(second);
    });

    it('reports those that cannot have their own CPUs', async () => {
      const pods = [];
      for (const name of ['one', 'two']) pods.push(await fixture.pods.runPod(name, EXCLUSIVE));
      const plugin = await fixture.startProcess();
      const manager = await fixture.openManager({ readOnly: true });
      const [grant, ...more] = manager.grants();
      assert.deepEqual(more, []);
      const placed = pods.find((pod) => pod.containerId === grant.uid);
      const other = pods.find((pod) => pod !== placed);
      await hasCpus(placed, String(grant.cpus));
      await hasCpus(other, allCpusBut(String(grant.cpus)));
      const report = `log error: numalign:default/${other.name}/main stays in the shared pool: `;
      assert.ok(
        plugin.lines.some((line) => line.startsWith(report)),
        plugin.lines.join('\n'),
      );
      await placed.remove();
      await other.remove();
      await plugin.kill();
    });
  });
});
