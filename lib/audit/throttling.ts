// Throttling: what the CPU controller has taken from processes, from the file cpu.stat of their
// cgroups.

import { dirname, join } from 'node:path';
import { textOf } from '../base/errors.js';
import { ENVIRONMENT } from '../base/registry.js';
import { findHierarchy, folderOf, type Hierarchy, pathIn } from '../cgroups/files/hierarchies.js';
import type { ThrottlingCounters } from './counters.js';

function cpuHierarchy(): Hierarchy | undefined {
  try {
    return findHierarchy('cpu');
  } catch {
    // This user may not be allowed to look.
    return undefined;
  }
}

/**
 * The throttling of these processes' cgroups, and of all visible cgroups above them, whose quotas
 * apply to them too. By the path of the file, without cgroups that do not count it. Empty without a
 * visible CPU controller.
 */
export function readThrottling(pids: Iterable<number>): ReadonlyMap<string, ThrottlingCounters> {
  const found = new Map<string, ThrottlingCounters>();
  // Found only once: the machine's hierarchies do not move.
  const cpu = ENVIRONMENT.of(cpuHierarchy);
  if (cpu === undefined) return found;
  for (const folder of new Set([...pids].flatMap((pid) => folderOfProcess(cpu, pid) ?? []))) {
    for (let at = folder; at.startsWith(cpu.mount.point); at = dirname(at)) {
      const file = join(at, 'cpu.stat');
      if (found.has(file)) break;
      const throttling = parseCpuStat(textOf(file) ?? '');
      if (throttling) found.set(file, throttling);
    }
  }
  return found;
}

function folderOfProcess(cpu: Hierarchy, pid: number): string | undefined {
  const text = textOf(`/proc/${pid}/cgroup`);
  const path = text === undefined ? undefined : pathIn(cpu, text);
  // What is outside of this process's cgroup namespace cannot be seen.
  return path === undefined || path.startsWith('/..') ? undefined : folderOf(cpu, path);
}

/**
 * v1 reports nanoseconds (`throttled_time`), v2 microseconds (`throttled_usec`). Undefined for a
 * group that does not count throttling.
 */
export function parseCpuStat(text: string): ThrottlingCounters | undefined {
  const value = (name: string) => {
    const digits = new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1];
    return digits === undefined ? undefined : Number(digits);
  };
  const nrThrottled = value('nr_throttled');
  if (nrThrottled === undefined) return undefined;
  const microseconds = value('throttled_usec');
  return {
    nrThrottled,
    throttledNs: microseconds === undefined ? (value('throttled_time') ?? null) : microseconds * 1000,
  };
}
