// Which Worker moves to a CPU that another Worker has left. Pure.
import type { CpuSet } from '../machine/cpu-set.js';

/** A Worker and its CPUs. */
export interface Placed {
  readonly cpus: CpuSet;
}

/**
 * The latest Worker on the fullest CPU, if that CPU has at least two Workers more than `cpu`.
 * `workers` are in the order of their births. Workers that may use several CPUs are ignored.
 */
export function successorOn<T extends Placed>(cpu: number, workers: readonly T[]): T | undefined {
  const byCpu = new Map<number, T[]>();
  for (const worker of workers) {
    if (worker.cpus.size !== 1) continue;
    const at = worker.cpus.first!;
    byCpu.set(at, [...(byCpu.get(at) ?? []), worker]);
  }
  const [fullest = []] = [...byCpu.values()].sort((a, b) => b.length - a.length);
  const count = byCpu.get(cpu)?.length ?? 0;
  return fullest.length >= count + 2 ? fullest.at(-1) : undefined;
}
