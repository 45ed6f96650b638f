// numalign-node is late, or the runtime has ended: containers that start meanwhile get their place
// afterwards.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { CpuSet } from 'numalign';
import { ContainerHandlers } from '../../dist/containers/container-handlers.js';
import { ALL, allCpusBut, EXCLUSIVE, until, useNodeFixture } from './support/node-fixture.mjs';

const LOCK_HOLDER = fileURLToPath(new URL('support/lock-holder.mjs', import.meta.url));
const hasCpus = (pod, cpus) =>
  until(`${pod.name} has CPUs ${cpus}`, async () => (await pod.allowed()).cpus === cpus);

describe('A container is created', () => {
  const fixture = useNodeFixture();

  async function holdLock(act) {
    const child = spawn(process.execPath, [LOCK_HOLDER, fixture.stateDir], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      const [line] = await once(child.stdout, 'data');
      assert.equal(`${line}`, 'locked\n');
      return await act(child.pid);
    } finally {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
  }

  const synchronizations = () =>
    fixture.lines.filter((line) => line === 'info: NRI: synchronized with the runtime').length;

  it('while the plugin is stopped: it starts, and has its CPUs once the plugin goes on', async () => {
    const plugin = await fixture.startProcess();
    const shared = await fixture.pods.runPod('shared');
    plugin.signal('SIGSTOP');
    const pod = await fixture.pods.runPod('exclusive', EXCLUSIVE);
    assert.equal((await pod.seen()).cpus, ALL.cpus);
    plugin.signal('SIGCONT');
    await plugin.reach('synchronize', 2);
    const manager = await fixture.openManager({ readOnly: true });
    const cpus = await until('its cgroup owns a grant', () => {
      const [grant] = manager.grants();
      return grant?.owner.kind === 'cgroup' && String(grant.cpus);
    });
    await hasCpus(pod, cpus);
    await hasCpus(shared, allCpusBut(cpus));
    await pod.stop();
    await hasCpus(shared, ALL.cpus);
  });

  it('without the plugin, and has no place when it comes: it has one as soon as another ends', async () => {
    const pods = [];
    for (let i = 0; i < CpuSet.parse(ALL.cpus).size; i++)
      pods.push(await fixture.pods.runPod(`exclusive-${i}`, EXCLUSIVE));
    const { manager } = await fixture.startNode();
    // One CPU stays shared.
    assert.equal(manager.grants().length, pods.length - 1);
    const granted = ({ containerId }) => manager.grants().find(({ uid }) => uid === containerId);
    const late = pods.find((pod) => !granted(pod));
    const first = pods.find((pod) => granted(pod));
    const { cpus } = granted(first);
    await first.stop();
    await until('it has a grant', () => granted(late));
    await hasCpus(late, String(cpus));
  });

  it('while the state is locked: it is refused within the time, with the name of the process', async () => {
    await fixture.startNode();
    const shared = await fixture.pods.runPod('shared');
    await holdLock(async (pid) => {
      // The creation of the sandbox does not wait.
      await fixture.pods.runPod('another');
      const start = performance.now();
      await assert.rejects(fixture.pods.runPod('exclusive', EXCLUSIVE), {
        message: new RegExp(`is locked by process ${pid} .*; gave up after 1000 ms`),
      });
      assert.ok(performance.now() - start > 1000);
      await shared.update({ cpuset_cpus: ALL.cpus });
    });
    assert.equal(synchronizations(), 1);
    const pod = await fixture.pods.runPod('exclusive', EXCLUSIVE);
    await hasCpus(shared, allCpusBut((await pod.seen()).cpus));
  });

  it('and ends while the state is locked: its CPUs are given back afterwards', async () => {
    const { manager } = await fixture.startNode();
    const shared = await fixture.pods.runPod('shared');
    const pod = await fixture.pods.runPod('exclusive', EXCLUSIVE);
    await holdLock(() => pod.remove());
    assert.equal(synchronizations(), 1);
    await until('the grant is given back', () => manager.grants().length === 0);
    await hasCpus(shared, ALL.cpus);
  });

  for (const signal of ['SIGTERM', 'SIGKILL']) {
    it(`before the runtime ends by ${signal}, and is on its CPUs when it is back`, async () => {
      const { manager } = await fixture.startNode();
      const shared = await fixture.pods.runPod('shared');
      const pod = await fixture.pods.runPod('exclusive', EXCLUSIVE);
      const { cpus } = await pod.allowed();
      await fixture.runtime.restart(signal);
      await until('the plugin has registered again', () => synchronizations() === 2);
      assert.deepEqual(
        manager.grants().map(({ uid }) => uid),
        [pod.containerId],
      );
      assert.equal((await pod.allowed()).cpus, cpus);
      assert.equal((await shared.allowed()).cpus, allCpusBut(cpus));
      await pod.remove();
      await hasCpus(shared, ALL.cpus);
      assert.deepEqual(manager.grants(), []);
    });
  }

  // The runtime's list then lacks the container, which it is still about to create.
  for (const when of ['before', 'after']) {
    it(`while the plugin registers again, which has ended ${when} its answer`, async () => {
      const first = await fixture.startNode();
      const shared = await fixture.pods.runPod('shared');
      const { createContainer } = ContainerHandlers.prototype;
      let second;
      ContainerHandlers.prototype.createContainer = async function (...args) {
        ContainerHandlers.prototype.createContainer = createContainer;
        if (when === 'after') await createContainer.apply(this, args);
        void first.node.close();
        second = fixture.startNode();
        return new Promise(() => {});
      };
      const pod = await fixture.pods.createPod('exclusive', EXCLUSIVE);
      const { manager } = await second;
      await pod.start();
      const cpus = await until('its cgroup owns a grant', () => {
        const [grant] = manager.grants();
        return grant?.owner.kind === 'cgroup' && String(grant.cpus);
      });
      assert.equal((await pod.seen()).cpus, cpus);
      await hasCpus(shared, allCpusBut(cpus));
      assert.equal(manager.grants().length, 1);
    });
  }
});
