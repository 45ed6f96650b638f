// The device plugin with a kubelet that has no CPU manager.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { DevicePlugin, PodResources } from '@numalign/kubernetes';
import { CpuSet, openManager } from 'numalign';
import { discover } from 'numalign/topology';
import { Containerd } from '../containers/support/containerd.mjs';
import { Kubelet, until } from './kubelet.mjs';

// One NUMA node of four cores with two threads each. Both the machine and what runs on it are
// simulated: without an NRI plugin no process is pinned.
const MACHINE = 'package:1 core:4 pu:2';
const RESOURCE = 'numalign.io/cpu';

describe('A kubelet', () => {
  let runtime;
  let kubelet;
  let manager;
  let plugin;
  let stateDir;
  let messages;

  before(async () => {
    runtime = await Containerd.start({ nri: false });
    kubelet = await Kubelet.start(runtime);
  });
  after(async () => {
    await kubelet?.kill();
    await runtime?.close();
  });

  const plug = async () => {
    plugin = new DevicePlugin({
      ...{ manager, folder: kubelet.devicePlugins },
      log: (_level, message) => messages.push(message),
    });
    const before = kubelet.deviceFile();
    await plugin.start();
    await kubelet.devicesAfter(before, RESOURCE);
  };
  beforeEach(async () => {
    messages = [];
    stateDir = mkdtempSync(join(tmpdir(), 'numalign-kube-'));
    const topology = await discover({ synthetic: MACHINE });
    manager = await openManager({ topology, stateDir, reservedSystemCPUs: '0' });
    await plug();
  });
  afterEach(async () => {
    await plugin.close();
    manager.close();
    rmSync(stateDir, { recursive: true, force: true });
  });

  const remove = async (name) => {
    const pid = await kubelet.pidOf(name);
    await kubelet.removePod(name);
    await until(`pod ${name} has ended`, async () => (await kubelet.pidOf(name)) === undefined && pid > 0);
  };

  it('gives a pod the CPUs that the plugin prefers, and its environment and the record say which', async () => {
    kubelet.addPod('pair', { [RESOURCE]: 2 });
    const environment = await kubelet.environmentOf('pair');
    // CPU 0 is reserved: CPU 1 alone would be no whole core.
    assert.equal(environment.NUMALIGN_CPUS, '2-3');
    const [grant, ...rest] = manager.grants();
    assert.equal(grant.uid, environment.NUMALIGN_ALLOCATION);
    assert.equal(`${grant.cpus}`, '2-3');
    assert.deepEqual(rest, []);
    assert.deepEqual(
      kubelet.deviceFile().devices[RESOURCE].sort(),
      [1, 2, 3, 4, 5, 6, 7].map((cpu) => `cpu${cpu}`),
    );
    await remove('pair');
  });

  it('that is started again has the devices again, and its pod keeps its CPUs', async () => {
    kubelet.addPod('lasting', { [RESOURCE]: 3 });
    const environment = await kubelet.environmentOf('lasting');
    const pid = await kubelet.pidOf('lasting');
    await kubelet.kill();
    // Only its files show that.
    const podResources = new PodResources({
      ...{ socket: kubelet.podResourcesSocket, stateFolder: kubelet.folder },
      deviceFolder: kubelet.devicePlugins,
    });
    const [{ containers }] = await podResources.holdings();
    assert.deepEqual(
      containers[0].devices[RESOURCE].map(({ id, nodes }) => `${id} on ${nodes}`).sort(),
      [...CpuSet.parse(environment.NUMALIGN_CPUS)].map((cpu) => `cpu${cpu} on 0`),
    );
    const before = kubelet.deviceFile();
    await kubelet.start();
    await until(
      'the plugin is registered again',
      () => messages.filter((text) => /is registered/.test(text)).length > 1,
    );
    await kubelet.devicesAfter(before, RESOURCE);
    assert.equal(await kubelet.pidOf('lasting'), pid);
    assert.deepEqual(
      manager.grants().map(({ uid }) => uid),
      [environment.NUMALIGN_ALLOCATION],
    );
    // Its next allocation is another one.
    kubelet.addPod('later', { [RESOURCE]: 4 });
    const later = await kubelet.environmentOf('later');
    const sets = manager.grants().map(({ cpus }) => cpus);
    assert.equal(sets.length, 2);
    assert.equal(sets[0].intersects(sets[1]), false);
    assert.equal(later.NUMALIGN_CPUS.length > 0, true);
    await remove('lasting');
    await remove('later');
  });

  it('allocates nothing twice after a restart of the plugin', async () => {
    kubelet.addPod('first', { [RESOURCE]: 4 });
    await kubelet.environmentOf('first');
    await plugin.close();
    await plug();
    kubelet.addPod('second', { [RESOURCE]: 3 });
    await kubelet.environmentOf('second');
    const sets = manager.grants().map(({ cpus }) => cpus);
    assert.deepEqual(sets.map(({ size }) => size).sort(), [3, 4]);
    assert.equal(sets[0].intersects(sets[1]), false);
    await remove('first');
    await remove('second');
  });

  it('gives a container the CPUs of an init container; both are on record', async () => {
    kubelet.addPod('chain', { [RESOURCE]: 1 }, { init: { [RESOURCE]: 3 } });
    const app = await kubelet.environmentOf('chain');
    const init = kubelet.initEnvironmentOf('chain');
    const standingFor = ({ NUMALIGN_ALLOCATION: uid }) =>
      manager.grants().flatMap(({ name, cpus }) => (name.includes(uid) ? [...cpus] : []));
    const asCpus = (cpus) => CpuSet.from(cpus).toString();
    assert.equal(asCpus(standingFor(app)), app.NUMALIGN_CPUS);
    assert.equal(asCpus(standingFor(init)), init.NUMALIGN_CPUS);
    assert.equal(standingFor(init).length, 3);
    assert.equal(CpuSet.parse(app.NUMALIGN_CPUS).isSubsetOf(CpuSet.parse(init.NUMALIGN_CPUS)), true);
    await remove('chain');
  });

  it('gives the CPUs of a pod that has ended to the next', async () => {
    kubelet.addPod('one', { [RESOURCE]: 7 });
    await kubelet.environmentOf('one');
    await remove('one');
    kubelet.addPod('next', { [RESOURCE]: 7 });
    const { NUMALIGN_CPUS } = await kubelet.environmentOf('next');
    assert.equal(NUMALIGN_CPUS, '1-7');
    assert.equal(manager.grants().length, 1);
    await remove('next');
  });
});
