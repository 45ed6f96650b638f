// Containers of a kubelet's pods that end and start again, as another container of the same name.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, it } from 'node:test';
import { ALL, EXCLUSIVE, guaranteed, until, useNodeFixture } from './support/node-fixture.mjs';

// CRI's ContainerState.
const EXITED = 2;

describe('A container that starts again in its pod', () => {
  const fixture = useNodeFixture();

  /** In a cgroup of the pod's own, as a kubelet runs it. */
  function runPod(name, { uid = randomUUID(), ...options } = EXCLUSIVE) {
    return fixture.pods.runPod(name, {
      uid,
      cgroupParent: `${fixture.runtime.cgroupParent}/pod${uid}`,
      ...options,
    });
  }

  async function startAgain(pod) {
    await pod.createContainer(EXCLUSIVE);
    await pod.start();
    return pod.seen();
  }

  const isEnded = (pod) =>
    until('the container has ended', async () => {
      const { status } = await fixture.pods.call('ContainerStatus', { container_id: pod.containerId });
      return status.state === EXITED;
    });

  it('after a crash has the CPUs that it had, and none else got them meanwhile', async () => {
    const { manager } = await fixture.startNode();
    const pod = await runPod('crashing');
    const { cpus } = await pod.seen();
    process.kill(await pod.pid(), 'SIGKILL');
    await isEnded(pod);
    const shared = await fixture.pods.runPod('shared');
    assert.notEqual((await shared.allowed()).cpus, ALL.cpus);
    const other = { resources: guaranteed(Number(ALL.cpus.split('-')[1])) };
    await assert.rejects(fixture.pods.runPod('other', other));
    assert.equal((await startAgain(pod)).cpus, cpus);
    assert.deepEqual(
      manager.grants().map(({ uid, cpus: held }) => [uid, `${held}`]),
      [[`${pod.uid}.main`, cpus]],
    );
    await pod.remove();
    await until('the grant is given back', () => manager.grants().length === 0);
    await until('the shared one is back', async () => (await shared.allowed()).cpus === ALL.cpus);
  });

  it('while no plugin runs has them back as soon as one does', async () => {
    const plugin = await fixture.startProcess();
    const pod = await runPod('alone');
    const { cpus } = await pod.seen();
    await plugin.kill();
    process.kill(await pod.pid(), 'SIGKILL');
    await isEnded(pod);
    assert.equal((await startAgain(pod)).cpus, ALL.cpus);
    const { manager } = await fixture.startNode();
    // The runtime applies the answer to its first question a moment later.
    await until('it is back on its CPUs', async () => (await pod.allowed()).cpus === cpus);
    assert.equal(manager.grants().length, 1);
  });

  it('is not kept a place for once its sandbox has ended', async () => {
    const { manager } = await fixture.startNode();
    const pod = await runPod('stopped');
    await fixture.pods.call('StopPodSandbox', { pod_sandbox_id: pod.sandboxId });
    await until('the grant is given back', () => manager.grants().length === 0);
  });

  it('is not kept a place for by an earlier sandbox, which has ended while no plugin ran', async () => {
    const plugin = await fixture.startProcess();
    const earlier = await runPod('earlier');
    await plugin.kill();
    await fixture.pods.call('StopPodSandbox', { pod_sandbox_id: earlier.sandboxId });
    const later = await runPod('later', { ...EXCLUSIVE, uid: earlier.uid });
    const { manager } = await fixture.startNode();
    assert.equal(manager.grants().length, 1);
    await fixture.pods.call('StopPodSandbox', { pod_sandbox_id: later.sandboxId });
    await until('the grant is given back', () => manager.grants().length === 0);
  });

  it('is not kept a place for once its sandbox has ended while no plugin runs', async () => {
    const plugin = await fixture.startProcess();
    const pod = await runPod('forgotten');
    const manager = await fixture.openManager();
    assert.deepEqual(
      manager.grants().map(({ alive }) => alive),
      [true],
    );
    await plugin.kill();
    await pod.remove();
    await until('the grant has ended', () => manager.grants().every(({ alive }) => !alive));
  });
});
