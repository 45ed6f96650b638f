// needs: modules
// The owners' locks, as /proc/locks lists them: in pieces, between which locks come and go.
import { lstatSync, mkdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeEach, expect, it, vi } from 'vitest';
import { native } from '../../lib/base/native.js';
import { lockRange, OwnerLocks } from '../../lib/state/files/owner-locks.js';
import { makeStateDir } from '../support/state-dir.js';

const UUID = '0f9b8a7c-1d2e-4f3a-8b4c-5d6e7f8a9b0c';
const OTHERS = `${'1: POSIX  ADVISORY  WRITE 1 00:01:1 0 EOF'.padEnd(60)}\n`.repeat(70);

const listings: string[] = [];
let readings = 0;
// How many of the first locks are dropped after each piece.
let dropped = 0;

const PAGE = 4096;

/** As the kernel's seq_file: lines as far as they fit into a page and are asked for. */
function listing(text: string) {
  const lines = text.match(/.*\n/g) ?? [];
  let index = 0;
  let rest = '';
  return (buffer: Buffer): number => {
    let piece = '';
    for (; index < lines.length && rest.length + piece.length < buffer.length; index++) {
      if (piece.length + lines[index]!.length > PAGE) break;
      piece += lines[index];
    }
    lines.splice(0, dropped);
    const all = rest + piece;
    rest = all.slice(buffer.length);
    return buffer.write(all.slice(0, buffer.length), 'latin1');
  };
}

vi.mock('node:fs', async (original) => {
  const fs = await original<typeof import('node:fs')>();
  const open = new Map<number, (buffer: Buffer) => number>();
  const openSync = (path: string, ...rest: [string]) => {
    const file = fs.openSync(path, ...rest);
    if (path !== '/proc/locks') return file;
    readings++;
    open.set(file, listing((listings.length > 1 ? listings.shift() : listings[0]) ?? ''));
    return file;
  };
  const readSync = (file: number, buffer: Buffer) => open.get(file)?.(buffer) ?? fs.readSync(file, buffer);
  const closeSync = (file: number) => {
    open.delete(file);
    fs.closeSync(file);
  };
  return { ...fs, openSync, readSync, closeSync };
});

beforeEach(() => {
  listings.length = 0;
  readings = 0;
  dropped = 0;
});

/** A folder, and the kernel's line of a lock that its owner holds. */
function ownedFolder() {
  const path = makeStateDir();
  mkdirSync(join(path, 'owners'), { recursive: true });
  const owners = native.Folder.open(join(path, 'owners'), false, 0o700, -1);
  const [start, length] = lockRange(UUID, path);
  const { ino } = lstatSync(path);
  const lineOf = (type: string, first: bigint, last: bigint) =>
    `2: OFDLCK ADVISORY  ${type} -1 ${owners.lockDevice()}:${ino} ${first} ${last}\n`;
  return { path, owners, lineOf, line: lineOf('WRITE', start, start + length - 1n) };
}

it('an owner that a long list lacks is found if the next one has it', () => {
  const { path, owners, line } = ownedFolder();
  listings.push(OTHERS, OTHERS, OTHERS, OTHERS + line);
  expect(new OwnerLocks(owners, path).has(UUID)).toBe(true);
  expect(readings).toBe(4);
});

it('no owner is missing, however many locks there are, while others drop theirs between pieces', () => {
  const { path, owners, lineOf } = ownedFolder();
  const [start, length] = lockRange(UUID, path);
  const held = fc.record({
    ours: fc.integer({ min: 1, max: 600 }),
    others: fc.integer({ min: 50, max: 140 }),
  });
  fc.assert(
    fc.property(held, fc.integer({ min: 1, max: 4 }), ({ ours, others }, drops) => {
      dropped = drops;
      const lines = Array.from({ length: ours }, (_, i) => {
        const first = start + BigInt(i << 12);
        return lineOf('WRITE', first, first + length - 1n);
      });
      listings[0] = OTHERS.repeat(2).slice(0, 61 * others) + lines.join('');
      expect(new OwnerLocks(owners, path).beside([])).toHaveLength(ours);
    }),
  );
});

it('a list of one piece is read once, since it lacks nothing', () => {
  const { path, owners, line } = ownedFolder();
  listings.push(line);
  expect(new OwnerLocks(owners, path).has(UUID)).toBe(true);
  expect(readings).toBe(1);
});

it('an owner whose file was removed is known by the beginning of its uuid', () => {
  const { path, owners, line } = ownedFolder();
  listings.push(line);
  const locks = new OwnerLocks(owners, path);
  expect(locks.beside([])).toEqual([{ uuid: UUID.slice(0, 17), since: 0 }]);
  expect(locks.beside([UUID])).toEqual([]);
});

it('an owner’s generation is that of its seal, which is a lock to read', () => {
  const { path, owners, line, lineOf } = ownedFolder();
  const seals = 1n << 62n;
  listings.push(line + lineOf('READ', seals, seals + 7n) + lineOf('WRITE', seals, seals + 9n));
  const locks = new OwnerLocks(owners, path);
  expect(locks.since(UUID)).toBe(7);
  expect(locks.beside([])).toMatchObject([{ since: 7 }]);
});

it('a lock of another kind, one that is waited for and one of another file system are no owner’s', () => {
  const { path, owners, line } = ownedFolder();
  const lines = [
    line.replace('OFDLCK', 'POSIX '),
    line.replace('2: OFDLCK', '2: -> OFDLCK'),
    line.replace('WRITE -1', 'WRITE 4711'),
    line.replace('WRITE', 'RW   '),
    line.replace('\n', ' EOF\n'),
    line.replace(owners.lockDevice(), '00:01'),
  ];
  expect(lines).not.toContain(line);
  listings.push(lines.join(''));
  expect(new OwnerLocks(owners, path).beside([])).toEqual([]);
  listings[0] += line;
  expect(new OwnerLocks(owners, path).has(UUID)).toBe(true);
});

it('a folder that is gone with the one above it has a lock range nevertheless', () => {
  const path = join(makeStateDir(), 'above', 'state');
  const [start, length] = lockRange(UUID, path);
  expect(lockRange(UUID, path)).toEqual([start, length]);
  expect(lockRange(UUID, `${path}-other`)).not.toEqual([start, length]);
});

it('an owner keeps its lock while its folder is moved, or another one comes to its path', () => {
  const { path, line } = ownedFolder();
  listings.push(line);
  const has = (folder: string) => {
    mkdirSync(join(folder, 'owners'), { recursive: true });
    return new OwnerLocks(native.Folder.open(join(folder, 'owners'), false, 0o700, -1), folder).has(UUID);
  };
  const moved = `${path}-moved`;
  renameSync(path, moved);
  expect([has(moved), has(path), has(`${path}-other`)]).toEqual([true, true, false]);
});
