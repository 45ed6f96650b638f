// Removal of a cgroup v2 with all that is in it, as soon as this returns.
import { existsSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const MOUNT = '/sys/fs/cgroup';

/**
 * Its processes go to the root. A partition is ended first: by removal alone its CPUs come back
 * late, and before Linux 6.2 every process at the root is given all CPUs then.
 */
export function removeCgroup(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) removeCgroup(join(folder, entry.name));
  }
  // That of an empty threaded one cannot be read.
  const isPopulated = /^populated 1$/m.test(readFileSync(join(folder, 'cgroup.events'), 'utf8'));
  const pids = isPopulated
    ? readFileSync(join(folder, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean)
    : [];
  for (const pid of pids) writeFileSync(join(MOUNT, 'cgroup.procs'), pid);
  const partition = join(folder, 'cpuset.cpus.partition');
  if (existsSync(partition)) writeFileSync(partition, 'member');
  rmdirSync(folder);
}
