// Other clients of the runtime change containers, like a kubelet at each of its reconciliations.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { ALL, EXCLUSIVE, guaranteed, until, useNodeFixture } from './support/node-fixture.mjs';

const CGROUPS = '/sys/fs/cgroup';
const IS_UNIFIED = existsSync(join(CGROUPS, 'cgroup.controllers'));
// Of both versions of cgroups.
const FILES = IS_UNIFIED
  ? { quota: ['', 'cpu.max'], memory: ['', 'memory.max'] }
  : { quota: ['cpu', 'cpu.cfs_quota_us'], memory: ['memory', 'memory.limit_in_bytes'] };

async function limitOf(pod, name) {
  const [controller, file] = FILES[name];
  const root = join(CGROUPS, IS_UNIFIED ? '' : 'cpuset');
  const path = (await pod.cpusetFolder()).slice(root.length);
  return Number.parseInt(readFileSync(join(CGROUPS, controller, path, file), 'utf8'), 10);
}

describe('A CRI client updates a container', () => {
  const fixture = useNodeFixture();

  async function startBoth() {
    const { manager } = await fixture.startNode();
    const shared = await fixture.pods.runPod('shared');
    const exclusive = await fixture.pods.runPod('exclusive', EXCLUSIVE);
    const cpus = { shared: (await shared.allowed()).cpus, exclusive: (await exclusive.allowed()).cpus };
    assert.notEqual(cpus.shared, cpus.exclusive);
    return { manager, shared, exclusive, cpus };
  }

  it('which keeps its exclusive CPUs, whichever CPUs are requested', async () => {
    const { shared, exclusive, cpus } = await startBoth();
    for (const cpuset_cpus of [ALL.cpus, cpus.shared, cpus.exclusive]) {
      await exclusive.update({ cpuset_cpus });
      assert.equal((await exclusive.allowed()).cpus, cpus.exclusive);
      assert.equal((await shared.allowed()).cpus, cpus.shared);
    }
  });

  it('which stays in the shared pool, whichever CPUs are requested', async () => {
    const { manager, shared, exclusive, cpus } = await startBoth();
    for (const cpuset_cpus of [ALL.cpus, cpus.exclusive, cpus.shared]) {
      await shared.update({ cpuset_cpus });
      assert.equal((await shared.allowed()).cpus, cpus.shared);
    }
    await exclusive.stop();
    assert.equal((await shared.allowed()).cpus, cpus.shared);
    await until('the end of the grant', () => manager.grants().length === 0);
    await shared.update({ cpuset_cpus: ALL.cpus });
    assert.equal((await shared.allowed()).cpus, ALL.cpus);
  });

  it('which gets the requested quota and memory', async () => {
    const { manager, shared, exclusive, cpus } = await startBoth();
    await shared.update({ cpu_period: 100_000, cpu_quota: 25_000, memory_limit_in_bytes: 32 << 20 });
    assert.equal(await limitOf(shared, 'quota'), 25_000);
    assert.equal(await limitOf(shared, 'memory'), 32 << 20);
    assert.equal((await shared.allowed()).cpus, cpus.shared);
    await exclusive.update({ memory_limit_in_bytes: 96 << 20 });
    assert.equal(await limitOf(exclusive, 'memory'), 96 << 20);
    assert.equal((await exclusive.allowed()).cpus, cpus.exclusive);
    assert.equal(String(manager.grants()[0].cpus), cpus.exclusive);
  });

  it('which requests more exclusive CPUs than there are, and gets the reason', async () => {
    const { manager, shared, exclusive, cpus } = await startBoth();
    await assert.rejects(exclusive.update(guaranteed(64)), {
      message: /64 (exclusive CPUs )?requested.* free by NUMA node: /,
    });
    assert.equal(await limitOf(exclusive, 'quota'), 100_000);
    assert.equal((await exclusive.allowed()).cpus, cpus.exclusive);
    assert.equal((await shared.allowed()).cpus, cpus.shared);
    assert.equal(String(manager.grants()[0].cpus), cpus.exclusive);
  });

  it('which has exclusive CPUs, and cannot have a part of one', async () => {
    const { exclusive, cpus } = await startBoth();
    await assert.rejects(exclusive.update({ cpu_period: 100_000, cpu_quota: 150_000, cpu_shares: 1536 }), {
      message: /default\/exclusive\/main has exclusive CPUs, which must be a whole number/,
    });
    assert.equal(await limitOf(exclusive, 'quota'), 100_000);
    assert.equal((await exclusive.allowed()).cpus, cpus.exclusive);
  });
});
