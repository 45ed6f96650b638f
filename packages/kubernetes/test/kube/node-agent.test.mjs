// A node agent with its NRI plugin and its device plugin: it pins real pods of a kubelet without
// managers. CPU 0 is reserved: with two CPUs, CPU 1 can be granted.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { NodeAgent } from '@numalign/kubernetes';
import { openManager } from 'numalign';
import { Containerd } from '../containers/support/containerd.mjs';
import { allowedOf, isRunning } from '../containers/support/process-view.mjs';
import { Kubelet, until } from './kubelet.mjs';

const RESOURCE = 'numalign.io/cpu';
const MEMORY = { memory: '32Mi' };

describe('A pod of a kubelet beside a node agent', () => {
  let runtime;
  let kubelet;
  const stateDirs = [];
  let stateDir;
  let manager;
  let agent;
  let messages;

  before(async () => {
    runtime = await Containerd.start();
    kubelet = await Kubelet.start(runtime);
  });
  after(async () => {
    await kubelet?.kill();
    await runtime?.close();
    // Later than the last commit of a manager that was closed meanwhile.
    for (const folder of stateDirs) rmSync(folder, { recursive: true, force: true });
  });

  const startAgent = async () => {
    manager = await openManager({ stateDir, reservedSystemCPUs: '0', cgroupRoot: null, lockTimeoutMs: 1000 });
    agent = new NodeAgent({
      ...{ manager, publish: null, log: (level, message) => messages.push(`${level}: ${message}`) },
      nri: { nriSocket: runtime.nriSocketPath },
      devicePlugin: { folder: kubelet.devicePlugins },
      kubelet: {
        ...{ stateFolder: kubelet.folder, deviceFolder: kubelet.devicePlugins },
        podResourcesSocket: kubelet.podResourcesSocket,
      },
    });
    const before = kubelet.deviceFile();
    await agent.start();
    await kubelet.devicesAfter(before, RESOURCE);
  };
  const stopAgent = async () => {
    await agent?.close();
    manager?.close();
  };
  beforeEach(async () => {
    messages = [];
    stateDir = mkdtempSync(join(tmpdir(), 'numalign-kube-'));
    stateDirs.push(stateDir);
    await startAgent();
  });
  afterEach(async () => {
    // The pods of a failed test would have the CPUs of the next.
    await remove(...kubelet.podNames);
    await stopAgent();
  });

  const pidOf = (name) => until(`pod ${name} runs`, () => kubelet.pidOf(name));
  const cpusOf = async (name) => allowedOf(await pidOf(name)).cpus;
  const remove = async (...names) => {
    await Promise.all(names.map((name) => kubelet.removePod(name)));
    for (const name of names) {
      await until(`pod ${name} has ended`, async () => (await kubelet.pidOf(name)) === undefined);
    }
  };

  it('is pinned to the CPUs of its devices, and others leave them', async () => {
    kubelet.addPod('shared', MEMORY);
    const wide = await cpusOf('shared');
    kubelet.addPod('device', { ...MEMORY, [RESOURCE]: 1 });
    const { NUMALIGN_CPUS, NUMALIGN_ALLOCATION } = await kubelet.environmentOf('device');
    assert.equal(await cpusOf('device'), NUMALIGN_CPUS);
    assert.equal(manager.pod(NUMALIGN_ALLOCATION).containers[0].cpus.toString(), NUMALIGN_CPUS);
    assert.equal(await cpusOf('shared'), `${manager.sharedPool()}`);
    assert.notEqual(await cpusOf('shared'), wide);
    await remove('device');
    await until('its grant has ended', () => manager.grants().length === 0);
    await until('others are wide again', async () => (await cpusOf('shared')) === wide);
    await remove('shared');
  });

  it('has its CPUs again when its container has ended and is started again', async () => {
    kubelet.addPod('restarted', { ...MEMORY, [RESOURCE]: 1 });
    const before = await kubelet.environmentOf('restarted');
    const pid = await pidOf('restarted');
    process.kill(pid, 'SIGKILL');
    await until('it has ended', () => !isRunning(pid));
    assert.deepEqual(await kubelet.environmentOf('restarted'), before);
    assert.equal(await cpusOf('restarted'), before.NUMALIGN_CPUS);
    assert.deepEqual(
      manager.grants().map(({ uid }) => uid),
      [before.NUMALIGN_ALLOCATION],
    );
    await remove('restarted');
    await until('its grant has ended', () => manager.grants().length === 0);
  });

  it('has its CPUs again in another sandbox, and after the loss of its grant', async () => {
    kubelet.addPod('moved', { ...MEMORY, [RESOURCE]: 1 });
    const before = await kubelet.environmentOf('moved');
    const pid = await pidOf('moved');
    // Like after a start of the machine, which ends all grants.
    await manager.release(before.NUMALIGN_ALLOCATION);
    await kubelet.stopSandbox('moved');
    await until('it runs again', async () => {
      const found = await kubelet.pidOf('moved');
      return found !== undefined && found !== pid;
    });
    assert.deepEqual(await kubelet.environmentOf('moved'), before);
    assert.equal(await cpusOf('moved'), before.NUMALIGN_CPUS);
    assert.deepEqual(
      manager.grants().map(({ uid }) => uid),
      [before.NUMALIGN_ALLOCATION],
    );
    await remove('moved');
    await until('its grant has ended', () => manager.grants().length === 0);
  });

  it('is refused if it claims itself to have CPUs', async () => {
    kubelet.addPod('liar', MEMORY, { env: { NUMALIGN_ALLOCATION: 'mine', NUMALIGN_CPUS: '1' } });
    await until('the runtime has its refusal', () => runtime.log.includes('allocated CPUs 1 as mine'));
    assert.deepEqual(manager.grants(), []);
    assert.equal(await kubelet.pidOf('liar'), undefined);
    await kubelet.removePod('liar');
  });

  it('keeps its CPUs while the agent is started again', async () => {
    kubelet.addPod('kept', { ...MEMORY, [RESOURCE]: 1 });
    const { NUMALIGN_CPUS } = await kubelet.environmentOf('kept');
    const [{ uid }] = manager.grants();
    await stopAgent();
    await startAgent();
    assert.deepEqual(
      manager.grants().map((grant) => grant.uid),
      [uid],
    );
    assert.equal(await cpusOf('kept'), NUMALIGN_CPUS);
    await remove('kept');
    await until('its grant has ended', () => manager.grants().length === 0);
  });

  it('is pinned if it is Guaranteed and requests whole CPUs', async () => {
    kubelet.addPod('guaranteed', { ...MEMORY, cpu: '1' });
    const cpus = await cpusOf('guaranteed');
    const [grant] = manager.grants();
    assert.equal(cpus, `${grant.cpus}`);
    assert.equal(grant.cpus.size, 1);
    await remove('guaranteed');
    await until('its grant has ended', () => manager.grants().length === 0);
  });
});
