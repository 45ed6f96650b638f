// needs: folders
// What this process's own file claims, from step to step: never less than it has.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { type Assignments, emptyAssignments } from '../../lib/account/assignments.js';
import type { OwnerRecord, PodAssignment } from '../../lib/account/pod-assignment.js';
import { NumalignError } from '../../lib/base/errors.js';
import { native } from '../../lib/base/native.js';
import { DEFAULT_SETTINGS } from '../../lib/decision/machine-settings.js';
import { CpuSet } from '../../lib/machine/cpu-set.js';
import { lockRange } from '../../lib/state/files/owner-locks.js';
import { decodeOwnerFile, encodeOwnerFile } from '../../lib/state/format/owner-file.js';
import { Owners } from '../../lib/state/owners/owners.js';
import { thrownBy } from '../support/error-of.js';
import { kubeletRecord } from '../support/kubelet-records.js';
import { quiet } from '../support/quiet.js';
import { podOf } from '../support/quiet-world.js';
import { makeStateDir } from '../support/state-dir.js';

const BOOT = 'this boot';
const EMPTY = emptyAssignments(DEFAULT_SETTINGS);
const DEAD = '0f9b8a71-1d2e-4f3a-8b4c-5d6e7f8a9b0c';

/** A state folder, and this process as an owner in it. */
function folder(fileSystem?: string) {
  const path = makeStateDir(fileSystem);
  for (const part of ['owners', 'waiting']) mkdirSync(join(path, part), { recursive: true });
  const open = (name = 'owners') => native.Folder.open(join(path, name), false, 0o700, -1);
  const owners = new Owners(open(), open('waiting'), path, BOOT);
  onTestFinished(() => owners.own.close());
  const state = (pods: PodAssignment[], more: Partial<Assignments> = {}) => ({ ...EMPTY, pods, ...more });
  const follow = (generation: number, assignments: Assignments) =>
    owners.follow({ generation, bootId: BOOT, writtenAt: '', assignments });
  follow(1, EMPTY);
  const file = (uuid: string) => join(path, 'owners', uuid);
  const claimsIn = (uuid: string) => decodeOwnerFile(readFileSync(file(uuid))).pods.map(({ uid }) => uid);
  return { path, open, owners, state, follow, file, claimsIn };
}

const podFor = ({ uuid, kind }: Pick<OwnerRecord, 'uuid' | 'kind'>, uid: string): PodAssignment => {
  const pod = podOf(uid, uuid, CpuSet.of(Number(uid)), quiet('0').request);
  return { ...pod, quiet: undefined, owner: { ...pod.owner, kind } } as PodAssignment;
};

/** The same, with a grant on record. */
function withGrant() {
  const all = folder();
  const { owners, state, claimsIn } = all;
  const own = owners.recordFor('process');
  const [one, two] = [podFor(own, '1'), podFor(own, '2')];
  const before = state([one]);
  owners.claim(1, EMPTY, before)(true);
  const claims = () => claimsIn(own.uuid);
  return { ...all, own, one, two, before, claims };
}

