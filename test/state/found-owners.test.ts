// needs: folders
// What the files and the kernel's locks say of the owners of a folder, whatever others do to them.
import { mkdirSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { NumalignError } from '../../lib/base/errors.js';
import { native } from '../../lib/base/native.js';
import type { NativeFolder } from '../../lib/base/native-files.js';
import { DEFAULT_SETTINGS } from '../../lib/decision/machine-settings.js';
import {
  findOwners,
  isLocked,
  isNewerOwner,
  isOfBoot,
  isOwnerAlive,
  isStray,
} from '../../lib/state/files/owner-claims.js';
import { lockRange, locksOf, OwnerLocks } from '../../lib/state/files/owner-locks.js';
import { encodeOwnerFile, endLine, type OwnerFile } from '../../lib/state/format/owner-file.js';
import { sealLine } from '../../lib/state/format/sealed-json.js';
import { thrownBy } from '../support/error-of.js';
import { kubeletRecord } from '../support/kubelet-records.js';
import { makeStateDir } from '../support/state-dir.js';

const uuidOf = (i: number) => `0f9b8a7${i}-1d2e-4f3a-8b4c-5d6e7f8a9b0c`;
const ownerFile = (i: number, more: Partial<OwnerFile> = {}): OwnerFile => ({
  ...{ uuid: uuidOf(i), kind: 'process', pid: 1, command: 'test', cgroup: null, bootId: 'this' },
  ...{ generation: 5, settings: DEFAULT_SETTINGS, kubelet: null, pods: [] },
  ...more,
});

function folder() {
  const path = makeStateDir('/dev/shm');
  mkdirSync(join(path, 'owners'), { recursive: true });
  const owners = native.Folder.open(join(path, 'owners'), false, 0o700, -1);
  const file = (i: number) => join(path, 'owners', uuidOf(i));
  const write = (i: number, text: string | OwnerFile) =>
    writeFileSync(file(i), typeof text === 'string' ? text : encodeOwnerFile(text));
  /** Starts a process that owns, with this in its file. */
  const start = (i: number, more: Partial<OwnerFile> = {}, since = 5) => {
    const text = encodeOwnerFile(ownerFile(i, more));
    const lock = owners.createOwner(uuidOf(i), text, ...lockRange(uuidOf(i), path));
    lock.seal(crc32(text), since);
    onTestFinished(() => lock.close());
    return lock;
  };
  const numberOf = ({ uuid }: { uuid: string }) => Number(uuid[7]);
  /** By the numbers of their files. */
  const found = (ownFile?: OwnerFile, record?: { generation: number; owners: Set<string> }) => {
    const { living, unknown, latest } = findOwners(owners, 'this', { ownFile, path, record });
    return {
      living: living.map(numberOf).sort(),
      lost: Object.fromEntries(
        unknown.filter(({ isFileLost }) => isFileLost).map((each) => [numberOf(each), each.since]),
      ),
      damaged: unknown
        .filter(({ isFileLost }) => !isFileLost)
        .map(numberOf)
        .sort(),
      latest: latest && numberOf(latest),
      errors: unknown.map(({ error }) => error.message).sort(),
    };
  };
  const locks = () => locksOf(owners, path);
  return { path, owners, file, write, start, found, locks };
}

describe('the owners of a folder', () => {
  it('live while they hold their locks, also with another boot id', () => {
    const { start, write, found } = folder();
    start(1);
    const second = start(2, { bootId: 'a container’s' });
    write(3, ownerFile(3, { generation: 6 }));
    write(4, ownerFile(4, { bootId: 'another', generation: 9 }));
    expect(found()).toEqual({ living: [1, 2], lost: {}, damaged: [], latest: 3, errors: [] });
    second.close();
    expect(found()).toMatchObject({ living: [1], latest: 3 });
  });

  it('are lost with the generation of their seals if others remove, replace or change their files', () => {
    const { start, write, file, found, path } = folder();
    start(1, {}, 7);
    start(2, {}, 8);
    start(3, {}, 9);
    writeFileSync(file(1), `${readFileSync(file(1), 'utf8')} `);
    rmSync(file(2));
    write(2, ownerFile(2));
    rmSync(file(3));
    const { lost, living, damaged, errors } = found();
    expect({ lost, living, damaged }).toEqual({
      ...{ living: [], damaged: [] },
      lost: { 1: 7, 2: 8, 3: 9 },
    });
    expect(errors).toEqual([
      ...[1, 2].map((i) =>
        expect.stringContaining(`owners/${uuidOf(i)} are unknown: its file was replaced or`),
      ),
      expect.stringContaining(`owners/${uuidOf(3).slice(0, 17)}… are unknown: its file was removed`),
    ]);
    const without = findOwners(native.Folder.open(join(path, 'owners'), false, 0o700, -1), 'this');
    expect(without.unknown.map(({ since }) => since)).toEqual([0]);
    expect(without.living).toEqual([]);
  });

  it.each([
    ['', undefined],
    [' beside a state', { generation: 5, owners: new Set<string>() }],
  ])('do not go unseen if they write their removed files again while all are looked at%s', (_, record) => {
    const { start, file, found, owners } = folder();
    // Looked at, as it may add something.
    start(1, { generation: 6 });
    const removed = start(2, {}, 8);
    rmSync(file(2));
    const looked = vi.spyOn(owners, 'lookAtOwner');
    looked.mockImplementationOnce((name) => {
      looked.mockRestore();
      removed.close();
      start(2, { generation: 6 }, 9);
      return owners.lookAtOwner(name);
    });
    expect(found(undefined, record)).toMatchObject({ living: [1], lost: { 2: 8 } });
    expect(found(undefined, record)).toMatchObject({ living: [1, 2], lost: {} });
  });

  it('claim what they have sealed if they were stopped before they sealed more', () => {
    const { start, found, file } = folder();
    const lock = start(1);
    const [head, end] = encodeOwnerFile(ownerFile(1)).trimEnd().split('\n');
    // With this line the file is damaged, without it is not.
    lock.writeAt(head!.length + 1, `${sealLine('{"generation":6,"pod":{"uid":7}}')}${endLine(2)}`);
    expect(end).toBe(endLine(1).trimEnd());
    expect(readFileSync(file(1)).toString().split('\n')).toHaveLength(4);
    expect(found()).toMatchObject({ living: [1], lost: {}, damaged: [] });
    lock.seal(crc32(readFileSync(file(1))), 6);
    expect(found()).toMatchObject({ living: [], damaged: [1] });
  });

  it('are this process, by what it knows of its own file', () => {
    const { start, write, found } = folder();
    write(1, 'nonsense');
    start(2, { generation: 6 });
    expect(found(ownerFile(1))).toMatchObject({ living: [1, 2], damaged: [], latest: 2 });
    expect(found(ownerFile(1, { generation: 7 }))).toMatchObject({ latest: 1, lost: {} });
  });

  it('are known beside a state only if their files may add something to it', () => {
    const { start, write, found } = folder();
    start(1, { generation: 4 });
    start(2, { generation: 5, kubelet: kubeletRecord('3') });
    write(3, ownerFile(3, { generation: 6 }));
    write(4, ownerFile(4, { kind: 'persistent', generation: 7 }));
    // Claims nothing.
    start(5, { generation: 5 });
    const owners = new Set([uuidOf(3)]);
    expect(found(undefined, { generation: 5, owners })).toMatchObject({ living: [2, 4], latest: 4 });
    expect(found(undefined, { generation: 5, owners: new Set() })).toMatchObject({
      living: [2, 4],
      latest: 4,
    });
    expect(found(undefined, { generation: 8, owners: new Set() })).toMatchObject({
      living: [],
      latest: undefined,
    });
    expect(found(undefined, { generation: 4, owners: new Set() })).toMatchObject({ living: [2, 4, 5] });
  });

  it('are unknown if a file is damaged or of a newer format, unless its process has ended', () => {
    const { write, found, owners, start } = folder();
    write(
      1,
      encodeOwnerFile(ownerFile(1, { kind: 'persistent' }))
        .replace(/"version":\d/, '"version":9')
        .replace(/,"checksum":.*$/gm, '}'),
    );
    write(2, '');
    write(3, 'nonsense');
    write(4, ownerFile(5, { kind: 'persistent' }));
    write(7, '{"format":"numalign-owner","version":2,"kind":"process"\n');
    expect(found()).toMatchObject({ living: [], lost: {}, damaged: [1, 3, 4] });
    expect([1, 2, 3].map((i) => isNewerOwner(owners, uuidOf(i)))).toEqual([true, false, false]);
    start(6).close();
    expect(isNewerOwner(owners, uuidOf(6))).toBe(false);
  });

  it('have no part in what is not a file of theirs', () => {
    const { path, file, write, owners, locks, found, start } = folder();
    writeFileSync(join(path, 'owners', 'README'), '');
    mkdirSync(file(1));
    symlinkSync('/dev/null', file(2));
    write(3, ownerFile(3));
    write(4, '');
    truncateSync(file(4), (256 << 20) + 1);
    const strays = () => [1, 2, 3, 4].map((i) => isStray(owners, uuidOf(i), locks()));
    // A lock, such as the state's, shows that the kernel lists locks.
    const held = start(5);
    expect(strays()).toEqual([true, true, false, true]);
    expect(found()).toMatchObject({ living: [5], damaged: [] });
    const hidden = start(6);
    rmSync(file(6));
    mkdirSync(file(6));
    expect(isStray(owners, uuidOf(6), locks())).toBe(false);
    expect(isStray(owners, `${uuidOf(6)}.new`, locks())).toBe(false);
    hidden.close();
    expect(isStray(owners, uuidOf(6), locks())).toBe(true);
    truncateSync(file(4), 256 << 20);
    expect(isStray(owners, uuidOf(4), locks())).toBe(false);
    held.close();
  });
});

describe('a lock of an owner', () => {
  it('is held, where its file is, and where another one has its name', () => {
    const { start, owners, file, locks, write } = folder();
    const lock = start(1);
    expect([isLocked(owners, uuidOf(1)), isLocked(owners, uuidOf(1), locks())]).toEqual([true, true]);
    rmSync(file(1));
    write(1, ownerFile(1));
    expect([isLocked(owners, uuidOf(1)), isLocked(owners, uuidOf(1), locks())]).toEqual([false, true]);
    rmSync(file(1));
    mkdirSync(file(1));
    expect([isLocked(owners, uuidOf(1)), isLocked(owners, uuidOf(1), locks())]).toEqual([true, true]);
    start(2);
    lock.close();
    expect([isLocked(owners, uuidOf(1)), isLocked(owners, uuidOf(1), locks())]).toEqual([true, false]);
  });

  it('may be held if its file is closed to this user; other errors are reported', () => {
    const refused = (errno: number) =>
      ({
        isOwnerAlive: () => {
          throw new NumalignError('ERR_SYSCALL', 'open', { errno, syscall: 'open' });
        },
      }) as unknown as NativeFolder;
    expect(isLocked(refused(13), uuidOf(1))).toBe(true);
    expect(thrownBy(() => isLocked(refused(5), uuidOf(1)))).toMatchObject({ code: 'ERR_SYSCALL' });
    const bug = new TypeError('bug');
    const failing = {
      isOwnerAlive: () => {
        throw bug;
      },
    } as unknown as NativeFolder;
    expect(thrownBy(() => isLocked(failing, uuidOf(1)))).toBe(bug);
    expect(isStray(refused(5), uuidOf(1), () => undefined as never)).toBe(false);
  });

  it('tells whether an owner on record lives, unless it needs none', () => {
    const { start, owners } = folder();
    start(1);
    const process = { kind: 'process', uuid: uuidOf(1), cgroup: null } as const;
    expect(isOwnerAlive(owners, process)).toBe(true);
    expect(isOwnerAlive(owners, { ...process, uuid: uuidOf(2) })).toBe(false);
    expect(isOwnerAlive(undefined, process)).toBe(false);
    expect(isOwnerAlive(undefined, { ...process, kind: 'persistent' })).toBe(true);
    expect(isOwnerAlive(owners, { ...process, kind: 'cgroup' })).toBe(false);
  });

  it('is found by all locks of its folder', () => {
    const { start, owners, path } = folder();
    start(1);
    const locks = new OwnerLocks(owners, path);
    expect([locks.has(uuidOf(1)), locks.has(uuidOf(2))]).toEqual([true, false]);
    expect([locks.mayHave(uuidOf(1)), locks.mayHave(uuidOf(2))]).toEqual([true, false]);
    expect([locks.since(uuidOf(1)), locks.since(uuidOf(2))]).toEqual([5, 0]);
  });
});

describe('a text of another boot id', () => {
  it('is of this boot if a living owner has the same, or in memory', () => {
    const { start, owners } = folder();
    expect(isOfBoot('this', 'this', undefined)).toBe(true);
    expect(isOfBoot('another', 'this', undefined)).toBe(false);
    expect(isOfBoot('another', 'this', owners)).toBe(true);
    const disk = makeStateDir();
    mkdirSync(disk);
    const onDisk = native.Folder.open(disk, false, 0o700, -1);
    expect(isOfBoot('another', 'this', onDisk)).toBe(onDisk.isInMemory());
    const { bootId } = ownerFile(1);
    start(1, { bootId });
    expect(isOfBoot(bootId, 'another', owners)).toBe(true);
  });
});
