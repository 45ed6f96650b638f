// The kernel's view of a process, read without numalign.
import { readFileSync } from 'node:fs';

const LISTS = { cpus: 'Cpus_allowed_list', mems: 'Mems_allowed_list' };

/** CPUs and memory nodes, as lists of Linux's, in a text of /proc/PID/status. */
export function allowedIn(status) {
  const listOf = (name) => new RegExp(`^${name}:\\s*(\\S*)$`, 'm').exec(status)?.[1];
  return Object.fromEntries(Object.entries(LISTS).map(([key, name]) => [key, listOf(name)]));
}

/** The CPUs and memory nodes that the process may use now. */
export const allowedOf = (pid) => allowedIn(readFileSync(`/proc/${pid}/status`, 'utf8'));

/** The folder of the process's cpuset, of either version. */
export function cpusetFolderOf(pid) {
  const lines = readFileSync(`/proc/${pid}/cgroup`, 'utf8').trim().split('\n');
  const [, , v1] =
    lines.map((line) => line.split(':')).find(([, names]) => names.split(',').includes('cpuset')) ?? [];
  if (v1 !== undefined) return `/sys/fs/cgroup/cpuset${v1}`;
  return `/sys/fs/cgroup${lines.find((line) => line.startsWith('0::')).slice('0::'.length)}`;
}

/** True if it runs. An ended process may wait for its parent. */
export function isRunning(pid) {
  try {
    return !/^State:\s*[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ESRCH') return false;
    throw error;
  }
}
