// The cgroups that numalign made, from the record in a state folder: which there are, and their removal.
import { lstatSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { errorText } from 'numalign/tools';
import { textOf } from './machine-files.js';

// How long the kernel may count a process that has ended or left.
const ATTEMPTS = 100;

// Another cgroup may have the path by now.
function isSame(path: string, identity: string): boolean {
  const found = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  return found?.isDirectory() === true && `${found.dev}-${found.ino}` === identity;
}

const isFound = (error: unknown) => (error as NodeJS.ErrnoException).code !== 'ENOENT';

/** Their paths, the lowest first. */
export function madeCgroups(folder: string): readonly string[] {
  const record = join(folder, 'cgroups');
  let names: string[] = [];
  try {
    names = readdirSync(record);
  } catch (error) {
    if (isFound(error)) throw error;
  }
  const paths = names.map((name) => [name, textOf(join(record, name)) ?? ''] as const);
  return paths
    .flatMap(([name, path]) => (isSame(path, name) ? [path] : []))
    .sort((a, b) => b.length - a.length || a.localeCompare(b));
}

const processesIn = (path: string) =>
  readFileSync(join(path, 'cgroup.procs'), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && line !== '0');

async function removeCgroup(path: string, home: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      for (const pid of processesIn(path)) writeFileSync(join(home, 'cgroup.procs'), pid);
      rmdirSync(path);
      return;
    } catch (error) {
      if (!isFound(error)) return;
      // A process that ended meanwhile, or that the kernel counts a moment longer.
      const { code } = error as NodeJS.ErrnoException;
      if (!['ESRCH', 'EBUSY'].includes(code!) || attempt === ATTEMPTS) throw error;
      await setTimeout(1);
    }
  }
}

/**
 * Removes them; processes in them go to the cgroup above all of them. `isInUse`: only those without
 * processes. Returns the removed ones, and adds to `notes` why others stay.
 */
export async function removeCgroups(folder: string, isInUse: boolean, notes: string[]): Promise<string[]> {
  const made = madeCgroups(folder);
  const removed: string[] = [];
  const kept: string[] = [];
  for (const path of made) {
    // What stays below it says why.
    if (kept.some((each) => each.startsWith(`${path}/`))) continue;
    const home = made.reduce(
      (above, each) => (each === dirname(above) ? dirname(each) : above),
      dirname(path),
    );
    try {
      if (isInUse && processesIn(path).length > 0) throw new Error('a process is in it');
      await removeCgroup(path, home);
      removed.push(path);
    } catch (error) {
      kept.push(path);
      notes.push(`the cgroup ${path} stays: ${errorText(error as Error)}`);
    }
  }
  return removed;
}
