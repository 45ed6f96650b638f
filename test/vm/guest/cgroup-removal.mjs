// Removal of a cgroup v2 with everything in it; it is complete when this returns.
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
  const partition = join(folder, 'cpuset.cpus.partition');
  for (const end = performance.now() + 10_000; ; ) {
    // The state of an empty threaded cgroup cannot be read.
    const isPopulated = /^populated 1$/m.test(readFileSync(join(folder, 'cgroup.events'), 'utf8'));
    if (isPopulated) moveToRoot(folder);
    if (existsSync(partition)) writeFileSync(partition, 'member');
    try {
      rmdirSync(folder);
      return;
    } catch (error) {
      // A process that is ending is in no list any more, but still counts.
      if (error.code !== 'EBUSY' || performance.now() > end) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    }
  }
}

function moveToRoot(folder) {
  for (const pid of readFileSync(join(folder, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean)) {
    try {
      writeFileSync(join(MOUNT, 'cgroup.procs'), pid);
    } catch (error) {
      // It has ended meanwhile.
      if (error.code !== 'ESRCH') throw error;
    }
  }
}