describe('this process as an owner', () => {
  it('has one file, and none before its first request', () => {
    const { owners, path } = folder();
    expect([owners.ownFd(), owners.own.holdsGrant, owners.own.isNeeded, owners.own.since]).toEqual([
      ...[undefined, false, false, 0],
    ]);
    const own = owners.recordFor('process');
    expect(owners.recordFor('process')).toBe(own);
    expect(readdirSync(join(path, 'owners'))).toEqual([own.uuid]);
    expect(owners.ownFd()).toBeGreaterThan(2);
    expect([owners.isOwn(own), owners.isOwnProcess(own.uuid), owners.isAlive(own)]).toEqual([
      true,
      true,
      true,
    ]);
    const persistent = { ...own, kind: 'persistent' as const };
    expect(owners.isOwn(persistent)).toBe(false);
    expect(owners.recordFor('persistent').uuid).not.toBe(own.uuid);
  });

  it('has ended once it closes its file', () => {
    const { owners, own } = withGrant();
    expect([owners.hasEnded(own.uuid), owners.isProcessAlive(own.uuid)]).toEqual([false, true]);
    owners.own.close();
    expect([owners.hasEnded(own.uuid), owners.isProcessAlive(own.uuid)]).toEqual([true, false]);
    expect([owners.ownFd(), owners.own.holdsGrant, owners.own.since]).toEqual([undefined, false, 0]);
    expect(owners.withLeftGrants()).toEqual([own.uuid]);
  });

  it('claims before a commit what it has and what it will have', () => {
    const { owners, two, before, state, claims } = withGrant();
    expect(claims()).toEqual(['1']);
    const settle = owners.claim(2, before, state([two]));
    expect(claims()).toEqual(['1', '2']);
    expect(owners.own.since).toBe(3);
    settle(true);
    expect(claims()).toEqual(['2']);
  });

  it('claims what it had after a commit that failed', () => {
    const { owners, one, two, before, state, claims, follow } = withGrant();
    owners.claim(2, before, state([one, two]))(false);
    expect(claims()).toEqual(['1']);
    expect(owners.own.since).toBe(2);
    follow(2, before);
    expect([claims(), owners.own.since]).toEqual([['1'], 2]);
  });

  it('claims no less until the outcome of a commit is known', () => {
    const { owners, one, two, before, state, claims, follow } = withGrant();
    const settle = owners.claim(2, before, state([one, two]));
    follow(2, before);
    expect(claims()).toEqual(['1']);
    // Another transaction has done this.
    settle(true);
    expect(claims()).toEqual(['1']);
  });

  it('claims all of a state that is rebuilt, and what it had, whatever becomes of the commit', () => {
    const { owners, two, state, claims } = withGrant();
    owners.claim(7, undefined, state([two]))(false);
    expect(claims()).toEqual(['1', '2']);
    owners.claim(8, undefined, state([two]))(true);
    expect(claims()).toEqual(['2']);
  });

  it('drops what others have taken from it, and claims what they have given to it', () => {
    const { two, one, before, state, claims, follow } = withGrant();
    follow(3, before);
    follow(4, state([one, two]));
    expect(claims()).toEqual(['1', '2']);
    follow(5, state([podFor({ uuid: DEAD, kind: 'process' }, '1'), two]));
    expect(claims()).toEqual(['2']);
    follow(6, EMPTY);
    expect(claims()).toEqual([]);
  });

  it('records what the kubelet has given out while it is the keeper', () => {
    const { owners, own, before, state, follow, file } = withGrant();
    const record = kubeletRecord('3');
    const kept = state(before.pods as PodAssignment[], { kubelet: { ...record, keeper: own } });
    const kubelet = () => decodeOwnerFile(readFileSync(file(own.uuid))).kubelet;
    expect(kubelet()).toBeNull();
    owners.claim(2, before, kept);
    expect(kubelet()?.pods).toEqual(record.pods);
    expect(owners.own.isNeeded).toBe(true);
    follow(3, state([], { kubelet: record }));
    expect([kubelet(), owners.own.isNeeded]).toEqual([null, false]);
    owners.claim(3, EMPTY, state([], { kubelet: record }))(true);
    expect(kubelet()).toBeNull();
  });
});

