// Other programs change partitions and cgroups of numalign, in a throw-away machine: at least 16
// CPUs, root, cgroup v2. Run by node --test.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, test } from 'node:test';
import { affinity } from '../../../dist/entries/diagnostics.js';
import { pin } from '../../../dist/index.js';
import { removeCgroup } from './cgroup-removal.mjs';
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

// Delegated: below the cgroup of another program.
const PARENT = join(MOUNT, 'drift-parent');
async function below(kind, list) {
  mkdirSync(PARENT);
  put(PARENT, 'cpuset.cpus', list);
  if (kind !== 'member') put(PARENT, 'cpuset.cpus.partition', kind);
  put(PARENT, 'cgroup.subtree_control', '+cpuset');
  mkdirSync(join(PARENT, 'home'));
  put(join(PARENT, 'home'), 'cgroup.procs', String(process.pid));
  const manager = await open({ cgroupRoot: '/drift-parent/numalign', managedCPUs: '4-11' });
  const member = spawn('sleep', ['1000'], { stdio: 'ignore' });
  return { manager, member, root: join(PARENT, 'numalign') };
}

/** A pinned grant beside a member that a cgroup of the root holds. */
async function grantBesidePool({ manager, member, root }) {
  mkdirSync(join(root, 'pool'), { recursive: true });
  put(root, 'cgroup.subtree_control', '+cpuset');
  put(join(root, 'pool'), 'cgroup.procs', String(member.pid));
  await manager.addSharedMember({ cgroup: join(root, 'pool') });
  const grant = await manager.acquire({ cpu: 2, enforcement: 'cpuset', require: 'cpuset' });
  grant.pin();
  return grant;
}

async function endBelow({ manager, member }) {
  for (const { uid } of manager.grants()) await manager.release(uid);
  put(MOUNT, 'cgroup.procs', String(process.pid));
  member.kill('SIGKILL');
  if (member.exitCode === null && member.signalCode === null) await once(member, 'exit');
  removeCgroup(PARENT);
}

test('a root that another program has narrowed gets its CPUs again, and so do the groups below', async () => {
  const host = await below('member', '0-15');
  const { manager, root } = host;
  try {
    const grant = await grantBesidePool(host);
    assert.deepEqual(kinds(await manager.reconcile()), []);
    const other = String(manager.sharedPool().first);
    put(root, 'cpuset.cpus', other);
    assert.equal(String(affinity()), other);
    const found = kinds(await manager.reconcile());
    assert.ok(found.length > 0 && found.every(([, repaired]) => repaired), JSON.stringify(found));
    assert.equal(String(affinity()), String(grant.cpus));
    assert.equal(grant.enforcement, 'cpuset');
    put(root, 'cpuset.mems', '0');
    assert.deepEqual(kinds(await manager.reconcile()), [['memory', true]]);
  } finally {
    await endBelow(host);
  }
});

test('a grant loses its level with the CPUs of the cgroup above the root, and gets it back with them', async () => {
  const host = await below('member', '0-15');
  const { manager } = host;
  try {
    const grant = await grantBesidePool(host);
    put(PARENT, 'cpuset.cpus', String(manager.sharedPool().first));
    const found = await manager.reconcile();
    assert.ok(
      kinds(found).some(([kind, repaired]) => kind === 'cgroup' && !repaired),
      JSON.stringify(found),
    );
    assert.equal(grant.enforcement, 'recorded');
    assert.equal(found.drifts.at(-1).kind, 'level');
    put(PARENT, 'cpuset.cpus', '0-15');
    const later = kinds(await manager.reconcile());
    assert.ok(
      later.every(([, repaired]) => repaired),
      JSON.stringify(later),
    );
    assert.deepEqual(later.at(-1), ['level', true]);
    assert.equal(grant.enforcement, 'cpuset');
  } finally {
    await endBelow(host);
  }
});

test('a partition below another one says so when that one loses its CPUs', async () => {
  const host = await below('root', '4-11');
  const { manager, root } = host;
  try {
    const grant = await manager.acquire({ cpu: 2, require: 'partition' });
    assert.equal(partition(root), 'root');
    put(PARENT, 'cpuset.cpus', String(manager.sharedPool()));
    const found = await manager.reconcile();
    assert.ok(
      kinds(found).some(([kind, repaired]) => kind === 'partition' && !repaired),
      JSON.stringify(found),
    );
    assert.ok(['members', 'recorded'].includes(grant.enforcement), grant.enforcement);
    assert.equal(found.drifts.at(-1).kind, 'level');
  } finally {
    await endBelow(host);
  }
});

test('a partition whose exclusive CPUs another program has changed gets them again', async (context) => {
  const { manager } = await managed();
  const grant = await manager.acquire({ cpu: 4 });
  if (!existsSync(join(ROOT, 'cpuset.cpus.exclusive'))) {
    await grant.release();
    return context.skip('this kernel has no cpuset.cpus.exclusive');
  }
  for (const list of [String(grant.cpus.first), String(manager.sharedPool().first)]) {
    put(ROOT, 'cpuset.cpus.exclusive', list);
    const report = await manager.reconcile();
    assert.deepEqual(kinds(report), [['partition', true]], JSON.stringify(report.drifts));
    assert.deepEqual([partition(), effective()], ['root', String(grant.cpus)]);
  }
  await grant.release();
});

test('a partition whose CPUs another cgroup has taken ends, is tried twice again, and is back once it can be', async (context) => {
  const { manager } = await managed();
  const grant = await manager.acquire({ cpu: 4 });
  const beside = join(MOUNT, 'drift-beside');
  mkdirSync(beside);
  try {
    put(ROOT, 'cpuset.cpus.partition', 'member');
    const file = existsSync(join(beside, 'cpuset.cpus.exclusive')) ? 'cpuset.cpus.exclusive' : 'cpuset.cpus';
    put(ROOT, 'cpuset.cpus', '\n');
    put(beside, file, String(grant.cpus));
    if (file === 'cpuset.cpus') put(beside, 'cpuset.cpus.partition', 'root');
    const found = await manager.reconcile();
    context.diagnostic(JSON.stringify(found.drifts.map(({ what }) => what)));
    assert.ok(
      kinds(found).some(([kind, repaired]) => kind === 'partition' && !repaired),
      JSON.stringify(found),
    );
    assert.notEqual(grant.enforcement, 'partition');
    const outcomes = [];
    for (let round = 0; round < 4; round++) outcomes.push(kinds(await manager.reconcile()));
    const refusal = ['level', false];
    assert.deepEqual(outcomes, [[refusal], [refusal], [refusal], []]);
    rmdirSync(beside);
    assert.deepEqual(kinds(await manager.reconcile()), [['level', true]]);
    assert.equal(grant.enforcement, 'partition');
    assert.deepEqual([partition(), effective()], ['root', String(grant.cpus)]);
    await grant.release();
  } finally {
    if (existsSync(beside)) removeCgroup(beside);
  }
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
