// Other programs change partitions and cgroups of numalign, in a throw-away machine: at least 16
// CPUs, root, cgroup v2. Run by node --test.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, test } from 'node:test';
import { affinity } from '../../../dist/entries/diagnostics.js';
import { pin } from '../../../dist/index.js';
import * as kernel from './kernel-view.mjs';
import { newStateDir, open } from './state-folders.mjs';

const MOUNT = '/sys/fs/cgroup';
const ROOT = join(MOUNT, 'numalign-drift');
const OWN_CPUS = affinity();
const put = (folder, file, text) => writeFileSync(join(folder, file), text);
const partition = (folder = ROOT) => kernel.read(folder, 'cpuset.cpus.partition').trim();
const effective = (folder = ROOT) => kernel.read(folder, 'cpuset.cpus.effective').trim();
const cgroupOf = (pid) => /^0::(.*)$/m.exec(readFileSync(`/proc/${pid}/cgroup`, 'utf8'))[1];
const groupsOfGrants = () =>
  readdirSync(ROOT, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(ROOT, name));

afterEach(() => void pin(OWN_CPUS));
// A cgroup in it would be in the way of other partitions.
after(() => rmdirSync(ROOT));

async function managed() {
  const manager = await open({ cgroupRoot: '/numalign-drift' });
  const drifts = [];
  manager.on('drift', (drift) => drifts.push(drift));
  return { manager, drifts };
}

/** The events of one round, by kind. */
const kinds = ({ drifts }) => drifts.map(({ kind, repaired }) => [kind, repaired]);

test('a partition that another program ends is made again, and threads are where they were', async () => {
  const { manager, drifts } = await managed();
  const grant = await manager.acquire({ cpu: 4 });
  grant.pin();
  const [first] = grant.cpus;
  grant.pin({ threads: 'current' });
  pin(String(first), { threads: 'current' });
  assert.deepEqual(kinds(await manager.reconcile()), []);
  put(ROOT, 'cpuset.cpus.partition', 'member');
  // Linux before 6.2 resets masks then.
  pin(String(first), { threads: 'current' });
  assert.deepEqual(kinds(await manager.reconcile()), [['partition', true]]);
  assert.deepEqual([partition(), effective()], ['root', String(grant.cpus)]);
  assert.equal(String(affinity()), String(first));
  assert.equal(manager.grants()[0].enforcement, 'partition');
  assert.deepEqual(
    drifts.map(({ kind, contested }) => [kind, contested]),
    [['partition', false]],
  );
  assert.deepEqual(kinds(await manager.reconcile()), []);
  await grant.release();
});

test('a process in a cgroup without the cpuset controller is pinned, and goes back there', async () => {
  const home = join(MOUNT, 'plain', 'service');
  mkdirSync(home, { recursive: true });
  assert.ok(!existsSync(join(home, 'cpuset.cpus.effective')));
  put(home, 'cgroup.procs', String(process.pid));
  try {
    const options = { stateDir: newStateDir(), cgroupRoot: '/numalign-drift' };
    const manager = await open(options);
    const first = await manager.acquire({ cpu: 4 });
    const other = await open(options);
    assert.deepEqual(String(other.topology.allowed), '0-15');
    first.pin();
    for (const mask of kernel.masks()) assert.deepEqual(mask, first.cpus.toArray());
    await first.unpin();
    assert.equal(cgroupOf(process.pid), '/plain/service');
    assert.ok(!affinity().intersects(first.cpus));
    await first.release();
    assert.deepEqual(affinity(), OWN_CPUS);
  } finally {
    put(MOUNT, 'cgroup.procs', String(process.pid));
    rmdirSync(home);
    rmdirSync(join(MOUNT, 'plain'));
  }
});

test('a partition with lost or foreign CPUs gets the CPUs of its grants again', async () => {
  const { manager } = await managed();
  const grant = await manager.acquire({ cpu: 4 });
  for (const list of [String(grant.cpus.first), '0-15']) {
    put(ROOT, 'cpuset.cpus', list);
    assert.deepEqual(kinds(await manager.reconcile()), [['partition', true]]);
    assert.deepEqual([partition(), effective()], ['root', String(grant.cpus)]);
  }
  await grant.release();
});

test('an isolated partition that another program makes a member is isolated again', async () => {
  const { manager } = await managed();
  const grant = await manager.acquire({ cpu: 2, require: 'isolated' });
  const [group] = groupsOfGrants();
  assert.equal(partition(group), 'isolated');
  put(group, 'cpuset.cpus.partition', 'member');
  assert.deepEqual(kinds(await manager.reconcile()), [['partition', true]]);
  assert.deepEqual([partition(group), effective(group)], ['isolated', String(grant.cpus)]);
  await grant.release();
});

test('a process that was moved out of the cgroup of its grant is moved back', async () => {
  const { manager } = await managed();
  const grant = await manager.acquire({ cpu: 2 });
  grant.pin();
  const home = cgroupOf(process.pid);
  put(MOUNT, 'cgroup.procs', String(process.pid));
  assert.notDeepEqual(kernel.masks()[0], grant.cpus.toArray());
  assert.deepEqual(kinds(await manager.reconcile()), [['cgroup', true]]);
  assert.equal(cgroupOf(process.pid), home);
  for (const mask of kernel.masks()) assert.deepEqual(mask, grant.cpus.toArray());
  await grant.release();
});

test('a cgroup that another program has narrowed gets the CPUs of its grant again', async () => {
  const { manager } = await managed();
  const grant = await manager.acquire({ cpu: 4 });
  grant.pin();
  const [group] = groupsOfGrants();
  put(group, 'cpuset.cpus', String(grant.cpus.first));
  const { repaired } = await manager.reconcile();
  assert.ok(repaired > 0);
  assert.equal(effective(group), String(grant.cpus));
  assert.deepEqual(kinds(await manager.reconcile()), []);
  await grant.release();
});

test('a setting that another program changes again and again is left to it, and the record says so', async () => {
  const { manager, drifts } = await managed();
  const grant = await manager.acquire({ cpu: 2 });
  for (let round = 0; round < 3; round++) {
    put(ROOT, 'cpuset.cpus.partition', 'member');
    await manager.reconcile();
  }
  assert.deepEqual(
    drifts.filter(({ kind }) => kind === 'partition').map(({ repaired, contested }) => [repaired, contested]),
    [
      [true, false],
      [true, false],
      [false, true],
    ],
  );
  const [{ enforcement }] = manager.grants();
  assert.notEqual(enforcement, 'partition');
  assert.equal(drifts.at(-1).kind, 'level');
  await grant.release();
});
