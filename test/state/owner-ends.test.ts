// Whether other owners live, as plans see it: each is looked at once, as long as the kernel says
// nothing of its file.
import { closeSync, mkdirSync, openSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { mortalOwners } from '../../lib/account/owners-of-pods.js';
import type { OwnerRecord } from '../../lib/account/pod-assignment.js';
import { native } from '../../lib/base/native.js';
import { discover } from '../../lib/entries/topology.js';
import { type Manager, openManager } from '../../lib/index.js';
import { Ledger } from '../../lib/state/ledger.js';
import { LivingOwners } from '../../lib/state/owners/living-owners.js';
import { OwnerWatch } from '../../lib/state/owners/owner-watch.js';
import { Agent } from '../support/agent.js';
import { guaranteed } from '../support/simulated.js';
import { makeStateDir } from '../support/state-dir.js';

const MACHINE = 'core:4 pu:1';
const LONGEST_MS = 10_000;

/** A manager beside that of another process, which has two of four CPUs. */
async function beside(options = {}) {
  const stateDir = makeStateDir();
  const topology = await discover({ synthetic: MACHINE });
  const manager = await openManager({ topology, stateDir, ...options });
  onTestFinished(() => manager.close());
  const agent = new Agent();
  await agent.tell('open', { stateDir, simulate: MACHINE });
  await agent.tell('acquire', { cpu: 2 });
  const [uuid] = readdirSync(join(stateDir, 'owners'));
  const pods = () => Ledger.open(stateDir).read()!.assignments.pods;
  return { stateDir, manager, agent, file: join(stateDir, 'owners', uuid!), pods };
}

/** Whether a pod could have what the other process has: one of the other CPUs stays shared. */
const isFree = (manager: Manager) => manager.plan({ containers: [guaranteed('app', { cpu: 2 })] }).admitted;

const nextTurn = () => new Promise(setImmediate);

/** What is known of the other's owner, and how often it was looked at. */
async function known() {
  const { stateDir, agent, file, pods } = await beside();
  const watch = new OwnerWatch(stateDir, {
    closed: (name) => living.doubt(name),
    disturbed: (name) => living.doubt(name!),
    placed: (name) => living.settle(name),
    missed() {},
  });
  const living = new LivingOwners(watch, () => true);
  watch.start();
  onTestFinished(() => watch.stop());
  const owners = mortalOwners(pods());
  const folder = native.Folder.open(join(file, '..'), false, 0o700, -1);
  const look = vi.fn(({ uuid }: OwnerRecord) => folder.isOwnerAlive(uuid));
  return { stateDir, agent, file, living, look, dead: () => living.deadAmong(owners, look) };
}

it('looks at an owner once', async () => {
  const { look, dead, living } = await known();
  for (let n = 0; n < 10; n++) expect(dead()).toEqual([]);
  expect(look).toHaveBeenCalledTimes(1);
  living.forget();
  for (let n = 0; n < 10; n++) expect(dead()).toEqual([]);
  expect(look).toHaveBeenCalledTimes(2);
});

it('looks each time at an owner whose file was closed', async () => {
  const { file, look, dead } = await known();
  dead();
  closeSync(openSync(file, 'r+'));
  for (let n = 1; n <= 5; n++) {
    expect(dead()).toEqual([]);
    expect(look).toHaveBeenCalledTimes(1 + n);
    await nextTurn();
  }
});

it('looks each time at an owner whose file is elsewhere, and once where it is there again', async () => {
  const { stateDir, agent, file, look, dead } = await known();
  agent.process.kill('SIGSTOP');
  renameSync(file, join(stateDir, 'away'));
  await nextTurn();
  dead();
  dead();
  expect(look).toHaveBeenCalledTimes(2);
  renameSync(join(stateDir, 'away'), file);
  await nextTurn();
  for (let n = 0; n < 5; n++) expect(dead()).toEqual([]);
  expect(look).toHaveBeenCalledTimes(3);
  agent.process.kill('SIGCONT');
});

it('looks each time where another folder is in the place of the one that is watched', async () => {
  const { stateDir, agent, file, look, dead } = await known();
  dead();
  agent.process.kill('SIGSTOP');
  const folder = join(stateDir, 'owners');
  renameSync(folder, join(stateDir, 'away'));
  mkdirSync(folder);
  renameSync(join(stateDir, 'away', basename(file)), file);
  for (let n = 1; n <= 3; n++) {
    dead();
    expect(look).toHaveBeenCalledTimes(1 + n);
    await nextTurn();
  }
  agent.process.kill('SIGCONT');
});

it('remembers the files of many others that were closed no longer than they matter', async () => {
  const { file, living, look, dead } = await known();
  living.doubt(basename(file));
  dead();
  for (let n = 0; n < 1000; n++) living.doubt(`of an owner that has ended ${n}`);
  dead();
  dead();
  expect(look).toHaveBeenCalledTimes(2);
});

it('sees that an owner has ended whose file was moved away before', async () => {
  const { stateDir, manager, agent, file } = await beside();
  expect(isFree(manager)).toBe(false);
  agent.process.kill('SIGSTOP');
  renameSync(file, join(stateDir, 'away'));
  for (let n = 0; n < 3; n++) {
    expect(isFree(manager)).toBe(false);
    await nextTurn();
  }
  agent.process.kill('SIGKILL');
  const begin = Date.now();
  while (!isFree(manager)) expect(Date.now() - begin).toBeLessThan(LONGEST_MS);
});

it('sees the end of an owner before its event loop has the notice', async () => {
  const { manager, agent } = await beside();
  await nextTurn();
  expect(isFree(manager)).toBe(false);
  agent.process.kill('SIGKILL');
  const begin = Date.now();
  while (!isFree(manager)) expect(Date.now() - begin).toBeLessThan(LONGEST_MS);
});

it('sees the end of an owner after its event loop has had the notice', async () => {
  const { manager, agent } = await beside({ sharedMember: false });
  await nextTurn();
  expect(isFree(manager)).toBe(false);
  await agent.kill();
  expect(isFree(manager)).toBe(true);
  await nextTurn();
  expect(isFree(manager)).toBe(true);
});

it('sees the end of an owner whose file somebody else has opened and closed', async () => {
  const { manager, agent, file } = await beside();
  closeSync(openSync(file, 'r+'));
  for (let n = 0; n < 3; n++) {
    await nextTurn();
    expect(isFree(manager)).toBe(false);
  }
  agent.process.kill('SIGKILL');
  const begin = Date.now();
  while (!isFree(manager)) expect(Date.now() - begin).toBeLessThan(LONGEST_MS);
});

it('counts an owner as living whose file was removed', async () => {
  const { manager, agent, file } = await beside();
  expect(isFree(manager)).toBe(false);
  agent.process.kill('SIGSTOP');
  rmSync(file);
  for (let n = 0; n < 3; n++) {
    expect(isFree(manager)).toBe(false);
    await nextTurn();
  }
  agent.process.kill('SIGCONT');
  await expect.poll(() => readdirSync(join(file, '..'))).toHaveLength(1);
  expect(isFree(manager)).toBe(false);
});
