// The allocations of a kubelet with the static CPU policy.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { KubeletFollower, NodeAgent, PodResources } from '@numalign/kubernetes';
import { CpuSet, openManager } from 'numalign';
import { Containerd } from '../containers/support/containerd.mjs';
import { allowedOf } from '../containers/support/process-view.mjs';
import { Kubelet, until } from './kubelet.mjs';

const plain = (pods) =>
  pods.map(({ containers, ...pod }) => ({
    ...pod,
    containers: containers.map((container) => ({ ...container, cpus: `${container.cpus}` })),
  }));

/** A process outside of pods, like one that shares CPUs with others. */
async function startMember(stateDir) {
  const program = `
    import { openManager } from 'numalign';
    await openManager({ stateDir: process.argv[1], cgroupRoot: null });
    console.log('It shares.');
    setInterval(() => {}, 2 ** 30);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program, stateDir], {
    ...{ cwd: import.meta.dirname, stdio: ['ignore', 'pipe', 'inherit'] },
  });
  const end = once(child, 'exit');
  await Promise.race([once(child.stdout, 'data'), end.then(() => assert.fail('it has ended'))]);
  return { pid: child.pid, kill: () => child.kill('SIGKILL'), end };
}

describe('The holdings of a kubelet with the static CPU policy', () => {
  let runtime;
  let kubelet;
  let podResources;
  let follower;
  let records;

  before(async () => {
    records = [];
    runtime = await Containerd.start({ nri: false });
    kubelet = await Kubelet.start(runtime, { cpuManagerPolicy: 'static' });
    const folders = { stateFolder: kubelet.folder, deviceFolder: kubelet.devicePlugins };
    podResources = new PodResources({ ...folders, socket: kubelet.podResourcesSocket });
    follower = new KubeletFollower({
      ...{ ...folders, podResourcesSocket: kubelet.podResourcesSocket },
      record: async (holdings) => records.push(plain(holdings)),
      log: (level, message) => console.log(level, message),
    });
    await follower.start();
  });
  after(async () => {
    await follower?.close();
    await kubelet?.kill();
    await runtime?.close();
  });

  const container = { name: 'main', cpus: '1', memory: [], devices: {} };

  it('are those of its Guaranteed pod, and of no other', async () => {
    assert.deepEqual(await podResources.holdings(), []);
    kubelet.addPod('shared', { memory: '32Mi' });
    kubelet.addPod('own', { cpu: '1', memory: '64Mi' });
    await until('both run', async () => (await kubelet.pidOf('shared')) && (await kubelet.pidOf('own')));
    // Of the shared one it lists CPU 0.
    const names = (await podResources.list()).map(({ name }) => name);
    assert.deepEqual(names.sort(), ['own-node', 'shared-node']);
    const [pod, ...rest] = plain(await podResources.holdings());
    assert.deepEqual(rest, []);
    assert.match(pod.uid, /^[0-9a-f]{32}$/);
    assert.deepEqual(pod, { namespace: 'default', name: 'own-node', uid: pod.uid, containers: [container] });
  });

  it('are reported without polling', async () => {
    await until('they are recorded', () => records.at(-1)?.[0]?.uid !== undefined);
    const [pod] = plain(await podResources.holdings());
    await until('with their names', () => records.at(-1)[0].name === pod.name);
    assert.deepEqual(records.at(-1), [pod]);
  });

  it('are on record for every process of the machine, and one outside of pods leaves them', async () => {
    const stateDir = mkdtempSync(join(tmpdir(), 'numalign-kube-'));
    const manager = await openManager({ stateDir, cgroupRoot: null });
    const agent = new NodeAgent({
      ...{ manager, log: () => {}, nri: null, devicePlugin: null, publish: null },
      kubelet: {
        ...{ stateFolder: kubelet.folder, deviceFolder: kubelet.devicePlugins },
        podResourcesSocket: kubelet.podResourcesSocket,
      },
    });
    const view = await openManager({ stateDir, readOnly: true });
    const member = await startMember(stateDir);
    try {
      assert.equal(CpuSet.parse(allowedOf(member.pid).cpus).has(1), true);
      const before = view.freeCpus();
      assert.equal(before.has(1), true);
      await agent.start();
      assert.equal(`${view.freeCpus()}`, `${before.difference(CpuSet.of(1))}`);
      assert.equal(view.sharedPool().has(1), false);
      assert.equal(allowedOf(member.pid).cpus, `${view.sharedPool()}`);
      const pid = await kubelet.pidOf('own');
      await until('the pod has its CPU for itself', () => allowedOf(pid).cpus === '1');
    } finally {
      member.kill();
      await member.end;
      await agent.close();
      view.close();
      manager.close();
      rmSync(stateDir, { recursive: true, force: true });
    }
  });

  it('are read from its files once it has been killed', async () => {
    const [{ uid }] = await podResources.holdings();
    await kubelet.kill();
    assert.deepEqual(plain(await podResources.holdings()), [
      { namespace: '', name: uid, uid, containers: [container] },
    ]);
    await kubelet.start();
    // It lists its pods once it has looked at them again.
    await until('it has its name again', async () => {
      const [pod, ...rest] = plain(await podResources.holdings());
      assert.deepEqual([pod.uid, pod.containers, rest], [uid, [container], []]);
      return pod.name === 'own-node';
    });
  });

  it('are none once the pod has ended', async () => {
    await kubelet.removePod('own');
    await until('nothing is held', () => records.at(-1).length === 0);
    assert.deepEqual(await podResources.holdings(), []);
  });
});
