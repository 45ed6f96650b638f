// A quiet container changes settings of the machine's kernel, which are restored when it ends, also
// if numalign-node is killed meanwhile.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { CpuSet } from 'numalign';
import { RELEASE, SELF_BUILT } from './components.mjs';
import { EXCLUSIVE, until, useNodeFixture } from './support/node-fixture.mjs';

const FILES = ['/proc/irq/default_smp_affinity', '/sys/devices/virtual/workqueue/cpumask'];
const read = (path) => readFileSync(path, 'utf8').trim();
const latencyFile = (cpu) => `/sys/devices/system/cpu/cpu${cpu}/power/pm_qos_resume_latency_us`;

/** Whether a mask in hexadecimal, as of few CPUs, has this one. */
const has = (mask, cpu) => (Number.parseInt(mask.split(',').at(-1), 16) & (1 << cpu)) !== 0;

const settings = () => Object.fromEntries(FILES.map((path) => [path, read(path)]));

const annotations = (more) => ({ containerAnnotations: { 'numalign.io/quiet': 'all', ...more } });

describe('A quiet container', () => {
  const fixture = useNodeFixture();

  const isRestored = (before, cpu, latency) =>
    until('the settings are as before', () => {
      const now = { ...settings(), latency: read(latencyFile(cpu)) };
      return JSON.stringify(now) === JSON.stringify({ ...before, latency });
    });

  const cpuOf = async (pod) => CpuSet.parse((await pod.allowed()).cpus).first;

  it('keeps kernel work off its CPU while it runs; the machine is as before when it has ended', async () => {
    const before = settings();
    const latencies = [0, 1].map((cpu) => read(latencyFile(cpu)));
    const { manager } = await fixture.startNode();
    const pod = await fixture.pods.runPod('quiet', { ...EXCLUSIVE, ...annotations() });
    const cpu = await cpuOf(pod);
    for (const [path, value] of Object.entries(settings())) assert.ok(!has(value, cpu), `${path}: ${value}`);
    assert.equal(read(latencyFile(cpu)), '10');
    const { parts } = manager.pod(pod.containerId).quiet;
    assert.equal(parts.workqueues.reached, 'yes');
    await pod.remove();
    await isRestored(before, cpu, latencies[cpu]);
  });

  it('has ended while numalign-node was killed: the next one restores the machine', async () => {
    const before = settings();
    const latencies = [0, 1].map((cpu) => read(latencyFile(cpu)));
    const plugin = await fixture.startProcess();
    const pod = await fixture.pods.runPod('quiet', { ...EXCLUSIVE, ...annotations() });
    const cpu = await cpuOf(pod);
    await plugin.kill();
    for (const [path, value] of Object.entries(settings())) assert.ok(!has(value, cpu), `${path}: ${value}`);
    await pod.remove();
    assert.equal(read(latencyFile(cpu)), '10');
    await fixture.startProcess();
    await isRestored(before, cpu, latencies[cpu]);
  });

  it('is refused if a part that it requires cannot be had, and leaves nothing changed', async () => {
    const before = settings();
    const { manager } = await fixture.startNode();
    const required = { ...annotations({ 'numalign.io/quiet': 'workqueues,cache=1' }) };
    required.containerAnnotations['numalign.io/require-quiet'] = 'cache';
    // There is no resctrl here.
    await assert.rejects(
      fixture.pods.runPod('quiet', { ...EXCLUSIVE, ...required }),
      /quiet cache is required/,
    );
    assert.deepEqual([settings(), manager.grants()], [before, []]);
  });

  it('with a class of RDT on a machine that has none: old runtimes do not tell, newer ones refuse it', async () => {
    await fixture.startNode();
    const classes = { containerAnnotations: { 'numalign.io/rdt-class': 'gold' } };
    if (SELF_BUILT.includes(RELEASE)) {
      const creation = fixture.pods.runPod('gold', { ...EXCLUSIVE, ...classes });
      return assert.rejects(creation, /RDT is not enabled/);
    }
    const pod = await fixture.pods.runPod('gold', { ...EXCLUSIVE, ...classes });
    assert.equal(CpuSet.parse((await pod.allowed()).cpus).size, 1);
  });
});

const DEVICE = readdirSync('/sys/block').find(
  (name) => /^(vd|sd|nvme|xvd)/.test(name) && existsSync(`/dev/${name}`),
);
const THROTTLE = '/sys/fs/cgroup/blkio/blkio.throttle.read_bps_device';
const whyNot =
  DEVICE === undefined || !existsSync(THROTTLE) ? 'no block device, or no controller of them' : false;

describe('A container with a class of block devices', { skip: whyNot }, () => {
  const fixture = useNodeFixture({
    blockio: `Classes:\n  slow:\n    - Devices: [/dev/${DEVICE}]\n      ThrottleReadBps: 60M\n`,
  });

  it('has its limits', async () => {
    await fixture.startNode();
    const classes = { containerAnnotations: { 'numalign.io/blockio-class': 'slow' } };
    const pod = await fixture.pods.runPod('slow', { ...EXCLUSIVE, ...classes });
    const folder = (await pod.cpusetFolder()).replace('/cpuset/', '/blkio/');
    assert.equal(
      read(join(folder, 'blkio.throttle.read_bps_device')),
      `${read(`/sys/block/${DEVICE}/dev`)} 60000000`,
    );
  });

  it('is refused by the runtime if that does not know the class', async () => {
    const { manager } = await fixture.startNode();
    const classes = { containerAnnotations: { 'numalign.io/blockio-class': 'gold' } };
    await assert.rejects(fixture.pods.runPod('gold', { ...EXCLUSIVE, ...classes }), /gold/);
    await until('nothing is granted', () => manager.grants().length === 0);
  });
});
