// needs: process
// Transactions on a state folder, step by step: what each sees, commits and leaves.
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { type Assignments, emptyAssignments } from '../../lib/account/assignments.js';
import type { OwnerRecord, PodAssignment } from '../../lib/account/pod-assignment.js';
import { native } from '../../lib/base/native.js';
import { DEFAULT_SETTINGS } from '../../lib/decision/machine-settings.js';
import { CpuSet } from '../../lib/machine/cpu-set.js';
import { lockRange } from '../../lib/state/files/owner-locks.js';
import { readBootId } from '../../lib/state/folder/folder.js';
import { decodeCheckpoint, encodeCheckpoint } from '../../lib/state/format/journal.js';
import { decodeOwnerFile } from '../../lib/state/format/owner-file.js';
import { Ledger } from '../../lib/state/ledger.js';
import type { Commit } from '../../lib/state/store.js';
import { errorOf, thrownBy } from '../support/error-of.js';
import { makeNewer } from '../support/newer-state.js';
import { quiet } from '../support/quiet.js';
import { podOf } from '../support/quiet-world.js';
import { makeStateDir } from '../support/state-dir.js';

const EMPTY = emptyAssignments(DEFAULT_SETTINGS);
const UUID = '0f9b8a7c-1d2e-4f3a-8b4c-5d6e7f8a9b0c';
const OPTIONS = { lockTimeoutMs: 5000, totalOn: () => 0 };

const podFor = (owner: OwnerRecord, uid: string, cpu = Number(uid)): PodAssignment => ({
  ...podOf(uid, owner.uuid, CpuSet.of(cpu), quiet('0').request),
  quiet: undefined as never,
  owner,
});
const withPods = (...pods: PodAssignment[]): Assignments => ({ ...EMPTY, pods });
const uidsOf = (assignments: Assignments | undefined) => assignments?.pods.map(({ uid }) => uid);

/** A state folder that stays open for the test. */
function state(path = makeStateDir('/dev/shm')) {
  const ledger = Ledger.open(path);
  const end = ledger.use();
  onTestFinished(async () => {
    const file = join(path, 'owners');
    if (existsSync(file) && ledger.owners.own.holdsGrant) await commit(() => EMPTY);
    end();
  });
  const commit = (next: (before: Assignments) => Assignments, isLast = false) =>
    ledger.transact(OPTIONS, async (before, commit) => {
      await commit(next(before?.assignments ?? EMPTY), isLast);
      return before?.generation;
    });
  const persistent = (uid: string) => podFor(ledger.owners.recordFor('persistent'), uid);
  const onDisk = () => decodeCheckpoint(readFileSync(join(path, 'state.json')));
  return { path, ledger, commit, persistent, onDisk };
}

