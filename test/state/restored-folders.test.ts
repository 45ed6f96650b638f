// needs: restores
// A state folder that another program puts back as it was, while its owners hold more than that: no
// CPU is granted twice, and both sides learn of it.
import { execFileSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { cpSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { native } from '../../lib/base/native.js';
import { discover } from '../../lib/entries/topology.js';
import { CpuSet, openManager } from '../../lib/index.js';
import { Agent } from '../support/agent.js';
import { isLong } from '../support/budget.mjs';
import { canUnshare } from '../support/rights.js';
import { makeStateDir } from '../support/state-dir.js';
import { stopWithoutLock } from '../support/stop.js';

const MACHINE = 'core:4 pu:1';

async function opener(stateDir: string, prefix: string[] = []): Promise<Agent> {
  const agent = new Agent(prefix);
  await agent.tell('open', { stateDir, simulate: MACHINE });
  return agent;
}

async function acquire(agent: Agent, cpu: number): Promise<{ uid: string; cpus: CpuSet }> {
  const { uid, cpus } = await agent.tell('acquire', { cpu });
  return { uid, cpus: CpuSet.parse(cpus) };
}

/** Opens the state and acquires a CPU. Returns the code of what refused it. */
async function refusalOf(stateDir: string, agent = new Agent()): Promise<string | undefined> {
  const opened = await agent.ask('open', { stateDir, simulate: MACHINE });
  const { error } = opened.error ? opened : await agent.ask('acquire', { cpu: 1 });
  return error?.code;
}

/** Waits until a process holds the lock. */
async function whileLocked(stateDir: string): Promise<void> {
  const folder = native.Folder.open(stateDir, false, 0o700, -1);
  const isLocked = () => {
    const lock = folder.tryLock('lock', 'a test');
    lock?.release();
    return lock === undefined;
  };
  await expect.poll(isLocked).toBe(true);
  folder.close();
}

const shell = (script: string, ...args: string[]) => execFileSync('sh', ['-ec', script, 'sh', ...args]);

const WAYS: [string, (stateDir: string, backup: string) => void][] = [
  ['over its files', (stateDir, backup) => shell('cp -a "$2"/. "$1"', stateDir, backup)],
  ['in new files', (stateDir, backup) => shell('cd "$1"; rm -r *; cp -a "$2"/. .', stateDir, backup)],
  ['as a new folder', (stateDir, backup) => shell('rm -r "$1"; cp -a "$2" "$1"', stateDir, backup)],
];

/** An owner that holds `earlier` CPUs in the backup, and 2 more since. It is stopped. */
async function stoppedOwner(earlier = 0) {
  const stateDir = makeStateDir();
  const backup = `${stateDir}.backup`;
  const owner = await opener(stateDir);
  const { uid } = await acquire(owner, 1);
  if (earlier === 0) await owner.tell('release', { uid });
  cpSync(stateDir, backup, { recursive: true, preserveTimestamps: true });
  const witness = await opener(stateDir);
  await witness.tell('grants');
  const held = await acquire(owner, 2);
  await stopWithoutLock(owner, stateDir);
  return { stateDir, backup, owner, witness, held };
}

/**
 * A stopped process, which has read the state before the `later` changes that the backup has too. The
 * owner holds 2 CPUs since the backup.
 */
async function stoppedTaker(later: number) {
  const stateDir = makeStateDir();
  const backup = `${stateDir}.backup`;
  const owner = await opener(stateDir);
  await owner.tell('release', await acquire(owner, 1));
  const taker = await opener(stateDir);
  await taker.tell('grants');
  await stopWithoutLock(taker, stateDir);
  for (let i = 0; i < later; i++) await owner.tell('release', await acquire(owner, 1));
  // To the nanosecond.
  shell('cp -a "$1" "$2"', stateDir, backup);
  const held = await acquire(owner, 2);
  return { stateDir, backup, owner, taker, held };
}

// Each takes seconds.
const SOME_WAYS = isLong ? WAYS : [WAYS[randomInt(WAYS.length)]!];

describe.each(SOME_WAYS)('a folder put back %s while its owner is stopped', (_, putBack) => {
  it('grants nothing, however often one asks, until the owner says what it holds', async () => {
    const { stateDir, backup, owner, held } = await stoppedOwner();
    putBack(stateDir, backup);
    const taker = new Agent();
    expect(await refusalOf(stateDir, taker)).toBe('ERR_STATE_CORRUPT');
    expect(await refusalOf(stateDir, taker)).toBe('ERR_STATE_CORRUPT');
    owner.process.kill('SIGCONT');
    const next = await opener(stateDir);
    const taken = await acquire(next, 1);
    expect(taken.cpus.intersects(held.cpus)).toBe(false);
    expect((await next.tell('grants')).map((grant: { uid: string }) => grant.uid)).toContain(held.uid);
  });

  it('has the owner report it as soon as its event loop turns', async () => {
    const { stateDir, backup, owner } = await stoppedOwner();
    putBack(stateDir, backup);
    owner.process.kill('SIGCONT');
    const report = {
      code: 'ERR_STATE_CORRUPT',
      value: [],
      message: expect.stringContaining(`files of the state in ${stateDir} while this process held grants`),
    };
    await expect.poll(() => owner.tell('errors')).toContainEqual(expect.objectContaining(report));
  });
});

describe('a folder that was put back', () => {
  const [[, overFiles], [, inNewFiles]] = WAYS as [(typeof WAYS)[0], (typeof WAYS)[0]];

  it('shows its owner what it holds before its event loop turns', async () => {
    const stateDir = makeStateDir();
    const topology = await discover({ synthetic: MACHINE });
    const manager = await openManager({ stateDir, topology });
    await (await manager.acquire({ cpu: 1 })).release();
    const backup = `${stateDir}.backup`;
    cpSync(stateDir, backup, { recursive: true });
    const { uid } = await manager.acquire({ cpu: 1 });
    inNewFiles(stateDir, backup);
    expect(manager.grants().map((grant) => grant.uid)).toEqual([uid]);
  });

  it('gives nothing to a process that had read the same state before', async () => {
    const { stateDir, backup, witness } = await stoppedOwner();
    overFiles(stateDir, backup);
    expect((await witness.ask('acquire', { cpu: 1 })).error?.code).toBe('ERR_STATE_CORRUPT');
  });

  it.each([
    ['is', 0],
    ['continues', 1],
  ])('gives nothing to a process for which it %s what that had read', async (_, later) => {
    const { stateDir, backup, owner, taker } = await stoppedTaker(later);
    await stopWithoutLock(owner, stateDir);
    overFiles(stateDir, backup);
    taker.process.kill('SIGCONT');
    expect((await taker.ask('acquire', { cpu: 1 })).error?.code).toBe('ERR_STATE_CORRUPT');
  });

  it('is recovered from what owners write into folders that others put there meanwhile', async () => {
    const { stateDir, backup, owner, witness, held } = await stoppedOwner();
    inNewFiles(stateDir, backup);
    const taking = acquire(witness, 1);
    await whileLocked(stateDir);
    shell('cd "$1"; rm -r owners; mkdir -p owners', stateDir);
    owner.process.kill('SIGCONT');
    expect((await taking).cpus.intersects(held.cpus)).toBe(false);
    expect((await witness.tell('grants')).map((grant: { uid: string }) => grant.uid)).toContain(held.uid);
    // Both hear of what happens in the new folder.
    const owners = () => readdirSync(join(stateDir, 'owners')).sort();
    await expect.poll(owners).toHaveLength(2);
    const files = owners();
    shell('rm "$1"/owners/*', stateDir);
    await expect.poll(owners).toEqual(files);
  });

  it('is not waited for once it has gone, whatever its owners do', async () => {
    const { stateDir, backup } = await stoppedOwner();
    inNewFiles(stateDir, backup);
    const opening = new Agent().ask('open', { stateDir, simulate: MACHINE });
    await whileLocked(stateDir);
    renameSync(stateDir, `${stateDir}.away`);
    expect((await opening).error?.code).toBe('ERR_STATE_FOLDER');
  });

  it('takes nothing from an owner that has read it, for one for which it continues what that had read', async () => {
    const { stateDir, backup, owner, taker, held } = await stoppedTaker(1);
    shell('cd "$2"; cat state.json >"$1"/state.json; cat lock >"$1"/lock', stateDir, backup);
    await owner.tell('grants');
    taker.process.kill('SIGCONT');
    expect((await acquire(taker, 1)).cpus.intersects(held.cpus)).toBe(false);
    expect((await taker.tell('grants')).map((grant: { uid: string }) => grant.uid)).toContain(held.uid);
  });

  it('gives away nothing that an owner on record has got since', async () => {
    const { stateDir, backup } = await stoppedOwner(1);
    inNewFiles(stateDir, backup);
    expect(await refusalOf(stateDir)).toBe('ERR_STATE_CORRUPT');
  });

  it('leaves its owner what it has got since, while another owner is stopped', async () => {
    const stateDir = makeStateDir();
    const backup = `${stateDir}.backup`;
    const topology = await discover({ synthetic: MACHINE });
    const manager = await openManager({ stateDir, topology });
    const grant = await manager.acquire({ cpu: 1 });
    cpSync(stateDir, backup, { recursive: true });
    await grant.resize({ cpu: 2 });
    const other = await opener(stateDir);
    await acquire(other, 1);
    await stopWithoutLock(other, stateDir);
    const cpus = String(grant.cpus);
    inNewFiles(stateDir, backup);
    // The attempt fails to put it right.
    await expect(manager.acquire({ cpu: 1 })).rejects.toMatchObject({ code: 'ERR_STATE_CORRUPT' });
    expect(String(grant.cpus)).toBe(cpus);
    await expect(grant.transfer()).rejects.toMatchObject({ code: 'ERR_STATE_CORRUPT' });
  });

  it('grants again once the owner has ended', async () => {
    const { stateDir, backup, owner } = await stoppedOwner();
    inNewFiles(stateDir, backup);
    await owner.kill();
    expect((await acquire(await opener(stateDir), 3)).cpus.size).toBe(3);
  });

  it('makes a request wait for a busy owner, and warns', async () => {
    const { stateDir, backup, owner, held } = await stoppedOwner();
    owner.process.kill('SIGCONT');
    await owner.tell('keepBusy', { ms: 700 });
    inNewFiles(stateDir, backup);
    const taker = await opener(stateDir);
    expect((await acquire(taker, 1)).cpus.intersects(held.cpus)).toBe(false);
    const warnings = [...(await taker.tell('warnings')), ...(await owner.tell('warnings'))];
    expect(warnings.map(({ code }) => code)).toContain('STATE_RECOVERED');
  });

  it.runIf(canUnshare)('has its owner name the grants that it has lost', async () => {
    const { stateDir, backup, owner, held } = await stoppedOwner();
    inNewFiles(stateDir, backup);
    // A process that cannot see locks gives them away.
    const blind = ['unshare', '-m', 'sh', '-c', 'mount --bind /dev/null /proc/locks && exec "$0" "$@"'];
    const taker = await opener(stateDir, blind);
    for (let i = 0; i < 3; i++) await acquire(taker, 1);
    owner.process.kill('SIGCONT');
    await expect
      .poll(() => owner.tell('errors'))
      .toContainEqual(expect.objectContaining({ code: 'ERR_STATE_CORRUPT', value: [held.uid] }));
  });
});

describe('a state that begins again', () => {
  const both = '"$1/state.json" "$1/state.copy.json"';
  it.each([
    ['its files', 'find "$1" -type f -delete', ':'],
    ['what was in its folder', 'rm -r "$1"/*', ':'],
    ['its files, and ends,', 'find "$1" -type f -delete', `rm ${both}`],
    ['its files, and is damaged,', 'find "$1" -type f -delete', `truncate -s 200 ${both}`],
  ])(
    'without %s keeps what was granted since, also from a process that knew the state before',
    async (_, script, later) => {
      const stateDir = makeStateDir();
      const witness = await opener(stateDir);
      for (let i = 0; i < 3; i++) await witness.tell('release', await acquire(witness, 1));
      shell(script, stateDir);
      const owner = await opener(stateDir);
      const held = await acquire(owner, 2);
      shell(later, stateDir);
      const uids = async (agent: Agent) =>
        (await agent.tell('grants')).map((grant: { uid: string }) => grant.uid);
      const taken = await acquire(witness, 1);
      expect(taken.cpus.intersects(held.cpus)).toBe(false);
      for (const agent of [owner, witness]) expect(await uids(agent)).toEqual([held.uid, taken.uid]);
    },
  );

  it.each([
    ['', ':'],
    [', and ends,', 'rm "$1/state.json" "$1/state.copy.json"'],
  ])(
    'without its files%s keeps the kubelet’s CPUs from a process that knew the state before',
    async (_, later) => {
      const stateDir = makeStateDir();
      const witness = await opener(stateDir);
      for (let i = 0; i < 3; i++) await witness.tell('release', await acquire(witness, 1));
      shell('find "$1" -type f -delete', stateDir);
      const keeper = await opener(stateDir);
      await keeper.tell('recordKubelet', [
        { namespace: 'default', name: 'web', containers: [{ name: 'main', cpus: '1-2' }] },
      ]);
      shell(later, stateDir);
      const { cpus } = await acquire(witness, 1);
      expect(cpus.intersects(CpuSet.parse('1-2'))).toBe(false);
      for (const agent of [witness, keeper])
        expect(await agent.tell('kubelet')).toMatchObject({ keeper: { pid: keeper.process.pid } });
    },
  );

  it('without its files keeps its settings from a process that knew the state before', async () => {
    const stateDir = makeStateDir();
    const witness = await opener(stateDir);
    for (let i = 0; i < 3; i++) await witness.tell('release', await acquire(witness, 1));
    shell('find "$1" -type f -delete', stateDir);
    const agent = new Agent();
    await agent.tell('open', { stateDir, simulate: MACHINE, reservedSystemCPUs: '0-2' });
    const { cpus } = await acquire(witness, 1);
    expect(String(cpus)).toBe('3');
    expect((await witness.ask('acquire', { cpu: 1 })).error?.code).toBe('ERR_INSUFFICIENT_CPUS');
  });
});

describe('an owner whose file was changed', () => {
  it('keeps what it holds, and what the file says now counts for nothing', async () => {
    const { stateDir, held } = await stoppedOwner(1);
    const name = readdirSync(join(stateDir, 'owners')).find((each) => !each.endsWith('.new'))!;
    shell('cp "$1" "$1.2"; cat "$1.2" > "$1"; sed -i "s/nothing//" "$1"', join(stateDir, 'owners', name));
    const next = await opener(stateDir);
    expect((await next.ask('acquire', { cpu: 1 })).error?.code).toBe('ERR_INSUFFICIENT_CPUS');
    expect((await next.tell('grants')).map((grant: { uid: string }) => grant.uid)).toContain(held.uid);
  });

  it('gives its CPUs back when it ends', async () => {
    const { stateDir, owner, witness } = await stoppedOwner();
    const [name] = readdirSync(join(stateDir, 'owners'));
    shell('cp "$1" "$1.2"; mv "$1.2" "$1"', join(stateDir, 'owners', name!));
    for (let i = 0; i < 3; i++) {
      const { uid } = await acquire(witness, 1);
      await witness.tell('release', { uid });
      // An owner counts as living for some time after the kernel began to report ends.
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
    await owner.kill();
    await expect.poll(() => witness.ask('acquire', { cpu: 3 })).toHaveProperty('value');
  });
});
