// The processes that run on a grant: from them their threads are found.
import { join } from 'node:path';
import { childNames, readIfThere } from '../cgroups/cgroup-files.js';
import type { OwnerRecord } from '../state/assignments.js';

/**
 * The process that owns a grant, or those in the cgroup that does; none for a persistent owner, of which nobody knows who runs there, and for an owner that is not to be seen from here. Their children are found
 * by the scan.
 */
export function processesOf({ kind, pid, cgroup }: Pick<OwnerRecord, 'kind' | 'pid' | 'cgroup'>): number[] {
  if (kind === 'cgroup' && cgroup) return processesIn(cgroup.path);
  return pid === null ? [] : [pid];
}

/** In a cgroup and below it, as far as they are still there and of this pid namespace. */
function processesIn(folder: string): number[] {
  try {
    const here = readIfThere(join(folder, 'cgroup.procs')) ?? '';
    const below = childNames(folder).flatMap((name) => processesIn(join(folder, name)));
    // 0: of another pid namespace.
    return [
      ...here
        .split('\n')
        .map(Number)
        .filter((pid) => pid > 0),
      ...below,
    ];
  } catch {
    return [];
  }
}
