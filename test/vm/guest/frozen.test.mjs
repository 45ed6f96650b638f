// Owners, members and their cgroups that another program freezes (cgroup v2), in a throw-away
// machine: at least 16 CPUs, root. Run by node --test.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, test } from 'node:test';
import { Actor } from './actors.mjs';
import { removeCgroup } from './cgroup-removal.mjs';
import * as kernel from './kernel-view.mjs';
import { newStateDir, open } from './state-folders.mjs';

const MOUNT = '/sys/fs/cgroup';
const NAME = '/numalign-frozen';
const ROOT = join(MOUNT, NAME);
const ICE = join(MOUNT, 'frozen-ice');
// No step waits for a frozen process.
const AT_ONCE_MS = 10_000;

const put = (folder, file, text) => writeFileSync(join(folder, file), `${text}\n`);
const groupsOfGrants = () =>
  readdirSync(ROOT, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(ROOT, name));

async function freeze(folder) {
  put(folder, 'cgroup.freeze', '1');
  while (!/^frozen 1$/m.test(readFileSync(join(folder, 'cgroup.events'), 'utf8')))
    await new Promise((resolve) => setTimeout(resolve, 5));
}

async function atOnce(action) {
  const start = performance.now();
  const result = await action();
  assert.ok(performance.now() - start < AT_ONCE_MS, `took ${performance.now() - start} ms`);
  return result;
}

const processes = [];
afterEach(() => {
  for (const child of processes.splice(0)) child.kill('SIGKILL');
  if (existsSync(ICE)) removeCgroup(ICE);
});
after(() => existsSync(ROOT) && removeCgroup(ROOT));

function idler(folder) {
  const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
  processes.push(child);
  if (folder) put(folder, 'cgroup.procs', child.pid);
  return child.pid;
}

function makeIce(folder = ICE) {
  mkdirSync(folder, { recursive: true });
  return folder;
}

test('a frozen owner keeps its grant while others come and go, and can be killed', async () => {
  const options = { stateDir: newStateDir(), cgroupRoot: NAME };
  const owner = new Actor();
  processes.push(owner.process);
  await owner.open(options);
  const { uid, cpus } = await owner.acquire({ cpu: 2 });
  await owner.grant('pin');
  const [group] = groupsOfGrants();
  await freeze(group);
  const manager = await open(options);
  for (let round = 0; round < 2; round++) {
    const grant = await atOnce(() => manager.acquire({ cpu: 4 }));
    assert.equal(grant.enforcement, 'partition');
    assert.ok(!grant.cpus.intersects(manager.grant(uid).cpus));
    await atOnce(() => manager.reconcile());
    await atOnce(() => grant.release());
  }
  assert.deepEqual(
    manager.grants().map(({ alive, cpus: list, enforcement }) => [alive, String(list), enforcement]),
    [[true, cpus, 'partition']],
  );
  await owner.kill();
  const next = await atOnce(() => manager.acquire({ cpu: 14 }));
  assert.equal(next.cpus.size, 14);
  await next.release();
});

test('a frozen member leaves granted CPUs, and may use them again', async () => {
  const pid = idler(makeIce());
  await freeze(ICE);
  const manager = await open();
  await manager.addSharedMember({ pid });
  await manager.addSharedMember({ cgroup: ICE });
  const grant = await atOnce(() => manager.acquire({ cpu: 4, require: 'members' }));
  assert.deepEqual(kernel.masks(pid), [manager.sharedPool().toArray()]);
  await atOnce(() => grant.release());
  assert.equal(kernel.masks(pid)[0].length, 16);
  assert.match(readFileSync(join(ICE, 'cgroup.events'), 'utf8'), /^frozen 1$/m);
});

test('a frozen cgroup below the root leaves granted CPUs', async () => {
  const options = { cgroupRoot: NAME, enforcement: 'cpuset' };
  const manager = await open(options);
  mkdirSync(ROOT, { recursive: true });
  put(MOUNT, 'cgroup.subtree_control', '+cpuset');
  put(ROOT, 'cgroup.subtree_control', '+cpuset');
  const pool = makeIce(join(ROOT, 'pool'));
  const pid = idler(pool);
  await freeze(pool);
  await manager.addSharedMember({ cgroup: pool });
  const grant = await atOnce(() => manager.acquire({ cpu: 4, require: 'cpuset' }));
  assert.deepEqual(kernel.masks(pid), [manager.sharedPool().toArray()]);
  assert.deepEqual((await atOnce(() => manager.reconcile())).drifts, []);
  await atOnce(() => grant.release());
  assert.equal(kernel.masks(pid)[0].length, 16);
  removeCgroup(pool);
});

test('a frozen process on a grant leaves it when the grant ends', async () => {
  const manager = await open({ cgroupRoot: NAME });
  const grant = await manager.acquire({ cpu: 2 });
  const pid = idler();
  grant.attach(pid);
  const [group] = groupsOfGrants();
  await freeze(group);
  await atOnce(() => grant.release());
  assert.ok(!existsSync(group));
  const next = await atOnce(() => manager.acquire({ cpu: 2 }));
  for (const mask of kernel.masks(pid)) assert.ok(!mask.some((cpu) => next.cpus.has(cpu)));
  await next.release();
});
