// Containers and pods that end, or never start, in other ways than by a stop.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, describe, it } from 'node:test';
import { CpuSet } from 'numalign';
import { ALL, EXCLUSIVE, until, useNodeFixture } from './support/node-fixture.mjs';
import { allowedOf } from './support/process-view.mjs';

const [RESERVED] = CpuSet.parse(ALL.cpus);

describe('Exclusive CPUs are given back', () => {
  const fixture = useNodeFixture();
  let manager;
  let shared;
  beforeEach(async () => {
    ({ manager } = await fixture.startNode());
    shared = await fixture.pods.runPod('shared');
  });

  async function assertGivenBack() {
    await until('the grant is given back', () => manager.grants().length === 0);
    await until('the shared one is back', async () => (await shared.allowed()).cpus === ALL.cpus);
  }

  it('if the container ends by itself', async () => {
    await fixture.pods.runPod('ending', { ...EXCLUSIVE, command: 'exit 3' });
    await assertGivenBack();
  });

  it('if its process is killed', async () => {
    const pod = await fixture.pods.runPod('killed', EXCLUSIVE);
    assert.notEqual((await shared.allowed()).cpus, ALL.cpus);
    process.kill(await pod.pid(), 'SIGKILL');
    await assertGivenBack();
  });

  it('if it is removed while it runs', async () => {
    const pod = await fixture.pods.runPod('removed', EXCLUSIVE);
    await fixture.pods.call('RemoveContainer', { container_id: pod.containerId });
    await assertGivenBack();
  });

  it('if it is removed before it starts', async () => {
    const pod = await fixture.pods.createPod('waiting', EXCLUSIVE);
    assert.equal(manager.grants().length, 1);
    assert.notEqual((await shared.allowed()).cpus, ALL.cpus);
    await pod.removeContainer();
    await assertGivenBack();
  });

  it('if the runtime cannot start it', async () => {
    const mounts = [{ container_path: '/proc/nowhere', host_path: fixture.runtime.folder }];
    await assert.rejects(fixture.pods.runPod('broken', { ...EXCLUSIVE, mounts }));
    await assertGivenBack();
  });

  it('if its pod is removed with all its containers', async () => {
    const pod = await fixture.pods.runPod('pod', EXCLUSIVE);
    await fixture.pods.call('RemovePodSandbox', { pod_sandbox_id: pod.sandboxId });
    await assertGivenBack();
  });
});

describe("A pod's sandbox", () => {
  const fixture = useNodeFixture();

  async function sandboxPid(pod) {
    const folder = join(dirname(await pod.cpusetFolder()), pod.sandboxId);
    // Its first process, and what that has started.
    return Number.parseInt(readFileSync(join(folder, 'cgroup.procs'), 'utf8'), 10);
  }
  const sandboxCpus = async (pod) => allowedOf(await sandboxPid(pod)).cpus;

  it('runs on the reserved CPUs, even an earlier one', async () => {
    const before = await fixture.pods.runPod('before');
    assert.equal(await sandboxCpus(before), ALL.cpus);
    await fixture.startNode({ reservedSystemCPUs: String(RESERVED) });
    assert.equal(await sandboxCpus(before), String(RESERVED));
    const later = await fixture.pods.runPod('later');
    assert.equal(await sandboxCpus(later), String(RESERVED));
    assert.equal((await later.allowed()).cpus, ALL.cpus);
  });

  it('stays in place without reserved CPUs, which is reported once', async () => {
    await fixture.startNode();
    for (const name of ['one', 'two'])
      assert.equal(await sandboxCpus(await fixture.pods.runPod(name)), ALL.cpus);
    const lines = fixture.lines.filter((line) => line.startsWith('info: no CPUs are reserved: '));
    assert.equal(lines.length, 1);
  });

  it('that has died leaves the containers of its pod, which still have their place', async () => {
    const pod = await fixture.pods.runPod('orphan');
    process.kill(await sandboxPid(pod), 'SIGKILL');
    await until('the sandbox has ended', async () => {
      const { items } = await fixture.pods.call('ListPodSandbox', { filter: { id: pod.sandboxId } });
      return items[0].state !== 'SANDBOX_READY';
    });
    const { node } = await fixture.startNode();
    assert.deepEqual(
      node.containers.map(({ id }) => id),
      [pod.containerId],
    );
    const { cpus } = await (await fixture.pods.runPod('exclusive', EXCLUSIVE)).seen();
    assert.equal(CpuSet.parse((await pod.allowed()).cpus).has(Number(cpus)), false);
  });
});
