// What the CPU controller has taken from processes: the file cpu.stat of their cgroups.
import { dirname, join } from 'node:path';
import { ENVIRONMENT } from '../base/registry.js';
import { textOf } from '../base/text/text-of.js';
import { findHierarchy, folderOf, type Hierarchy, pathIn } from '../cgroups/files/hierarchies.js';
import type { ThrottlingCounters } from './counters.js';

function cpuHierarchy(): Hierarchy | undefined {
  try {
    return findHierarchy('cpu');
  } catch {
    // Not everything may be looked at.
    return undefined;
  }
}

/**
 * Of the cgroups in which these processes are, and of all above them as far as they are to be seen:
 * a quota there holds them too. By the file; without those that keep no such account. Empty where
 * there is no CPU controller to be seen.
 */
export function readThrottling(pids: Iterable<number>): ReadonlyMap<string, ThrottlingCounters> {
  const found = new Map<string, ThrottlingCounters>();
  // Looked for once: the machine's hierarchies do not move.
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
  // Outside of this process's cgroup namespace nothing is to be seen.
  return path === undefined || path.startsWith('/..') ? undefined : folderOf(cpu, path);
}

/**
 * v1 tells nanoseconds (`throttled_time`), v2 microseconds (`throttled_usec`). Undefined for a
 * group without a quota's account.
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
