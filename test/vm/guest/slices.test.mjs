// The slices of a kubelet with cgroup v2, whose driver is systemd where that is the first process, else
// cgroupfs: they have the shared pool, also while numalign-node is away. Run by node --test, as root.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { CpuSet } from '../../../dist/index.js';
import {
  guaranteed,
  NodeFixture,
  until,
} from '../../../packages/kubernetes/test/containers/support/node-fixture.mjs';
import * as kernel from './kernel-view.mjs';

const ROOT = '/sys/fs/cgroup';
const bySystemd = existsSync('/run/systemd/system');
// Emulation is slow.
const PATIENCE_MS = 240_000;
const all = CpuSet.from(kernel.online());
// With systemd a kubelet names a slice only, which says what it is in.
const SLICES = bySystemd
  ? {
      allPods: ['kubepods.slice', 'kubepods.slice'],
      burstable: ['kubepods.slice/kubepods-burstable.slice', 'kubepods-burstable.slice'],
      bestEffort: ['kubepods.slice/kubepods-besteffort.slice', 'kubepods-besteffort.slice'],
    }
  : {
      allPods: ['kubepods', '/kubepods'],
      burstable: ['kubepods/burstable', '/kubepods/burstable'],
      bestEffort: ['kubepods/besteffort', '/kubepods/besteffort'],
    };

const fixture = new NodeFixture();
let node;
let manager;

function runPod(name, slice, options = {}) {
  const uid = randomUUID();
  const [, parent] = SLICES[slice];
  const cgroupParent = bySystemd
    ? `${parent.replace(/\.slice$/, '')}-pod${uid.replaceAll('-', '_')}.slice`
    : `${parent}/pod${uid}`;
  return fixture.lastingPods.runPod(name, { uid, cgroupParent, ...options });
}

const cpusFile = (slice) => join(ROOT, SLICES[slice][0], 'cpuset.cpus');
const cpusOf = (slice) => kernel.read(cpusFile(slice));
const haveCpus = (slice, cpus) =>
  until(`${slice} has CPUs ${cpus}, not ${cpusOf(slice)}`, () => cpusOf(slice) === `${cpus}`, PATIENCE_MS);
const allowed = async (pod) => CpuSet.parse((await pod.allowed()).cpus);
const becomes = (pod, cpus) =>
  until(`${pod.name} has CPUs ${cpus}`, async () => (await allowed(pod)).equals(cpus), PATIENCE_MS);
const pool = () => manager.sharedPool();

function systemctl(...args) {
  const { status, stderr } = spawnSync('systemctl', args, { encoding: 'utf8' });
  assert.equal(status, 0, `systemctl ${args.join(' ')}: ${stderr}`);
}

const start = async (slices = 'pool') => {
  ({ node, manager } = await fixture.startNode({ slices }));
};

before(async () => {
  await fixture.open({ nriTimeout: '120s', bySystemd });
  fixture.begin();
});
after(async () => {
  await fixture.lastingPods?.removeAll();
  await fixture.end();
  await fixture.close();
});

describe(`the slices of a kubelet with the driver ${bySystemd ? 'systemd' : 'cgroupfs'}`, () => {
  let shared;
  let exclusive;

  it('have the shared pool, and the CPUs of the containers in them', async () => {
    shared = await runPod('shared', 'burstable');
    await runPod('modest', 'bestEffort');
    await start();
    exclusive = await runPod('exclusive', 'allPods', { resources: guaranteed(2) });
    await becomes(exclusive, manager.grants()[0].cpus);
    await becomes(shared, pool());
    await haveCpus('burstable', pool());
    await haveCpus('bestEffort', pool());
    await haveCpus('allPods', all);
  });

  it('follow the pool, and containers in them have all of it at once', async () => {
    const second = await runPod('second', 'allPods', { resources: guaranteed(1) });
    await haveCpus('burstable', pool());
    assert.equal(pool().size, all.size - 3);
    await becomes(shared, pool());
    await second.remove();
    await becomes(shared, pool());
    assert.equal(pool().size, all.size - 2);
    await haveCpus('burstable', pool());
  });

  it('are put right if another program writes them', async () => {
    writeFileSync(cpusFile('burstable'), `${all}`);
    await haveCpus('burstable', pool());
    try {
      writeFileSync(cpusFile('bestEffort'), '\n');
    } catch ({ code }) {
      // Of a cpuset with processes; newer kernels let it be emptied.
      assert.equal(code, 'ENOSPC');
    }
    await haveCpus('bestEffort', pool());
  });

  it('are put right after systemd has written them', { skip: !bySystemd }, async () => {
    for (const slice of ['burstable', 'bestEffort'])
      systemctl('set-property', '--runtime', SLICES[slice][1], `AllowedCPUs=${all}`);
    await haveCpus('burstable', pool());
    systemctl('set-property', '--runtime', SLICES.burstable[1], 'AllowedCPUs=');
    systemctl('daemon-reload');
    await haveCpus('bestEffort', pool());
    await haveCpus('burstable', pool());
  });

  it('keep containers off exclusive CPUs that are created while it is away', async () => {
    await node.close();
    const born = await runPod('born', 'burstable');
    assert.equal((await born.seen()).cpus, `${pool()}`);
    if (bySystemd) {
      systemctl('daemon-reload');
      systemctl('set-property', '--runtime', SLICES.burstable[1], 'CPUWeight=50');
      const next = await runPod('next', 'burstable');
      assert.deepEqual([cpusOf('burstable'), (await next.seen()).cpus], [`${pool()}`, `${pool()}`]);
    }
    // What the kernel does not keep off: the pod of a Guaranteed container is beside that of the other.
    const beside = await runPod('beside', 'allPods', { resources: { cpu_shares: 512 } });
    assert.equal((await beside.seen()).cpus, `${all}`);
    await start();
    await becomes(beside, pool());
    await becomes(born, pool());
    await becomes(exclusive, manager.grants()[0].cpus);
  });

  it('have all CPUs again on request', async () => {
    await node.close();
    await start('all');
    // Older kernels let no cpuset with processes be emptied.
    for (const slice of Object.keys(SLICES)) assert.match(cpusOf(slice), new RegExp(`^(${all})?$`));
    await becomes(shared, pool());
  });
});
