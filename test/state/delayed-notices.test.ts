// needs: process
// Notices of files in a process that delays them.
import { appendFileSync, mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { delayNotices } from '../../lib/base/notices/notice-delay.js';
import { FileWatch } from '../../lib/state/files/file-watch.js';
import { hasPendingEvents, IN_CREATE, IN_IGNORED, watchFolder } from '../../lib/state/files/folder-events.js';

const DELAY_MS = 2000;

// The descriptor that lists them is closed once they are listed.
function linkOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return '';
  }
}

const isListening = () => readdirSync('/proc/self/fd').some((fd) => linkOf(fd) === 'anon_inode:inotify');

function watching(path: string) {
  const notices = { times: 0 };
  const watch = new FileWatch(path, () => {
    notices.times++;
  });
  watch.start();
  return { path, watch, notices };
}

// An environment has one delay: everything here is watched within it.
delayNotices(DELAY_MS);
const folder = mkdtempSync(join(tmpdir(), 'numalign-test-'));
afterAll(() => rmSync(folder, { recursive: true }));
writeFileSync(join(folder, 'there'), '');
const there = watching(join(folder, 'there'));
const ended = watching(join(folder, 'there'));
const missing = watching(join(folder, 'missing'));
const made = watching(join(folder, 'made'));
const earlyEvents: number[] = [];
const endEarly = watchFolder(folder, IN_CREATE, (mask) => earlyEvents.push(mask));
const goneEvents: number[] = [];
watchFolder(join(folder, 'gone'), IN_CREATE, (mask) => goneEvents.push(mask));

it('needs no inotify before the delay is over, and does not claim to be complete', () => {
  ended.watch.stop();
  endEarly();
  appendFileSync(there.path, 'early');
  writeFileSync(made.path, '');
  expect([isListening(), hasPendingEvents(), there.notices.times]).toEqual([false, true, 0]);
});

it('reports a possible change once the delay is over, and the end of a watch of what is missing then', async () => {
  await expect.poll(() => there.notices.times).toBeGreaterThan(0);
  expect([goneEvents, earlyEvents]).toEqual([[IN_IGNORED], []]);
  expect(isListening()).toBe(true);
  // A notice of what was written here may still be on its way.
  await expect.poll(hasPendingEvents).toBe(false);
});

it('gives a notice of a file that is made after the delay', async () => {
  const { times } = missing.notices;
  writeFileSync(missing.path, '');
  await expect.poll(() => missing.notices.times).toBeGreaterThan(times);
});

it('gives a notice of a file that was made within the delay, and of what happens to it', async () => {
  await expect.poll(() => made.notices.times).toBeGreaterThan(0);
  const { times } = made.notices;
  appendFileSync(made.path, 'late');
  await expect.poll(() => made.notices.times).toBeGreaterThan(times);
});

it('gives a notice of what happens after the delay', async () => {
  const { times } = there.notices;
  appendFileSync(there.path, 'late');
  await expect.poll(() => there.notices.times).toBeGreaterThan(times);
});

it('gets no notice of a watch that ended within the delay', () => {
  expect(ended.notices.times).toBe(0);
});

it('closes inotify when the last watch has ended', async () => {
  there.watch.stop();
  missing.watch.stop();
  made.watch.stop();
  await expect.poll(isListening).toBe(false);
});
