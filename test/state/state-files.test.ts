// needs: nothing
// What files of a state folder say about it: errors of files, and the boot that a text belongs to.
import { mkdirSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { emptyAssignments } from '../../lib/account/assignments.js';
import { type ErrorCode, NumalignError } from '../../lib/base/errors.js';
import { native } from '../../lib/base/native.js';
import type { NativeFolder } from '../../lib/base/native-files.js';
import { DEFAULT_SETTINGS } from '../../lib/decision/machine-settings.js';
import { JournalFollower } from '../../lib/state/files/journal-follower.js';
import { findOwners, isOfBoot } from '../../lib/state/files/owner-claims.js';
import { using } from '../../lib/state/files/parts.js';
import { whyUnreadable } from '../../lib/state/files/state-files.js';
import { encodeCheckpoint } from '../../lib/state/format/journal.js';
import { encodeOwnerFile } from '../../lib/state/format/owner-file.js';
import { thrownBy } from '../support/error-of.js';
import { makeStateDir } from '../support/state-dir.js';

const open = (path: string) => native.Folder.open(path, true, 0o700, -1);
const { EACCES, EIO, EISDIR, ELOOP } = constants.errno;

describe('a file that cannot be read', () => {
  const own = process.geteuid!();
  const why = (errno: number, user = own, code: ErrorCode = 'ERR_SYSCALL') =>
    whyUnreadable(
      { owner: () => ({ user }) } as NativeFolder,
      new NumalignError(code, 'read', code === 'ERR_SYSCALL' ? { errno, syscall: 'open' } : {}),
    );

  it('is damaged if this user’s own folder refuses it, and unknown if another’s does', () => {
    expect(why(EACCES)).toMatchObject({ kind: 'damaged', why: 'it is unreadable' });
    expect(why(EACCES, own + 1)).toBeUndefined();
  });

  it('is damaged if it is no file, and unknown if the disk fails', () => {
    expect(why(EISDIR)).toMatchObject({ why: 'it is a folder', isFolder: true });
    expect(why(ELOOP)).toMatchObject({ why: 'it is a symbolic link', isFolder: false });
    expect(why(EIO)).toBeUndefined();
  });

  it('is no excuse for another error', () => {
    expect(thrownBy(() => why(EACCES, own, 'ERR_STATE_CORRUPT'))).toMatchObject({
      code: 'ERR_STATE_CORRUPT',
    });
    const bug = new TypeError('bug');
    expect(thrownBy(() => whyUnreadable({} as NativeFolder, bug))).toBe(bug);
  });
});

describe('the owners of a folder', () => {
  const UUIDS = [0, 1, 2, 3].map((i) => `0f9b8a7${i}-1d2e-4f3a-8b4c-5d6e7f8a9b0c`);

  /** By the numbers of their files; `latest`: of the newest file. */
  function found(...files: [kind: 'process' | 'persistent', bootId: string, generation: number][]) {
    const path = makeStateDir();
    mkdirSync(path);
    for (const [i, [kind, bootId, generation]] of files.entries()) {
      const header = { uuid: UUIDS[i]!, kind, pid: null, command: null, cgroup: null, bootId, generation };
      const text = encodeOwnerFile({ ...header, settings: DEFAULT_SETTINGS, kubelet: null, pods: [] });
      writeFileSync(join(path, header.uuid), text);
    }
    const { living, latest, unknown } = findOwners(open(path), 'this');
    expect(unknown).toEqual([]);
    const numberOf = ({ uuid }: { uuid: string }) => UUIDS.indexOf(uuid);
    return { living: living.map(numberOf), latest: latest && numberOf(latest) };
  }

  it('live without a process if they need none, and not after a process without its lock', () => {
    expect(found(['process', 'this', 1], ['persistent', 'this', 1]).living).toEqual([1]);
    expect(found(['persistent', 'another', 1])).toEqual({ living: [], latest: undefined });
  });

  it('are unknown if a file is damaged or of another owner, unless its process has ended', () => {
    const path = makeStateDir();
    mkdirSync(path);
    const damaged = (kind: string) => `{"format":"numalign-owner","version":2,"kind":"${kind}"\n`;
    const texts = [damaged('persistent'), damaged('process'), ''];
    for (const [i, text] of texts.entries()) writeFileSync(join(path, UUIDS[i]!), text);
    const header = { uuid: UUIDS[0]!, kind: 'persistent', pid: null, command: null, cgroup: null } as const;
    const file = { ...header, bootId: 'this', generation: 1, settings: DEFAULT_SETTINGS };
    writeFileSync(join(path, UUIDS[3]!), encodeOwnerFile({ ...file, kubelet: null, pods: [] }));
    const { living, unknown } = findOwners(open(path), 'this');
    expect(living).toEqual([]);
    expect(unknown.map(({ uuid }) => UUIDS.indexOf(uuid)).sort()).toEqual([0, 3]);
    expect(unknown[0]).toMatchObject({ isFileLost: false, error: { code: 'ERR_STATE_CORRUPT' } });
  });

  it('have a newest file, also of one that is dead', () => {
    expect(found(['process', 'this', 1], ['process', 'this', 3], ['persistent', 'this', 2]).latest).toBe(1);
    expect(found(['process', 'this', 0], ['process', 'another', 3]).latest).toBe(0);
  });
});

describe('a text of another boot id', () => {
  /** A folder of owners, with the file of one that needs no process. */
  function owners(bootId: string, parent?: string): NativeFolder {
    const path = makeStateDir(parent);
    mkdirSync(path);
    const header = { uuid: '0f9b8a7c-1d2e-4f3a-8b4c-5d6e7f8a9b0c', pid: null, command: null, cgroup: null };
    const file = {
      ...header,
      kind: 'persistent',
      bootId,
      generation: 1,
      settings: DEFAULT_SETTINGS,
    } as const;
    writeFileSync(join(path, header.uuid), encodeOwnerFile({ ...file, kubelet: null, pods: [] }));
    return open(path);
  }

  it('is of this boot in memory, which outlives none', () => {
    expect(isOfBoot('another', 'this', owners('another', '/dev/shm'))).toBe(true);
  });

  it.each(['another', 'this'])(
    'is not of this boot for an owner of %s boot that needs no process',
    (bootId) => {
      expect(isOfBoot('another', 'this', owners(bootId))).toBe(false);
    },
  );
});

describe('a state that is read', () => {
  const follower = (openJournal: () => unknown) =>
    new JournalFollower({
      version: () => '1:2:3',
      openJournal,
      lockNumber: () => 0,
    } as unknown as NativeFolder);
  const refused = (errno: number) => () => {
    throw new NumalignError('ERR_SYSCALL', 'openat', { errno, syscall: 'openat' });
  };

  it('is missing if it is removed meanwhile', () => {
    expect(follower(() => undefined).look()).toEqual({ kind: 'missing' });
  });

  it('is damaged if it is no file, and unknown if the disk fails', () => {
    expect(follower(refused(EISDIR)).look()).toMatchObject({ kind: 'damaged', isFolder: true });
    expect(thrownBy(() => follower(refused(EIO)).look())).toMatchObject({ code: 'ERR_SYSCALL' });
  });
});

describe('a folder that is used', () => {
  const folder = () => {
    const closed: boolean[] = [];
    return { closed, close: () => void closed.push(true) };
  };

  it('is closed, also if that fails', () => {
    const [one, two] = [folder(), folder()];
    expect(using(one as never, () => 5)).toBe(5);
    const bug = new Error('bug');
    expect(
      thrownBy(() =>
        using(two as never, () => {
          throw bug;
        }),
      ),
    ).toBe(bug);
    expect([one.closed, two.closed]).toEqual([[true], [true]]);
  });
});

describe('a state that is read again', () => {
  it('is read whole if its new lines are damaged, and a bug is none', () => {
    const good = Buffer.from(
      encodeCheckpoint({
        ...{ generation: 1, bootId: 'boot', writtenAt: '2026-01-01T00:00:00.000Z' },
        assignments: emptyAssignments(DEFAULT_SETTINGS),
      }),
    );
    let size = good.length;
    let read = (from: number) => good.subarray(from);
    const journal = {
      version: () => `1:${size}`,
      read: (from: number) => read(from),
      lookIn: () => `1:${size}`,
      know: () => {},
      show: () => {},
      shown: (least: number) => least,
      close: () => {},
    };
    const follower = new JournalFollower({
      ...{ version: journal.version, openJournal: () => journal, lockNumber: () => 0, read: () => undefined },
    } as unknown as NativeFolder);
    expect(follower.look()).toMatchObject({ kind: 'good' });
    size += 1;
    const bug = new TypeError('bug');
    read = () => {
      throw bug;
    };
    expect(thrownBy(() => follower.look())).toBe(bug);
  });

  const checkpoint = (generation: number, cpus: [number, number, number, number][]) =>
    encodeCheckpoint({
      ...{ generation, bootId: 'boot', writtenAt: '2026-01-01T00:00:00.000Z' },
      assignments: { ...emptyAssignments(DEFAULT_SETTINGS), cpus },
    });

  it.each([
    ['the same generation', 1],
    ['a later generation', 5],
  ])('is what another file says that has its name, with %s', (_, generation) => {
    const path = makeStateDir();
    mkdirSync(path);
    const file = join(path, 'state.json');
    writeFileSync(file, checkpoint(1, [[0, 0, 0, 0]]));
    const folder = open(path);
    const follower = new JournalFollower(folder);
    expect(follower.look()).toMatchObject({ kind: 'good', checkpoint: { generation: 1 } });
    folder.replace('state.json', checkpoint(generation, [[1, 1, 0, 0]]));
    expect(follower.look()).toMatchObject({
      kind: 'good',
      checkpoint: { generation, assignments: { cpus: [[1, 1, 0, 0]] } },
    });
    follower.forget();
  });
});
