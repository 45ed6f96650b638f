// Requests that wait for CPUs, in order of arrival.
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { native } from '../../lib/base/native.js';
import { FolderQueue } from '../../lib/state/wait-queue.js';
import { makeStateDir } from '../support/state-dir.js';

function queues() {
  const path = makeStateDir();
  mkdirSync(path);
  const open = () => new FolderQueue(native.Folder.open(path, false, 0o700, -1));
  return { path, one: open(), other: open() };
}

describe('a queue', () => {
  it('has the same order for all', () => {
    const { path, one, other } = queues();
    expect(one.isFirst(undefined)).toBe(true);
    const first = one.join();
    const second = other.join();
    const third = one.join();
    expect([one.isFirst(first), other.isFirst(second), one.isFirst(third)]).toEqual([true, false, false]);
    expect([one.isFirst(undefined), other.isFirst(undefined)]).toEqual([false, false]);
    one.leave(first);
    expect([other.isFirst(second), one.isFirst(third)]).toEqual([true, false]);
    other.leave(second);
    expect(one.isFirst(third)).toBe(true);
    one.leave(third);
    expect(readdirSync(path)).toEqual([]);
  });

  it('has no place for files that no request holds, and for foreign files', () => {
    const { path, one } = queues();
    for (const name of ['1'.padStart(16, '0'), 'README', '17']) writeFileSync(join(path, name), '');
    expect(one.isFirst(undefined)).toBe(true);
    const ticket = one.join();
    expect(one.isFirst(ticket)).toBe(true);
    one.leave(ticket);
    expect(readdirSync(path).sort()).toEqual(['17', 'README']);
  });
});
