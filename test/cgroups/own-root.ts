// A cgroup root of a test's own, its processes, and what is written below it.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { CpusetHierarchy } from '../../lib/cgroups/cpuset-hierarchy.js';
import { openCpusetHierarchy } from '../../lib/cgroups/cpuset-hierarchy.js';
import { type CgroupFiles, KERNEL_FILES } from '../../lib/cgroups/files/cgroup-files.js';
import { findHierarchy } from '../../lib/cgroups/files/hierarchies.js';
import { type MadeGroups, MadeGroupsInMemory } from '../../lib/cgroups/files/made-groups.js';
import { affinity } from '../../lib/entries/diagnostics.js';
import { CpuSet, NodeSet } from '../../lib/index.js';

export const ROOT = `/numalign-test-${process.pid}`;
export const hierarchy = findHierarchy('cpuset');

/** The CPUs of this process, of which a manager takes all. */
export const ALL = affinity();

/** Whether the real cpuset hierarchy of v1 can be used here, with CPUs 0 and 1 to move between. */
export const isUsable =
  process.getuid?.() === 0 &&
  hierarchy?.version === 1 &&
  CpuSet.of(0, 1).isSubsetOf(
    CpuSet.parse(readFileSync(join(hierarchy.mount.point, 'cpuset.cpus'), 'utf8').trim()),
  );

export const cpus = (list: string): CpuSet => CpuSet.parse(list);
export const NODE0 = NodeSet.of(0);

/** What is written below our root, in order. */
export class CountedFiles implements CgroupFiles {
  readonly log: string[] = [];

  write(path: string, text: string): void {
    KERNEL_FILES.write(path, text);
    this.log.push(`${path}=${text}`);
  }

  makeFolder(path: string): void {
    KERNEL_FILES.makeFolder(path);
    this.log.push(`mkdir ${path}`);
  }

  removeFolder(path: string): void {
    KERNEL_FILES.removeFolder(path);
    this.log.push(`rmdir ${path}`);
  }
}

export interface OwnRoot {
  tree: CpusetHierarchy;
  made: MadeGroups;
  files: CountedFiles;
}

/** Our root, not made yet. Removed after the test with whatever is in it. */
export function ownRoot(): OwnRoot {
  const made = new MadeGroupsInMemory();
  const files = new CountedFiles();
  const tree = openCpusetHierarchy(ROOT, made, files);
  onTestFinished(() => removeAll(tree.rootPath));
  return { tree, made, files };
}

/** The same, made with two CPUs. */
export function madeRoot(): OwnRoot {
  const own = ownRoot();
  own.tree.ensureRoot(cpus('0-1'), NODE0);
  own.files.log.length = 0;
  return own;
}

/** Removes a cgroup; what is in it goes to the one above. */
export function removeAll(folder: string): void {
  if (!existsSync(folder)) return;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) removeAll(join(folder, entry.name));
  }
  // Processes may be born meanwhile, and those that have ended are counted a moment longer.
  for (const end = Date.now() + 5_000; existsSync(folder); ) {
    for (const tid of read(folder, 'tasks').split('\n').filter(Boolean)) {
      try {
        writeFileSync(join(dirname(folder), 'tasks'), tid);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
      }
    }
    try {
      rmdirSync(folder);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EBUSY' || Date.now() > end) throw error;
    }
  }
}

/** A file of a cgroup. */
export function read(folder: string, file: string): string {
  return readFileSync(join(folder, file), 'utf8').trim();
}

/**
 * A process that does nothing, or runs a shell script; ended after the test, with those that it has
 * started.
 */
export function idler(script?: string): number {
  // It has its name when spawn returns: a shell would take it later.
  const [command, args] = script === undefined ? ['sleep', ['1000']] : ['sh', ['-c', script]];
  const child = spawn(command, args, { stdio: 'ignore', detached: true });
  // It leads a group of its own, in which they are.
  onTestFinished(() => {
    try {
      process.kill(-child.pid!, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  });
  return started(child);
}

/** A Node process with a Worker; the numbers of all its threads. */
export async function threadedIdler(): Promise<{ pid: number; threads: () => number[] }> {
  const script = `new (require('worker_threads').Worker)('setInterval(() => {}, 1000); require("worker_threads").parentPort.postMessage(0)', { eval: true })
    .once('message', () => console.log('up'))`;
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  const pid = started(child);
  await once(child.stdout!, 'data');
  return { pid, threads: () => readdirSync(`/proc/${pid}/task`).map(Number) };
}

function started(child: ChildProcess): number {
  onTestFinished(async () => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  });
  return child.pid!;
}
