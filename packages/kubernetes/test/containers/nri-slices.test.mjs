// The cgroups that a kubelet makes for its pods have the shared pool, also while numalign-node is away.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { SliceFiles } from '../../dist/slices/slice-files.js';
import { ALL, allCpusBut, EXCLUSIVE, until, useNodeFixture } from './support/node-fixture.mjs';

const CPUSETS = '/sys/fs/cgroup/cpuset';

describe('The slices of a kubelet', () => {
  const fixture = useNodeFixture();
  let slices;
  let pods;

  const folder = (slice) => join(CPUSETS, slice);
  const cpusOf = (slice) => readFileSync(join(folder(slice), 'cpuset.cpus'), 'utf8').trim();

  /** A cgroup of the kubelet, which has what is above it. */
  function makeCgroup(path) {
    mkdirSync(folder(path), { recursive: true });
    for (const file of ['cpuset.cpus', 'cpuset.mems'])
      writeFileSync(join(folder(path), file), readFileSync(join(folder(path), '..', file)));
  }

  beforeEach(() => {
    const allPods = `${fixture.runtime.cgroupParent}/kubepods`;
    slices = { allPods, burstable: `${allPods}/burstable`, bestEffort: `${allPods}/besteffort` };
    pods = [];
    mkdirSync(folder(fixture.runtime.cgroupParent), { recursive: true });
    if (cpusOf(fixture.runtime.cgroupParent) === '') makeCgroup(fixture.runtime.cgroupParent);
    for (const slice of Object.values(slices)) makeCgroup(slice);
  });
  afterEach(async () => {
    await fixture.pods.removeAll();
    const made = [...pods, slices.bestEffort, slices.burstable, slices.allPods];
    for (const path of made) await until(`${path} is empty`, () => tryRemove(folder(path)));
  });

  function tryRemove(path) {
    try {
      rmdirSync(path);
      return true;
    } catch (error) {
      return error.code === 'ENOENT';
    }
  }

  /** As a kubelet does: the cgroup of the pod comes first. */
  async function runPod(name, slice, options = {}) {
    const cgroupParent = `${slice}/pod${name}`;
    makeCgroup(cgroupParent);
    pods.push(cgroupParent);
    return fixture.pods.runPod(name, { cgroupParent, uid: name, ...options });
  }
  const haveCpus = (slice, cpus) =>
    until(`${slice} has CPUs ${cpus}, not ${cpusOf(slice)}`, () => cpusOf(slice) === cpus);

  it('keep containers off exclusive CPUs that are created while it is away', async () => {
    const { node, manager } = await fixture.startNode({ slices: 'pool' });
    const shared = await runPod('shared', slices.burstable);
    await runPod('exclusive', slices.allPods, EXCLUSIVE);
    const exclusive = String(manager.grants()[0].cpus);
    const pool = allCpusBut(exclusive);
    assert.equal((await shared.allowed()).cpus, pool);
    await haveCpus(slices.burstable, pool);
    await haveCpus(slices.bestEffort, pool);
    assert.equal(cpusOf(slices.allPods), ALL.cpus);
    await node.close();
    const born = await runPod('born', slices.burstable);
    assert.equal((await born.seen()).cpus, pool);
    // What the kernel does not keep off: the cgroup of a Guaranteed pod is beside that of the other.
    const guaranteed = await runPod('guaranteed', slices.allPods);
    assert.equal((await guaranteed.seen()).cpus, ALL.cpus);
    await fixture.startNode({ slices: 'pool' });
    await until('it is off them', async () => (await guaranteed.allowed()).cpus === pool);
  });

  it('grow before the containers in them, and are given back', async () => {
    const { node } = await fixture.startNode({ slices: 'pool' });
    const shared = await runPod('shared', slices.burstable);
    for (let i = 0; i < 3; i++) {
      const exclusive = await runPod(`exclusive${i}`, slices.allPods, EXCLUSIVE);
      const pool = allCpusBut((await exclusive.allowed()).cpus);
      await haveCpus(slices.burstable, pool);
      await exclusive.remove();
      await until('it has all CPUs', async () => (await shared.allowed()).cpus === ALL.cpus);
      await haveCpus(slices.burstable, ALL.cpus);
    }
    await runPod('last', slices.allPods, EXCLUSIVE);
    await until('they have the pool', () => cpusOf(slices.burstable) !== ALL.cpus);
    await node.close();
    await fixture.startNode({ slices: 'all' });
    assert.equal(cpusOf(slices.burstable), ALL.cpus);
  });

  it('are put right if another program writes them', async () => {
    await fixture.startNode({ slices: 'pool' });
    await runPod('exclusive', slices.allPods, EXCLUSIVE);
    await until('they have the pool', () => cpusOf(slices.burstable) !== ALL.cpus);
    const pool = cpusOf(slices.burstable);
    writeFileSync(join(folder(slices.burstable), 'cpuset.cpus'), ALL.cpus);
    await haveCpus(slices.burstable, pool);
    assert.equal(new SliceFiles(CPUSETS).read(slices.burstable)?.toString(), pool);
    assert.deepEqual(
      fixture.lines.filter((line) => /the cgroup/.test(line)),
      [],
    );
  });
});
