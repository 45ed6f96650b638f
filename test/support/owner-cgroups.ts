// Cgroups of this machine (as root) that own grants, and processes in them.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { onTestFinished } from 'vitest';

/**
 * A place where cgroups of a hierarchy can be made; v1's cpuset needs CPUs and memory before a
 * process can enter.
 */
export function hierarchies(): [string, string][] {
  if (process.getuid?.() !== 0) return [];
  const mounts = readFileSync('/proc/self/mounts', 'latin1')
    .split('\n')
    .map((line) => line.split(' '));
  const cpuset = mounts.find(
    ([, , type, options]) => type === 'cgroup' && options?.split(',').includes('cpuset'),
  );
  const unified = mounts.find(([, , type]) => type === 'cgroup2');
  const found: [string, string | undefined][] = [
    ['v1', cpuset?.[1]],
    ['v2', unified?.[1]],
  ];
  return found.filter((each): each is [string, string] => {
    if (each[1] === undefined) return false;
    try {
      rmdirSync(mkdtempSync(join(each[1], 'numalign-test-')));
      return true;
    } catch {
      return false;
    }
  });
}

export function makeCgroup(above: string, name?: string): string {
  const path = name === undefined ? mkdtempSync(join(above, 'numalign-test-')) : join(above, name);
  if (name !== undefined) mkdirSync(path);
  onTestFinished(() => removeCgroup(path));
  for (const file of ['cpuset.cpus', 'cpuset.mems']) {
    try {
      writeFileSync(join(path, file), readFileSync(join(above, file)));
    } catch {
      // Not of this hierarchy.
    }
  }
  return path;
}

/** Removes a cgroup, unless the test has. The kernel counts a process for a moment after its end. */
async function removeCgroup(path: string): Promise<void> {
  for (let tries = 0; existsSync(path); tries++) {
    try {
      rmdirSync(path);
    } catch (error) {
      if (tries === 100) throw error;
      await pause(20);
    }
  }
}

/** A process in a cgroup. */
export function populate(cgroup: string): ChildProcess {
  const child = spawn('sleep', ['300']);
  onTestFinished(() => end(child));
  writeFileSync(join(cgroup, 'cgroup.procs'), String(child.pid));
  return child;
}

export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}
