// Notices of files in a process that delays them.
import { appendFileSync, mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { delayNotices } from '../../lib/base/notices/notice-delay.js';
import { FileWatch } from '../../lib/state/files/file-watch.js';
import { hasPendingEvents } from '../../lib/state/files/folder-events.js';

const DELAY_MS = 2000;

// The descriptor that lists them is gone once they are listed.
function linkOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return '';
  }
}

const isListening = () => readdirSync('/proc/self/fd').some((fd) => linkOf(fd) === 'anon_inode:inotify');

function watching(path: string) {
  const told = { times: 0 };
  const watch = new FileWatch(path, () => {
    told.times++;
  });
  watch.start();
  return { path, watch, told };
}

// An environment has one delay: all of this is watched within it.
delayNotices(DELAY_MS);
const folder = mkdtempSync(join(tmpdir(), 'numalign-test-'));
afterAll(() => rmSync(folder, { recursive: true }));
writeFileSync(join(folder, 'there'), '');
const there = watching(join(folder, 'there'));
const ended = watching(join(folder, 'there'));
const missing = watching(join(folder, 'missing'));

it('needs no inotify before the delay is over, and does not say that it has heard of everything', () => {
  ended.watch.stop();
  appendFileSync(there.path, 'early');
  expect([isListening(), hasPendingEvents(), there.told.times]).toEqual([false, true, 0]);
});

it('is told that something may have happened once the delay is over', async () => {
  await expect.poll(() => there.told.times).toBeGreaterThan(0);
  expect([isListening(), hasPendingEvents()]).toEqual([true, false]);
});

it('gives a notice of a file that is made after the delay', async () => {
  const { times } = missing.told;
  writeFileSync(missing.path, '');
  await expect.poll(() => missing.told.times).toBeGreaterThan(times);
});

it('gives a notice of what happens after the delay', async () => {
  const { times } = there.told;
  appendFileSync(there.path, 'late');
  await expect.poll(() => there.told.times).toBeGreaterThan(times);
});

it('is told nothing by a watch that has ended within the delay', () => {
  expect(ended.told.times).toBe(0);
});

it('lets inotify go when the last watch has ended', async () => {
  there.watch.stop();
  missing.watch.stop();
  await expect.poll(isListening).toBe(false);
});
