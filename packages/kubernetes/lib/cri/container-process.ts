// ContainerProcess: the first process of a container, if the runtime does not report it.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isOfContainer } from '../cgroups/cgroup-path.js';

const read = (path: string) => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // The process has ended in the meantime.
    return '';
  }
};

const parentOf = (pid: string, proc: string) => /^PPid:\s*(\d+)$/m.exec(read(join(proc, pid, 'status')))?.[1];

/**
 * The process in the cgroups of the container with this id whose parent is in none of them;
 * undefined if no such process can be seen.
 */
export function findContainerProcess(id: string, proc = '/proc'): number | undefined {
  const pids = readdirSync(proc).filter((name) => /^\d+$/.test(name));
  const isInside = (pid: string) =>
    read(join(proc, pid, 'cgroup'))
      .split('\n')
      .some((line) => isOfContainer(line.replace(/^\d+:[^:]*:/, ''), id));
  const inside = new Set(pids.filter(isInside));
  const first = [...inside].find((pid) => !inside.has(parentOf(pid, proc) ?? ''));
  return first === undefined ? undefined : Number(first);
}
