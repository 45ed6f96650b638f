// Beginning: what a grant's audit counts from, read when the grant is pinned. It is kept as it was read:
// most grants are never audited, and a pin must not take long.
import { native } from '../base/native.js';
import { THREAD_COLUMNS } from '../base/native-tables.js';
import type { CpuSet } from '../machine/cpu-set.js';
import { type CpuStats, readCpuStats } from './throttling.js';

export interface Beginning {
  /** Wall-clock time in milliseconds. */
  readonly time: number;
  /** See {@link Native.beginActivity}. */
  readonly rows: Float64Array;
  readonly throttling: CpuStats;
}

/** The numbers before the rows. */
export const BEGINNING = 2;

/** `roots`: the processes whose threads count if they are confined to these CPUs. */
export function begin(cpus: CpuSet, roots: Iterable<number>): Beginning {
  const rows = native.beginActivity(Int32Array.from(new Set(roots)), cpus.words);
  const pids = new Set<number>();
  for (let i = 0; i < rows[1]!; i++) pids.add(rows[BEGINNING + i * THREAD_COLUMNS.length]!);
  return { time: Date.now(), rows, throttling: readCpuStats(pids) };
}