describe('a ledger', () => {
  it('is one for each folder, by any name', () => {
    const { path, ledger } = state();
    expect(Ledger.open(path)).toBe(ledger);
    const link = makeStateDir();
    symlinkSync(dirname(path), link);
    expect(Ledger.open(join(link, basename(path)))).toBe(ledger);
    expect([ledger.scope, ledger.path]).toEqual(['private', path]);
    expect(Ledger.open(makeStateDir())).not.toBe(ledger);
  });

  it('has nothing before the first commit, and then what was committed last', async () => {
    const { ledger, commit, persistent, onDisk } = state();
    expect([ledger.read(), ledger.found]).toEqual([undefined, undefined]);
    expect(await commit(() => withPods(persistent('1')))).toBeUndefined();
    expect(ledger.read()).toMatchObject({
      generation: 1,
      bootId: readBootId(),
      assignments: { pods: [{ uid: '1' }] },
    });
    expect(await commit(({ pods }) => withPods(...pods, persistent('2')), true)).toBe(1);
    expect(uidsOf(ledger.read()?.assignments)).toEqual(['1', '2']);
    expect(onDisk()).toMatchObject({ generation: 2, assignments: { pods: [{ uid: '1' }, { uid: '2' }] } });
    expect(ledger.found).toMatchObject({ kind: 'good', checkpoint: { generation: 2 } });
    expect(ledger.isOfThisBoot(ledger.read()!)).toBe(true);
    expect(ledger.isOfThisBoot({ ...ledger.read()!, bootId: 'another' })).toBe(false);
  });

  it('commits a step of several states, each on the one before', async () => {
    const { ledger, persistent, onDisk } = state();
    const result = await ledger.transact(OPTIONS, async (_, commit) => {
      await commit(withPods(persistent('1')));
      expect(onDisk().generation).toBe(1);
      await commit(withPods(persistent('2'), persistent('3')));
      return 'done';
    });
    expect([result, onDisk().generation, uidsOf(onDisk().assignments)]).toEqual(['done', 2, ['2', '3']]);
    const ownersFiles = readdirSync(join(ledger.path, 'owners'));
    expect(ownersFiles.sort()).toEqual(
      onDisk()
        .assignments.pods.map(({ owner }) => owner.uuid)
        .sort(),
    );
  });

  it('does nothing for a caller that has given up, and releases the lock after one that fails', async () => {
    const { ledger, commit, persistent } = state();
    let runs = 0;
    const signal = AbortSignal.abort(new Error('enough'));
    expect(await errorOf(() => ledger.transact({ ...OPTIONS, signal }, async () => runs++))).toMatchObject({
      message: 'enough',
    });
    expect(runs).toBe(0);
    const fail = async () => {
      throw new Error('no room');
    };
    expect(await errorOf(() => ledger.transact(OPTIONS, fail))).toMatchObject({ message: 'no room' });
    expect(await commit(() => withPods(persistent('1')))).toBeUndefined();
  });

  it('does not commit what two grants hold', async () => {
    const { ledger, commit, persistent, onDisk } = state();
    await commit(() => withPods(persistent('1')));
    const twice = { ...persistent('2'), containers: persistent('1').containers };
    expect(await errorOf(() => commit(({ pods }) => withPods(...pods, twice)))).toBeDefined();
    expect([onDisk().generation, uidsOf(ledger.read()?.assignments)]).toEqual([1, ['1']]);
  });

  it('keeps a state of an earlier boot apart', async () => {
    const { path, ledger, commit, persistent } = state();
    await commit(() => withPods(persistent('1')));
    const name = await ledger.archive({ ...ledger.read()!, bootId: 'A boot/id-1' });
    expect(name).toBe('archive/bootid-1-1.json');
    expect(uidsOf(decodeCheckpoint(readFileSync(join(path, name))).assignments)).toEqual(['1']);
  });
});

describe('a part of the folder', () => {
  it('is made once, is joined again at each transaction, and is closed with the folder', async () => {
    const path = makeStateDir('/dev/shm');
    const ledger = Ledger.open(path);
    const end = ledger.use();
    const calls: string[] = [];
    const make = (_: unknown, at: string) => {
      calls.push(`made at ${at}`);
      return { rejoin: () => void calls.push('joined'), close: () => void calls.push('closed') };
    };
    const part = ledger.part('things', make);
    expect(ledger.part('things', make)).toBe(part);
    await ledger.transact(OPTIONS, async () => {});
    expect(calls).toEqual([`made at ${join(path, 'things')}`, 'joined']);
    end();
    end();
    expect(calls.at(-1)).toBe('closed');
    rmSync(path, { recursive: true });
    for (const look of [
      () => ledger.read(),
      () => ledger.owners,
      () => ledger.waiters,
      () => ledger.agreedRoot,
    ])
      expect(thrownBy(look)).toMatchObject({
        code: 'ERR_STATE_FOLDER',
        message: expect.stringContaining('it was removed or replaced while it was open'),
      });
    expect(existsSync(path)).toBe(false);
    await ledger.transact(OPTIONS, async (checkpoint) => expect(checkpoint).toBeUndefined());
    expect(readdirSync(path)).toEqual(expect.arrayContaining(['lock', 'owners', 'things', 'waiting']));
  });
});

