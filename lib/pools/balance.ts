// Which Worker goes to a CPU that another one has left. Pure.
import type { CpuSet } from '../machine/cpu-set.js';

/** A Worker by where it runs. */
export interface Placed {
  readonly cpus: CpuSet;
}

/**
 * The one that came last on the fullest CPU, if that has at least two more than `cpu`; they are in
 * the order in which they came. Those that may run on several CPUs have none to themselves.
 */
export function successorOn<T extends Placed>(cpu: number, workers: readonly T[]): T | undefined {
  const byCpu = new Map<number, T[]>();
  for (const worker of workers) {
    if (worker.cpus.size !== 1) continue;
    const at = worker.cpus.first!;
    byCpu.set(at, [...(byCpu.get(at) ?? []), worker]);
  }
  const [fullest = []] = [...byCpu.values()].sort((a, b) => b.length - a.length);
  const here = byCpu.get(cpu)?.length ?? 0;
  return fullest.length >= here + 2 ? fullest.at(-1) : undefined;
}
