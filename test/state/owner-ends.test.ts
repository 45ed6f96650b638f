// needs: process
// Living and ended owners, as plans and admissions see it: each is checked once, as long as the
// kernel reports nothing about its file.
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { mortalOwners } from '../../lib/account/owners-of-pods.js';
import type { OwnerRecord } from '../../lib/account/pod-assignment.js';
import { native } from '../../lib/base/native.js';
import { affinity } from '../../lib/entries/diagnostics.js';
import { discover } from '../../lib/entries/topology.js';
import { type Manager, openManager } from '../../lib/index.js';
import { statOf } from '../../lib/processes/process-identity.js';
import { Ledger } from '../../lib/state/ledger.js';
import { LivingOwners, type OwnerLooks } from '../../lib/state/owners/living-owners.js';
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

/** True if a pod could have the CPUs of the other process: one of the other CPUs stays shared. */
const isFree = (manager: Manager) => manager.plan({ containers: [guaranteed('app', { cpu: 2 })] }).admitted;

const nextTurn = () => new Promise(setImmediate);

// For a watch that began at 0: files that were closed before have no locks any more.
const LATER_S = 1e9;

// Other files of this process have notices too, and a machine may have no inotify left for a moment.
const noticesAreRead = (watch: OwnerWatch) => expect.poll(() => watch.era).toBeDefined();

/** The state of the other's owner, and how often it was checked. */
async function known({
  now = () => LATER_S,
  areNoticesComplete = () => true,
}: Partial<Pick<OwnerLooks, 'now' | 'areNoticesComplete'>> = {}) {
  const { stateDir, agent, file, pods } = await beside();
  const watch = new OwnerWatch(stateDir, {
    closed: (name) => living.doubt(name),
    disturbed: (name) => living.doubt(name!),
    placed: (name) => living.settle(name),
    missed() {},
  });
  const folder = native.Folder.open(join(file, '..'), false, 0o700, -1);
  const hasEnded = (uuid: string) => !folder.isOwnerAlive(uuid);
  const living = new LivingOwners(watch, { areNoticesComplete, hasEnded, now });
  watch.start();
  onTestFinished(() => watch.stop());
  await noticesAreRead(watch);
  const owners = mortalOwners(pods());
  const look = vi.fn(({ uuid }: OwnerRecord) => folder.isOwnerAlive(uuid));
  return { stateDir, agent, file, watch, living, look, dead: () => living.deadAmong(owners, look) };
}

it('checks an owner once', async () => {
  const { look, dead } = await known();
  for (let n = 0; n < 10; n++) expect(dead()).toEqual([]);
  expect(look).toHaveBeenCalledTimes(1);
});

it('checks an owner once more if the notices begin again', async () => {
  const { watch, look, dead } = await known();
  dead();
  watch.restart();
  await noticesAreRead(watch);
  for (let n = 0; n < 10; n++) expect(dead()).toEqual([]);
  expect(look).toHaveBeenCalledTimes(2);
});

it('checks each time as long as a file that was closed before the notices may be locked', async () => {
  let now = 0;
  const { watch, look, dead } = await known({ now: () => now });
  const { begin } = watch.era!;
  for (const since of [0, 0.5, 0.99]) {
    now = begin + since;
    dead();
  }
  expect(look).toHaveBeenCalledTimes(3);
  now = begin + 1.01;
  for (let n = 0; n < 10; n++) dead();
  expect(look).toHaveBeenCalledTimes(4);
});

it('checks each time if the notices of the files are incomplete', async () => {
  const { look, dead } = await known({ areNoticesComplete: () => false });
  for (let n = 0; n < 3; n++) dead();
  expect(look).toHaveBeenCalledTimes(3);
});

it('checks each time while a notice is pending, even of another file', async () => {
  const { file, watch, look, dead } = await known();
  dead();
  closeSync(openSync(join(file, '..', 'another'), 'w'));
  for (let n = 0; n < 3; n++) dead();
  expect(look).toHaveBeenCalledTimes(4);
  await noticesAreRead(watch);
  for (let n = 0; n < 3; n++) dead();
  expect(look).toHaveBeenCalledTimes(4);
});

it('checks an owner once more if notices were lost', { timeout: 60_000 }, async () => {
  const { file, watch, look, dead } = await known();
  dead();
  const most = Number(readFileSync('/proc/sys/fs/inotify/max_queued_events', 'latin1'));
  // Alternating names: the kernel merges two equal notices in a row.
  for (let n = 0; n <= most; n++) closeSync(openSync(join(file, '..', `another-${n % 2}`), 'w'));
  await noticesAreRead(watch);
  for (let n = 0; n < 3; n++) expect(dead()).toEqual([]);
  expect(look).toHaveBeenCalledTimes(2);
});

it('checks each time an owner whose file was closed', async () => {
  const { file, look, dead } = await known();
  dead();
  closeSync(openSync(file, 'r+'));
  for (let n = 1; n <= 5; n++) {
    expect(dead()).toEqual([]);
    expect(look).toHaveBeenCalledTimes(1 + n);
    await nextTurn();
  }
});

