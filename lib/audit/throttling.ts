// Throttling: what the CPU controller has taken from processes, from the file cpu.stat of their
// cgroups.

import { dirname, join } from 'node:path';
import { ENVIRONMENT } from '../base/collections/registry.js';
import { textOf, unlessThrown } from '../base/errors.js';
import { parseCpuStat } from '../cgroups/files/cpu-stat.js';
import { findHierarchy, type Hierarchy } from '../cgroups/files/hierarchies.js';
import { visibleFolder } from '../cgroups/limits.js';
import type { ThrottlingCounters } from './counters.js';

function cpuHierarchy(): Hierarchy | undefined {
  // This user may not be allowed to look.
  return unlessThrown(() => findHierarchy('cpu'));
}

/** Texts of cpu.stat by the path of the file. */
export type CpuStats = ReadonlyMap<string, string>;

/**
 * What these processes' cgroups count, and all visible cgroups above them, whose quotas apply to
 * them too. Empty without a visible CPU controller.
 */
export function readCpuStats(pids: Iterable<number>): CpuStats {
  const found = new Map<string, string>();
  // Found only once: the machine's hierarchies do not move.
  const cpu = ENVIRONMENT.of(cpuHierarchy);
  if (cpu === undefined) return found;
  const folderOf = (pid: number) => visibleFolder(cpu, textOf(`/proc/${pid}/cgroup`) ?? '');
  for (const folder of new Set([...pids].flatMap((pid) => folderOf(pid) ?? []))) {
    for (let at = folder; at.startsWith(cpu.mount.point); at = dirname(at)) {
      const file = join(at, 'cpu.stat');
      if (found.has(file)) break;
      found.set(file, textOf(file) ?? '');
    }
  }
  return found;
}

/** Without cgroups that do not count it. */
export function throttlingIn(stats: CpuStats): ReadonlyMap<string, ThrottlingCounters> {
  const found = new Map<string, ThrottlingCounters>();
  for (const [file, text] of stats) {
    const throttling = parseCpuStat(text);
    if (throttling) found.set(file, throttling);
  }
  return found;
}
