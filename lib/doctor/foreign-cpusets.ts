// Reads which cgroups outside of our own have CPUs of their own: systemd's AllowedCPUs=, containers, pods.
import { dirname, join, relative } from 'node:path';
import { childNames } from '../cgroups/cgroup-files.js';
import { findHierarchy } from '../cgroups/mounts.js';
import { CpuSet } from '../cpu-set.js';
import { textOf } from '../text-of.js';
import type { ForeignCpuset, ForeignCpusets } from './facts.js';

// There can be many thousands of them; those that matter are near the top.
const MOST_LOOKED_AT = 4096;

/** `own`: the folder of our root, left out with all below it. null where there are no cpusets to be seen. */
export function readForeignCpusets(own: string | undefined): ForeignCpusets | null {
  const hierarchy = findHierarchy('cpuset');
  if (!hierarchy) return null;
  const { point } = hierarchy.mount;
  const folders = [point];
  const cpusets: ForeignCpuset[] = [];
  // Breadth first: the list grows as it is walked.
  for (const folder of folders) {
    if (folders.length > MOST_LOOKED_AT) break;
    folders.push(...children(folder).filter((path) => path !== own));
    if (folder === point) continue;
    const cpus = cpusIn(folder);
    // With cgroup v1 every cgroup has CPUs, mostly those of the one above.
    if (cpus.isEmpty || (hierarchy.version === 1 && cpus.equals(cpusIn(dirname(folder))))) continue;
    const partition = textOf(join(folder, 'cpuset.cpus.partition'))?.trim();
    const isPartition = partition === 'root' || partition === 'isolated';
    cpusets.push({ path: `/${relative(point, folder)}`, cpus, isPartition });
  }
  return { cpusets, isComplete: folders.length <= MOST_LOOKED_AT };
}

function children(folder: string): string[] {
  try {
    return childNames(folder).map((name) => join(folder, name));
  } catch {
    // It is closed to us, or was removed meanwhile.
    return [];
  }
}

const cpusIn = (folder: string) => CpuSet.parse(textOf(join(folder, 'cpuset.cpus'))?.trim() ?? '');