describe('a file of this process that others remove or change', () => {
  it('is written again, with all that it claimed', () => {
    const { owners, own, claims, file } = withGrant();
    expect(owners.own.reassert()).toBe(false);
    rmSync(file(own.uuid));
    expect(owners.own.reassert()).toBe(true);
    expect(claims()).toEqual(['1']);
    writeFileSync(file(own.uuid), 'nonsense');
    expect([owners.own.reassert(), owners.own.reassert()]).toEqual([true, false]);
    expect(claims()).toEqual(['1']);
  });

  it('leaves the grants lost that are not on record after it', () => {
    const { owners, own, one, two, state, follow, file } = withGrant();
    owners.claim(2, state([one]), state([one, two]))(true);
    rmSync(file(own.uuid));
    owners.own.reassert();
    expect(owners.own.lost).toEqual([]);
    follow(3, state([one]));
    expect(owners.own.lost.map(({ uid }) => uid)).toEqual(['2']);
    rmSync(file(own.uuid));
    owners.own.reassert();
    follow(4, state([one]));
    expect(owners.own.lost).toEqual([]);
  });

  it('is given up if it is not needed', () => {
    const { owners, file } = folder();
    expect(owners.own.reassert()).toBe(false);
    const { uuid } = owners.recordFor('process');
    expect(owners.own.reassert()).toBe(false);
    expect(owners.ownFd()).toBeDefined();
    rmSync(file(uuid));
    expect(owners.own.reassert()).toBe(false);
    expect(owners.ownFd()).toBeUndefined();
    expect(existsSync(file(uuid))).toBe(false);
  });
});

describe('a grant that is handed over', () => {
  it('is this process’s only one', () => {
    const { owners, own, one, two, state, before } = withGrant();
    expect(owners.handOver('2')).toBe(false);
    owners.claim(2, before, state([one, two]))(true);
    const error = thrownBy(() => owners.handOver('2'));
    expect(error).toMatchObject({ code: 'ERR_OWNER_SHARED', details: { value: '2', valid: ['1', '2'] } });
    expect(error!.message).toContain('holds 2 grants by one lock');
    owners.claim(3, state([one, two]), before)(true);
    const kept = { ...before, kubelet: { ...kubeletRecord('3'), keeper: own } };
    owners.claim(4, before, kept)(true);
    expect(thrownBy(() => owners.handOver('1'))?.message).toContain('a grant and the record of the kubelet');
    owners.claim(5, kept, before)(true);
    // No child has the lock.
    expect(owners.handOver('1')).toBe(false);
    expect(owners.ownFd()).toBeUndefined();
    expect(folder().owners.handOver('1')).toBe(false);
  });
});

