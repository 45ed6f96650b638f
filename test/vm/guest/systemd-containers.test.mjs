// Containers whose cgroups systemd makes, as scopes, on a machine with cgroup v2 and 4 NUMA nodes:
// they are placed, disturbed and restarted, and stay where numalign put them.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { CpuSet } from '../../../dist/index.js';
import { prepareComponents } from '../../../packages/kubernetes/test/containers/components.mjs';
import {
  guaranteed,
  NodeFixture,
  until,
} from '../../../packages/kubernetes/test/containers/support/node-fixture.mjs';
import * as kernel from './kernel-view.mjs';

// Emulation is slow.
const PATIENCE_MS = 240_000;
const all = CpuSet.from(kernel.online());

function run(command, ...args) {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8' });
  assert.equal(status, 0, `${command} ${args.join(' ')}: ${stdout}${stderr}`);
  return stdout.trim();
}

const fixture = new NodeFixture();
let node;
let manager;
let exclusive;
let shared;
let cpus;

/** A pod's slice as the kubelet names it, below the runtime's. */
const sliceOf = (uid) => `numalign_test-pod${uid.replaceAll('-', '_')}.slice`;

function runPod(name, options = {}) {
  const uid = randomUUID();
  return fixture.lastingPods.runPod(name, { uid, cgroupParent: sliceOf(uid), ...options });
}

const cpusetFile = async (pod, file = 'cpuset.cpus') => join(await pod.cpusetFolder(), file);
const kernelCpus = async (pod) => CpuSet.parse(kernel.read(await pod.cpusetFolder(), 'cpuset.cpus'));
const kernelMems = async (pod) => kernel.read(await pod.cpusetFolder(), 'cpuset.mems');
const scopeOf = async (pod) => basename(await pod.cpusetFolder());
/** What systemd writes when it writes a scope's cgroup. */
const systemdCpus = async (pod) =>
  CpuSet.parse(
    run('systemctl', 'show', '--property=AllowedCPUs', '--value', await scopeOf(pod)).replaceAll(' ', ','),
  );

const becomes = (what, read, expected) =>
  until(`${what}: ${expected}`, async () => (await read()).equals(expected), PATIENCE_MS);

const pool = () => all.difference(cpus);
const repairsSince = (count) => node.repairs - count;

before(async () => {
  await fixture.open({ nriTimeout: '120s', bySystemd: true });
  fixture.begin();
  ({ node, manager } = await fixture.startNode({ policy: 'single-numa-node' }));
  shared = await runPod('shared');
  exclusive = await runPod('exclusive', { resources: guaranteed(2) });
  cpus = manager.grants()[0].cpus;
});
after(async () => {
  await fixture.lastingPods?.removeAll();
  await fixture.end();
  await fixture.close();
});

describe('containers in scopes of systemd', () => {
  it('are on their CPUs and memory node, for the kernel and for systemd', async () => {
    const nodes = kernel.nodesOf(cpus.toArray());
    assert.equal(nodes.length, 1);
    assert.match(await scopeOf(exclusive), /^cri-containerd-.*\.scope$/);
    assert.deepEqual(
      [`${await kernelCpus(exclusive)}`, await kernelMems(exclusive)],
      [`${cpus}`, `${nodes[0]}`],
    );
    assert.equal(`${await systemdCpus(exclusive)}`, `${cpus}`);
    for (const read of [kernelCpus, systemdCpus]) assert.equal(`${await read(shared)}`, `${pool()}`);
  });

  it('stay there over a reload of systemd, another property, and an update by runc', async () => {
    const before = node.repairs;
    const components = prepareComponents();
    const runc = ['--root', join(fixture.runtime.folder, 'runc', 'k8s.io')];
    for (const pod of [shared, exclusive]) {
      run('systemctl', 'set-property', '--runtime', await scopeOf(pod), 'CPUWeight=50');
      run(
        'nsenter',
        `--mount=/proc/${fixture.runtime.pid}/ns/mnt`,
        components.runc,
        ...runc,
        'update',
        '--cpu-share',
        '2000',
        pod.containerId,
      );
    }
    run('systemctl', 'daemon-reload');
    await sleep(1000);
    assert.equal(`${await kernelCpus(exclusive)}`, `${cpus}`);
    assert.equal(`${await kernelCpus(shared)}`, `${pool()}`);
    assert.equal(repairsSince(before), 0);
  });

  it('in the shared pool stay where a process outside of containers left them', async () => {
    const before = node.repairs;
    const grant = await manager.acquire({ cpu: 1, enforcement: 'members' });
    const left = pool().difference(grant.cpus);
    await becomes('the kernel’s CPUs of the shared one', () => kernelCpus(shared), left);
    await becomes('systemd’s CPUs of the shared one', () => systemdCpus(shared), left);
    run('systemctl', 'daemon-reload');
    run('systemctl', 'set-property', '--runtime', await scopeOf(shared), 'CPUWeight=60');
    await sleep(1000);
    assert.equal(`${await kernelCpus(shared)}`, `${left}`);
    assert.equal(repairsSince(before), 0);
    await grant.release();
    for (const read of [kernelCpus, systemdCpus])
      await becomes('the CPUs of the shared one', () => read(shared), pool());
  });

  it('are put back where systemd, or a write, has moved them, for systemd too', async () => {
    const before = node.repairs;
    for (const [pod, right] of [
      [exclusive, cpus],
      [shared, pool()],
    ]) {
      run('systemctl', 'set-property', '--runtime', await scopeOf(pod), `AllowedCPUs=${all}`);
      await becomes('the kernel’s CPUs', () => kernelCpus(pod), right);
      await becomes('systemd’s CPUs', () => systemdCpus(pod), right);
      writeFileSync(await cpusetFile(pod), `${all}`);
      await becomes('the kernel’s CPUs', () => kernelCpus(pod), right);
    }
    assert.ok(repairsSince(before) >= 4, `${repairsSince(before)} repairs`);
  });

  it('have their memory nodes back if someone writes others, or empties them', async () => {
    const mems = await kernelMems(exclusive);
    for (const text of [kernel.wholeNodes().join(','), '']) {
      try {
        writeFileSync(await cpusetFile(exclusive, 'cpuset.mems'), `${text}\n`);
      } catch (error) {
        // Of a cpuset with processes; newer kernels let it be emptied.
        assert.deepEqual([error.code, text], ['ENOSPC', '']);
      }
      await until('they are back', async () => (await kernelMems(exclusive)) === mems, PATIENCE_MS);
    }
  });

  it('that start again have the CPUs that they had', async () => {
    process.kill(await exclusive.pid(), 'SIGKILL');
    const ended = async () =>
      (await fixture.lastingPods.call('ContainerStatus', { container_id: exclusive.containerId })).status
        .state === 2;
    await until('it has ended', ended, PATIENCE_MS);
    await exclusive.createContainer({ resources: guaranteed(2) });
    await exclusive.start();
    assert.equal((await exclusive.seen()).cpus, `${cpus}`);
    assert.equal(`${await systemdCpus(exclusive)}`, `${cpus}`);
  });

  it('are in the shared pool once their grant is released by hand, and stay there', async () => {
    await manager.release(manager.grants()[0].uid);
    for (const pod of [exclusive, shared])
      for (const read of [kernelCpus, systemdCpus]) await becomes('the CPUs', () => read(pod), all);
    const before = node.repairs;
    const other = await manager.acquire({ cpu: 2, enforcement: 'members' });
    await becomes('the CPUs', () => kernelCpus(exclusive), all.difference(other.cpus));
    await other.release();
    assert.equal(repairsSince(before), 0);
  });
});
