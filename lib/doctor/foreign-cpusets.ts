// ForeignCpusets: reads which cgroups other than numalign's have their own CPUs: systemd's
// AllowedCPUs=, containers, pods.

import { dirname, join, relative } from 'node:path';
import { textOf, unlessThrown } from '../base/errors.js';
import { childNames } from '../cgroups/files/cgroup-files.js';
import { findHierarchy, type Hierarchy } from '../cgroups/files/hierarchies.js';
import { isAtOrBelow } from '../cgroups/files/mounts.js';
import { CpuSet } from '../machine/cpu-set.js';
import type { ForeignCpuset, ForeignCpusets } from './facts.js';

// There can be many thousands; the ones that matter are near the top.
const MOST_LOOKED_AT = 4096;

/**
 * `ownPath`: the folder of numalign's root. It is left out with everything below it, as are the cgroups
 * above, which have its CPUs too. Null if no cpusets can be seen.
 */
export function readForeignCpusets(
  ownPath: string | undefined,
  hierarchy: Hierarchy | undefined = findHierarchy('cpuset'),
  mostLookedAt = MOST_LOOKED_AT,
): ForeignCpusets | null {
  if (!hierarchy) return null;
  const { point } = hierarchy.mount;
  const folders = [point];
  const cpusets: ForeignCpuset[] = [];
  // Breadth first: the list grows as it is walked.
  for (const [lookedAt, folder] of folders.entries()) {
    if (lookedAt === mostLookedAt) return { mount: point, cpusets, isComplete: false };
    folders.push(...children(folder).filter((path) => path !== ownPath));
    if (folder === point || (ownPath !== undefined && isAtOrBelow(ownPath, folder))) continue;
    const cpus = cpusIn(folder);
    // With cgroup v1 every cgroup has CPUs, usually those of the one above.
    if (cpus.isEmpty || (hierarchy.version === 1 && cpus.equals(cpusIn(dirname(folder))))) continue;
    const partition = textOf(join(folder, 'cpuset.cpus.partition'))?.trim();
    const isPartition = partition === 'root' || partition === 'isolated';
    cpusets.push({ path: `/${relative(point, folder)}`, cpus, isPartition });
  }
  return { mount: point, cpusets, isComplete: true };
}

function children(folder: string): string[] {
  // This user may not look, or the cgroup has been removed.
  return unlessThrown(() => childNames(folder).map((name) => join(folder, name)), []);
}

const cpusIn = (folder: string) => CpuSet.parse(textOf(join(folder, 'cpuset.cpus'))?.trim() ?? '');