describe('the file of another owner', () => {
  const header = { bootId: BOOT, generation: 1, settings: DEFAULT_SETTINGS, kubelet: null };
  const textOf = (kind: 'process' | 'persistent', uids: string[]) => {
    const owner = { uuid: DEAD, kind, pid: 1, command: 'test', cgroup: null };
    return encodeOwnerFile({ ...owner, ...header, pods: uids.map((uid) => podFor(owner, uid)) });
  };

  it.each<[string, string | undefined, boolean]>([
    ['with grants of a dead process', textOf('process', ['1']), true],
    ['without grants', textOf('process', []), false],
    ['of an owner that is no process', textOf('persistent', ['1']), false],
    ['that is damaged', 'nonsense', false],
    ['that is missing', undefined, false],
  ])('%s shows that grants are left: %s', (_, text, isLeft) => {
    const { owners, file } = folder();
    if (text !== undefined) writeFileSync(file(DEAD), text);
    expect(owners.hasLeftGrants(DEAD)).toBe(isLeft);
    expect(owners.withLeftGrants()).toEqual(isLeft ? [DEAD] : []);
  });

  describe('has the kernel list its locks', () => {
    /** Counts the lists. */
    function listed(fileSystem?: string) {
      const all = folder(fileSystem);
      const owners = all.open();
      const lists = vi.spyOn(owners, 'lockDevice');
      // Of a machine without any lock the kernel lists none, as if it hid them.
      const lock = all.open('waiting').tryLock('another', 'test')!;
      onTestFinished(() => lock.release());
      return {
        ...all,
        lists,
        owners: new Owners(owners, all.open('waiting'), all.path, BOOT),
      };
    }
    const uuids = Array.from({ length: 20 }, (_, i) => `0f9b8a71-1d2e-4f3a-8b4c-5d6e7f8a9b${i + 10}`);

    it('once for all that left grants', () => {
      const { owners, file, lists } = listed();
      for (const uuid of uuids) {
        const pods = [podFor({ uuid, kind: 'process' }, '1')];
        const owner = { uuid, kind: 'process' as const, pid: 1, command: 'test', cgroup: null };
        writeFileSync(file(uuid), encodeOwnerFile({ ...owner, ...header, pods }));
      }
      expect(owners.withLeftGrants().sort()).toEqual(uuids);
      expect(lists).toHaveBeenCalledTimes(1);
    });

    it('not for those that left none', () => {
      const { owners, file, lists } = listed();
      for (const uuid of uuids) writeFileSync(file(uuid), '');
      expect(owners.withLeftGrants()).toEqual([]);
      const owner = { uuid: DEAD, kind: 'process' as const, pid: 1, command: 'test', cgroup: null };
      writeFileSync(file(DEAD), encodeOwnerFile({ ...owner, ...header, pods: [] }));
      expect([owners.seemsEnded(DEAD), owners.hasLeftGrants(DEAD)]).toEqual([true, false]);
      expect(lists).not.toHaveBeenCalled();
    });

    it('if its file is missing, damaged, or keeps the record of the kubelet', () => {
      const { owners, file, lists } = listed();
      const owner = { uuid: DEAD, kind: 'process' as const, pid: 1, command: 'test', cgroup: null };
      const keeper = { ...kubeletRecord('3'), keeper: { ...kubeletRecord('3').keeper, uuid: DEAD } };
      const texts = [
        undefined,
        'nonsense',
        encodeOwnerFile({ ...owner, ...header, kubelet: keeper, pods: [] }),
      ];
      texts.forEach((text, i) => {
        if (text !== undefined) writeFileSync(file(DEAD), text);
        expect(owners.hasEnded(DEAD)).toBe(true);
        expect(lists).toHaveBeenCalledTimes(i + 1);
      });
    });

    it('not if all files are numalign’s own', () => {
      const { owners, path, open, file, lists, state } = listed('/dev/shm');
      writeFileSync(file(DEAD), textOf('process', ['1']));
      const checkpoint = { generation: 1, bootId: BOOT, writtenAt: '', assignments: state([]) };
      owners.find(checkpoint);
      expect(lists).toHaveBeenCalledTimes(1);
      owners.follow(checkpoint);
      owners.recordFor('process');
      expect(owners.hasEnded(DEAD)).toBe(true);
      const others = open();
      const theirLists = vi.spyOn(others, 'lockDevice');
      const later = new Owners(others, open('waiting'), path, BOOT);
      later.find(checkpoint);
      expect(later.hasEnded(DEAD)).toBe(true);
      expect([lists, theirLists].map(({ mock }) => mock.calls.length)).toEqual([1, 0]);
    });

    it('never for many files of ended owners, which are noted as removed at once', async () => {
      const { path, open, file, lists, owners, state } = listed('/dev/shm');
      for (const uuid of uuids) writeFileSync(file(uuid), '');
      const checkpoint = { generation: 1, bootId: BOOT, writtenAt: '', assignments: state([]) };
      owners.find(checkpoint);
      const names: (string | null)[] = [];
      const watcher = watch(join(path, 'waiting'), (event, name) => event === 'rename' && names.push(name));
      onTestFinished(() => watcher.close());
      new Owners(open(), open('waiting'), path, BOOT).follow(checkpoint);
      expect([readdirSync(join(path, 'owners')), lists.mock.calls.length]).toEqual([[], 1]);
      writeFileSync(join(path, 'waiting', 'end'), '');
      await vi.waitUntil(() => names.includes('end'));
      // It is made beside, and moved.
      expect(names.filter((name) => name === 'owners.note.new')).toHaveLength(2);
    });

    it('once in a transaction that takes grants back', () => {
      const { owners, file, lists, state, claimsIn } = listed();
      const theirs = podFor({ uuid: DEAD, kind: 'process' }, '1');
      writeFileSync(file(DEAD), textOf('process', ['1']));
      const before = state([theirs]);
      owners.follow({ generation: 1, bootId: BOOT, writtenAt: '', assignments: before });
      expect(claimsIn(DEAD)).toEqual(['1']);
      expect(owners.deadPods(before.pods)).toEqual([theirs]);
      owners.claim(1, before, state([]))(true);
      expect(existsSync(file(DEAD))).toBe(false);
      expect(lists).toHaveBeenCalledTimes(1);
    });
  });

  it('does not show that grants are left while its owner lives, or by another name', () => {
    const { owners, open, file } = folder();
    const lock = open().createOwner(DEAD, textOf('process', ['1']));
    expect([owners.hasEnded(DEAD), owners.hasLeftGrants(DEAD)]).toEqual([false, false]);
    lock.close();
    expect([owners.hasEnded(DEAD), owners.hasLeftGrants(DEAD)]).toEqual([true, true]);
    writeFileSync(file('README'), textOf('process', ['1']));
    expect([owners.hasEnded('README'), owners.hasLeftGrants('README')]).toEqual([false, false]);
  });

  it('seems to be of an ended owner if other programs have replaced it, but shows no grants left', () => {
    const { owners, open, file, path } = folder();
    const lock = open().createOwner(DEAD, textOf('process', ['1']), ...lockRange(DEAD, path));
    onTestFinished(() => lock.close());
    rmSync(file(DEAD));
    writeFileSync(file(DEAD), textOf('process', ['1']));
    expect([owners.seemsEnded(DEAD), owners.hasEnded(DEAD)]).toEqual([true, false]);
    expect(owners.hasLeftGrants(DEAD)).toBe(false);
  });

  it('seems to be of an ended owner if there is a folder in its place', () => {
    const { owners, file } = folder();
    // With no lock on the machine, the kernel would list none.
    owners.recordFor('process');
    mkdirSync(file(DEAD));
    expect([owners.seemsEnded(DEAD), owners.hasEnded(DEAD)]).toEqual([true, true]);
  });

  it('does not show that its owner has ended if it cannot be checked, and a bug is none', () => {
    const { path, open } = folder();
    const failing = (error: Error) => {
      const owners = open();
      for (const look of ['isOwnerAlive', 'survey'] as const)
        vi.spyOn(owners, look).mockImplementation(() => {
          throw error;
        });
      return new Owners(owners, open('waiting'), path, BOOT);
    };
    const refused = failing(new NumalignError('ERR_SYSCALL', 'no memory', { errno: 12, syscall: 'fcntl' }));
    expect([refused.hasEnded(DEAD), refused.hasLeftGrants(DEAD)]).toEqual([false, false]);
    expect(refused.withLeftGrants()).toEqual([]);
    const bug = new TypeError('bug');
    for (const look of ['hasEnded', 'hasLeftGrants'] as const)
      expect(thrownBy(() => failing(bug)[look](DEAD))).toBe(bug);
    expect(thrownBy(() => failing(bug).withLeftGrants())).toBe(bug);
  });

  it('is removed with the last grant of its process, if that has ended', () => {
    const { owners, file, state } = folder();
    const theirs = podFor({ uuid: DEAD, kind: 'process' }, '1');
    writeFileSync(file(DEAD), textOf('process', ['1']));
    owners.claim(1, state([theirs]), EMPTY)(false);
    expect(existsSync(file(DEAD))).toBe(true);
    owners.claim(2, state([theirs]), EMPTY)(true);
    expect(existsSync(file(DEAD))).toBe(false);
  });

  it('is swept once a second', () => {
    const { file, follow, state } = folder();
    const theirs = podFor({ uuid: DEAD, kind: 'process' }, '1');
    writeFileSync(file(DEAD), textOf('process', ['1']));
    const nowS = process.uptime();
    const uptime = vi.spyOn(process, 'uptime');
    onTestFinished(() => uptime.mockRestore());
    const isThere = (afterS: number, ...pods: PodAssignment[]) => {
      uptime.mockReturnValue(nowS + afterS);
      follow(2, state(pods));
      return existsSync(file(DEAD));
    };
    expect([isThere(2, theirs), isThere(2.5), isThere(3)]).toEqual([true, true, false]);
  });
});
