// needs: machine
// Kernel events of folders and files, and what a process watches at the kernel.
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  IN_ATTRIB,
  IN_CLOSE_WRITE,
  IN_MODIFY,
  IN_Q_OVERFLOW,
  watchFile,
} from '../../lib/state/files/folder-events.js';
import { makeStateDir } from '../support/state-dir.js';

let path: string;
const ends: (() => void)[] = [];

beforeEach(() => {
  const folder = makeStateDir();
  mkdirSync(folder);
  path = join(folder, 'file');
  writeFileSync(path, '');
});

afterEach(() => {
  for (const end of ends.splice(0)) end();
});

/** The watches of this process, at the kernel. */
const watches = () =>
  readdirSync('/proc/self/fdinfo').flatMap((fd) => {
    try {
      return readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1').match(/^inotify wd:.*$/gm) ?? [];
    } catch {
      return [];
    }
  });

/** The inotify instances of this process. */
const instances = () =>
  readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === 'anon_inode:inotify';
    } catch {
      return false;
    }
  }).length;

function watch(mask: number) {
  const masks: number[] = [];
  const end = watchFile(path, mask, (each) => masks.push(each));
  ends.push(end);
  return { masks, end };
}

function replace() {
  writeFileSync(`${path}.new`, '');
  renameSync(`${path}.new`, path);
}

it('a file has one watch for all its listeners, for what they listen to and no more', async () => {
  const [modified, closed] = [watch(IN_MODIFY), watch(IN_CLOSE_WRITE)];
  expect(watches()).toHaveLength(1);
  modified.end();
  expect(watches()).toEqual([expect.stringMatching(/mask:8 /)]);
  appendFileSync(path, 'x');
  await expect.poll(() => closed.masks).toEqual([IN_CLOSE_WRITE]);
  expect(modified.masks).toEqual([]);
  closed.end();
  expect(watches()).toEqual([]);
});

it('a file of three listeners is watched for what the two that stay listen to', () => {
  const [modified] = [watch(IN_MODIFY), watch(IN_CLOSE_WRITE), watch(IN_ATTRIB)];
  modified!.end();
  expect(watches()).toEqual([expect.stringMatching(/mask:c /)]);
});

it('a listener that ends leaves no watch of a file that has come to its path', () => {
  const [first, second] = [watch(IN_MODIFY), watch(IN_CLOSE_WRITE)];
  replace();
  first.end();
  expect(watches().length).toBeLessThanOrEqual(1);
  second.end();
  expect(watches()).toEqual([]);
});

it('a listener of a former file that ends lets those of the present one have lost events', async () => {
  const first = watch(IN_MODIFY);
  watch(IN_CLOSE_WRITE);
  replace();
  const third = watch(IN_MODIFY);
  first.end();
  expect(third.masks).toEqual([IN_Q_OVERFLOW]);
  appendFileSync(path, 'x');
  await expect.poll(() => third.masks).toEqual([IN_Q_OVERFLOW, IN_MODIFY]);
});

it('the instance stays for a listener of the same turn, and is closed after the last', async () => {
  // Earlier tests have closed theirs in a turn of the event loop.
  await expect.poll(instances).toBe(0);
  const first = watch(IN_MODIFY);
  first.end();
  const second = watch(IN_MODIFY);
  await new Promise(setImmediate);
  expect(instances()).toBe(1);
  appendFileSync(path, 'x');
  await expect.poll(() => second.masks).toEqual([IN_MODIFY]);
  second.end();
  await expect.poll(instances).toBe(0);
});
