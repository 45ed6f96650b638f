// Limits: the limits of a container's own cgroup on CPU time and memory.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { folderOfProcess } from './hierarchies.js';

export interface Limits {
  /** The CPU time that it may use, in CPUs: quota divided by period. Undefined: no limit. */
  readonly cpu: number | undefined;
  /** The limit in bytes. Undefined: no limit. */
  readonly memory: number | undefined;
}

// In version 1 the greatest possible number of pages means no limit.
const NO_LIMIT = 2 ** 62;

function look(folder: string, file: string): string | undefined {
  try {
    return readFileSync(join(folder, file), 'utf8').trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** @throws ERR_CGROUP if the process has ended, or its cgroups cannot be seen from here */
export function limitsOfProcess(pid: number, proc = '/proc'): Limits {
  const cpuFolder = folderOfProcess(pid, 'cpu', proc);
  const [quota, period] = look(cpuFolder, 'cpu.max')?.split(' ') ?? [
    look(cpuFolder, 'cpu.cfs_quota_us'),
    look(cpuFolder, 'cpu.cfs_period_us'),
  ];
  const memoryFolder = folderOfProcess(pid, 'memory', proc);
  const bytes = Number(look(memoryFolder, 'memory.max') ?? look(memoryFolder, 'memory.limit_in_bytes'));
  // No limit of CPU time is `max` in version 2, and -1 in version 1.
  const cpu = Number(quota) / Number(period);
  return {
    cpu: cpu > 0 ? cpu : undefined,
    memory: bytes > 0 && bytes < NO_LIMIT ? bytes : undefined,
  };
}