it('checks each time an owner whose file was moved away, and once when it is back', async () => {
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

it('checks each time if another folder is in the place of the watched one', async () => {
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

it('checks each time an owner whose file was closed, however many others end afterwards', async () => {
  const { file, living, look, dead } = await known();
  living.doubt(basename(file));
  for (let n = 0; n < 1000; n++) living.doubt(`of an owner that has ended ${n}`);
  for (let n = 0; n < 3; n++) dead();
  expect(look).toHaveBeenCalledTimes(3);
});

it('sees the end of an owner whose file was moved away before', async () => {
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

it('sees the end of an owner whose file another process has opened and closed', async () => {
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

const blockLoop = (ms: number) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

// An old result is not checked again.
const SETTLED_MS = 1100;

function unlessGone<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch {
    return undefined;
  }
}

const admitApp = (manager: Manager) => manager.admit({ containers: [guaranteed('app', { cpu: 2 })] });

it('gives an admission the CPUs of an owner that has just ended', async () => {
  const { manager, agent } = await beside({ sharedMember: false });
  await setTimeout(SETTLED_MS);
  await expect(admitApp(manager)).rejects.toThrow();
  await agent.kill();
  expect((await admitApp(manager)).containers).toHaveLength(1);
});

it('gives an admission the CPUs of an owner that ended while the event loop was blocked', async () => {
  const { manager, agent } = await beside({ sharedMember: false });
  await setTimeout(SETTLED_MS);
  await expect(admitApp(manager)).rejects.toThrow();
  agent.process.kill('SIGKILL');
  blockLoop(500);
  expect((await admitApp(manager)).containers).toHaveLength(1);
});

// Two of the CPUs of this machine, one of which stays shared.
const ALL = affinity();

it.runIf(ALL.size > 1)(
  'gives an admission the CPUs that an owner’s child keeps once the child has ended, and not before',
  async () => {
    const stateDir = makeStateDir();
    const manager = await openManager({ stateDir, sharedMember: false, cpuManagerReconcilePeriod: '1h' });
    onTestFinished(() => manager.close());
    const agent = new Agent();
    await agent.tell('open', { stateDir });
    const cpu = ALL.size - 1;
    await agent.tell('acquire', { cpu });
    const child = await agent.tell('spawn', ['sleep', '60']);
    onTestFinished(() => void unlessGone(() => process.kill(child, 'SIGKILL')));
    await setTimeout(SETTLED_MS);
    await agent.kill();
    const admit = () => manager.admit({ containers: [guaranteed('app', { cpu })] });
    await expect(admit()).rejects.toThrow();
    process.kill(child, 'SIGKILL');
    await expect.poll(() => unlessGone(() => statOf(child).state) ?? 'gone').toMatch(/^(Z|X|gone)$/);
    expect((await admit()).containers).toHaveLength(1);
  },
);

describe('a check of many cgroups that own grants', () => {
  const cgroup = (i: number) => ({ kind: 'cgroup', uuid: `${i}`, pid: null }) as OwnerRecord;
  const owners = Array.from({ length: 10 }, (_, i) => cgroup(i));
  const few = (isOver: (owner: OwnerRecord) => boolean, list = owners) => {
    const living = new LivingOwners(
      { era: undefined },
      { areNoticesComplete: () => true, hasEnded: () => false, now: () => LATER_S },
    );
    const look = vi.fn((owner: OwnerRecord) => !isOver(owner));
    return { living, look, dead: (most?: number) => living.deadAmong(list, look, most) };
  };

  it('covers some, other ones each time, until all had their turn', () => {
    const { look, dead } = few(() => false);
    for (let n = 0; n < 3; n++) dead(4);
    expect(look).toHaveBeenCalledTimes(12);
    expect(new Set(look.mock.calls.map(([{ uuid }]) => uuid)).size).toBe(10);
  });

  it('covers all if there are few, or if all are requested', () => {
    const { look, dead } = few(() => false);
    dead(10);
    dead();
    expect(look).toHaveBeenCalledTimes(20);
  });

  it('covers a dead one each time, as long as it is on record', () => {
    let isOver = (_: OwnerRecord) => false;
    const { living, look, dead } = few((owner) => isOver(owner));
    isOver = ({ uuid }) => uuid === '9';
    expect(dead(4)).toEqual([]);
    // A request for this one alone.
    expect(living.deadAmong([owners[9]!], look)).toEqual([owners[9]]);
    expect(living.deadAmong([owners[8]!], look)).toEqual([]);
    for (let n = 0; n < 3; n++) expect(dead(1)).toEqual([owners[9]]);
    living.deadAmong(owners.slice(0, 9), look, 1);
    look.mockClear();
    dead(1);
    expect(look).toHaveBeenCalledTimes(1);
  });

  it('covers all processes beside them', () => {
    const processes = Array.from(
      { length: 3 },
      (_, i) => ({ kind: 'process', uuid: `p${i}` }) as OwnerRecord,
    );
    const { look, dead } = few(({ kind }) => kind === 'process', [...owners, ...processes]);
    expect(dead(2)).toEqual(processes);
    expect(look).toHaveBeenCalledTimes(5);
  });
});