describe('a folder that others change', () => {
  it('gets the grants of this process again once it was removed, which is reported', async () => {
    const { path, ledger, commit, onDisk } = state();
    const harms: Error[] = [];
    const stop = ledger.watchOwners(
      () => {},
      (error) => harms.push(error),
    );
    onTestFinished(stop);
    await commit(() => EMPTY);
    await commit(() => withPods(podFor(ledger.owners.recordFor('process'), '1')));
    rmSync(path, { recursive: true });
    expect(uidsOf((await ledger.transact(OPTIONS, async (checkpoint) => checkpoint))?.assignments)).toEqual([
      '1',
    ]);
    expect(onDisk().generation).toBeGreaterThan(2);
    const [file] = readdirSync(join(path, 'owners'));
    expect(decodeOwnerFile(readFileSync(join(path, 'owners', file!))).pods).toMatchObject([{ uid: '1' }]);
    await expect.poll(() => harms).toHaveLength(1);
    expect(harms[0]).toMatchObject({ code: 'ERR_STATE_CORRUPT', details: { value: [] } });
    expect(harms[0]!.message).toContain('they are on record again');
    expect(ledger.recoveries).toMatchObject([{ code: 'STATE_RECOVERED', kept: ['1'], quarantined: [] }]);
  });

  it('gets the own file again, and a look at the state that waits for its lock', async () => {
    const { path, ledger, commit } = state();
    const harms: Error[] = [];
    const stop = ledger.watchOwners(
      () => {},
      (error) => harms.push(error),
    );
    onTestFinished(stop);
    await commit(() => EMPTY);
    const own: OwnerRecord[] = [];
    await commit(() => {
      own.push(ledger.owners.recordFor('process'));
      return withPods(podFor(own[0]!, '1'));
    });
    const file = join(path, 'owners', own[0]!.uuid);
    const lock = native.Folder.open(path, false, 0o700, -1).tryLock('lock', '1 another\n')!;
    rmSync(file);
    await expect.poll(() => existsSync(file)).toBe(true);
    const waiter = new RegExp(`-> OFDLCK .*:${statSync(join(path, 'lock')).ino} `);
    await expect.poll(() => waiter.test(readFileSync('/proc/locks', 'latin1'))).toBe(true);
    await new Promise((resolve) => setTimeout(resolve, 20));
    lock.release();
    await expect.poll(() => harms).toHaveLength(1);
    expect(harms[0]!.message).toContain('they are on record again');
  });

  it('stays as it is if a caller gives up while it would be recovered', async () => {
    const { path, ledger, commit, persistent } = state();
    await commit(() => withPods(persistent('1')));
    const owners = native.Folder.open(join(path, 'owners'), false, 0o700, -1);
    // Its owner is waited for: it seems to have written something else.
    const owner = owners.createOwner(UUID, 'something', ...lockRange(UUID, path));
    owner.seal(1, 1);
    onTestFinished(() => {
      owner.close();
      owners.close();
    });
    writeFileSync(join(path, 'state.json'), 'nonsense');
    const controller = new AbortController();
    const options = { ...OPTIONS, signal: controller.signal };
    const taking = errorOf(() => ledger.transact(options, async () => expect.unreachable()));
    const isLocked = () =>
      readFileSync('/proc/locks', 'latin1').includes(`:${statSync(join(path, 'lock')).ino} 0 0`);
    await expect.poll(isLocked).toBe(true);
    controller.abort(new Error('enough'));
    expect(await taking).toMatchObject({ message: 'enough' });
    expect(readFileSync(join(path, 'state.json'), 'utf8')).toBe('nonsense');
    expect([ledger.recoveries, readdirSync(path).includes('quarantine')]).toEqual([[], false]);
    owner.close();
    expect(uidsOf((await ledger.transact(OPTIONS, async (found) => found))?.assignments)).toEqual(['1']);
  });

  it('is recovered from its copy if the state is damaged, which is reported with what was put aside', async () => {
    const { path, ledger, commit } = state();
    await commit(() => EMPTY);
    await commit(() => withPods(podFor(ledger.owners.recordFor('process'), '1')));
    writeFileSync(join(path, 'state.json'), 'nonsense');
    const seen = await ledger.transact(OPTIONS, async (checkpoint) => checkpoint);
    expect(uidsOf(seen?.assignments)).toEqual(['1']);
    const [report, ...others] = ledger.recoveries;
    expect(others).toEqual([]);
    expect(report).toMatchObject({ code: 'STATE_RECOVERED', kept: ['1'], generation: seen!.generation });
    expect(report!.quarantined).toEqual(readdirSync(join(path, 'quarantine')));
    expect(readFileSync(join(path, 'quarantine', report!.quarantined[0]!), 'utf8')).toBe('nonsense');
    expect(report!.message).toMatch(
      /^the state in .* was damaged \(.*\); numalign recovered it from generation 2 and the files of living owners, with 1 grant$/,
    );
    expect(Object.isFrozen(report)).toBe(true);
  });

  it.each([
    [0, 'with 0 grants'],
    [2, 'with 2 grants'],
  ])('is recovered without a state file, with %i grants', async (count, grants) => {
    const { path, ledger, commit, persistent } = state();
    const uids = Array.from({ length: count }, (_, i) => `${i + 1}`);
    await commit(() => withPods(...uids.map(persistent)));
    rmSync(join(path, 'state.json'));
    // The generation after the good one may have been lost.
    expect(ledger.read()?.generation).toBe(2);
    expect(uidsOf(ledger.read()?.assignments)).toEqual(uids);
    expect(uidsOf((await ledger.transact(OPTIONS, async (found) => found))?.assignments)).toEqual(uids);
    const [{ message, generation, kept }] = ledger.recoveries as [(typeof ledger.recoveries)[0]];
    expect(message).toContain(
      'was damaged (there was no state.json); numalign recovered it from generation 1',
    );
    expect(message).toContain(grants);
    expect([kept, generation]).toEqual([uids, ledger.read()!.generation]);
    expect(generation).toBeGreaterThan(1);
    await ledger.transact(OPTIONS, async () => {});
    expect(ledger.recoveries).toHaveLength(1);
  });

  it.each([
    [1, ', which no owner wrote'],
    [3, ' and 2 more, which no owner wrote'],
  ])('gets what no owner wrote put aside, and the number in the report: %i', async (count, text) => {
    const { path, ledger, commit, persistent } = state();
    const names = Array.from({ length: count }, (_, i) => `0f9b8a7${i}-1d2e-4f3a-8b4c-5d6e7f8a9b0c`);
    await commit(() => withPods(persistent('1')));
    for (const name of names) mkdirSync(join(path, 'owners', name));
    // They are looked for once a second.
    const uptime = vi.spyOn(process, 'uptime').mockReturnValue(process.uptime() + 1);
    onTestFinished(() => uptime.mockRestore());
    await ledger.transact(OPTIONS, async () => {});
    const [report, ...others] = ledger.recoveries;
    expect([report!.kept, report!.quarantined.length, others]).toEqual([['1'], count, []]);
    expect(report!.message).toContain(`${path}/owners had `);
    expect(report!.message).toContain(text);
    expect(report!.quarantined.map((name) => name.replace(/^.*Z-/, '')).sort()).toEqual(names);
    expect(readdirSync(join(path, 'quarantine'))).toHaveLength(count);
  });

  it('is empty, with nothing to report, if all of it was removed', async () => {
    const { path, ledger, commit, persistent } = state();
    await commit(() => EMPTY);
    for (const name of ['state.json', 'state.copy.json']) rmSync(join(path, name));
    rmSync(join(path, 'lock'));
    expect(uidsOf(ledger.read()?.assignments) ?? []).toEqual([]);
    await commit(() => withPods(persistent('1')));
    expect(uidsOf(ledger.read()?.assignments)).toEqual(['1']);
    expect(ledger.read()!.generation).toBeGreaterThan(1);
  });

  it('goes on with a state that is put back with an earlier generation', async () => {
    const { path, ledger, commit, persistent } = state();
    const [one, two] = [persistent('1'), persistent('2')];
    await commit(() => withPods(one));
    const early = readFileSync(join(path, 'state.json'));
    await commit(() => withPods(one, two));
    writeFileSync(join(path, 'old'), early);
    renameSync(join(path, 'old'), join(path, 'state.json'));
    expect(uidsOf(ledger.read()?.assignments)).toEqual(['1', '2']);
    await commit(({ pods }) => withPods(...pods, persistent('3')));
    expect(uidsOf(ledger.read()?.assignments)).toEqual(['1', '2', '3']);
    expect(ledger.recoveries[0]?.message).toContain('it is older than generation 2');
  });

  it('does not go back to an earlier state that replaces all but the folder itself', async () => {
    const { path, ledger, commit, persistent } = state();
    const [one, two] = [persistent('1'), persistent('2')];
    await commit(() => withPods(one));
    const early = readFileSync(join(path, 'state.json'));
    await commit(() => withPods(one, two));
    cpSync(join(path, 'owners'), join(path, 'others'), { recursive: true });
    for (const name of ['owners', 'waiting', 'lock']) rmSync(join(path, name), { recursive: true });
    renameSync(join(path, 'others'), join(path, 'owners'));
    for (const name of ['state.json', 'state.copy.json']) writeFileSync(join(path, name), early);
    expect(uidsOf((await ledger.transact(OPTIONS, async (found) => found))?.assignments)).toEqual(['1', '2']);
    expect(readdirSync(path)).toContain('waiting');
  });

  it('changes no byte of a state that a newer numalign wrote', async () => {
    const { path, ledger, commit, persistent } = state();
    await commit(() => withPods(persistent('1')));
    makeNewer(path, true);
    const before = readFileSync(join(path, 'state.json'));
    let refused: Commit | undefined;
    await ledger.transact(OPTIONS, async (checkpoint, commit) => {
      expect(checkpoint).toMatchObject({ refusal: { code: 'ERR_STATE_VERSION' } });
      refused = commit;
    });
    expect(refused!.refusal).toMatchObject({ code: 'ERR_STATE_VERSION' });
    expect(await errorOf(() => refused!(EMPTY))).toMatchObject({ code: 'ERR_STATE_VERSION' });
    expect(readFileSync(join(path, 'state.json'))).toEqual(before);
  });

  it('has its copy mended at the first transaction', async () => {
    const { path, commit, persistent } = state();
    await commit(() => withPods(persistent('1')));
    const text = readFileSync(join(path, 'state.json'), 'utf8');
    const folder = makeStateDir('/dev/shm');
    mkdirSync(join(folder, 'owners'), { recursive: true });
    writeFileSync(join(folder, 'state.json'), text);
    appendFileSync(join(folder, 'state.json'), '{"line":"cha');
    mkdirSync(join(folder, 'state.copy.json'));
    const other = state(folder);
    await other.ledger.transact(OPTIONS, async () => {});
    expect(readFileSync(join(folder, 'state.copy.json'), 'utf8')).toBe(text);
    expect(readdirSync(join(folder, 'quarantine'))).toEqual([expect.stringMatching(/-state\.copy\.json$/)]);
    expect(decodeCheckpoint(Buffer.from(encodeCheckpoint(other.ledger.read()!)))).toMatchObject({
      generation: 1,
    });
  });
});
