// The pools of a state in words. Pure.
import type { CpuSet } from 'numalign';
import type { StateStatus } from 'numalign/diagnostics';
import { cpusNamed } from 'numalign/tools';

/** CPUs with the word, since `1` could be a number of CPUs. */
export function cpusOrNone(cpus: CpuSet): string {
  return cpus.isEmpty ? 'none' : cpusNamed(cpus);
}

/** The shared pool, or its known bound. */
export function sharedText({ refusal, sharedPool }: Pick<StateStatus, 'refusal' | 'sharedPool'>): string {
  return refusal === null ? cpusOrNone(sharedPool) : `at most ${cpusOrNone(sharedPool)}`;
}

/** Free CPUs, or `unknown`. */
export function freeCpusText({ refusal }: Pick<StateStatus, 'refusal'>, cpus: CpuSet): string {
  return refusal === null ? cpusOrNone(cpus) : 'unknown';
}

/** The free CPUs. If the shared pool has no other CPU, one of them cannot be granted. */
export function freeText(view: Pick<StateStatus, 'refusal' | 'free' | 'sharedPool'>): string {
  const { refusal, free, sharedPool } = view;
  if (refusal !== null || free.isEmpty || !sharedPool.isSubsetOf(free)) return freeCpusText(view, free);
  return `${cpusOrNone(free)} (${free.size === 1 ? 'it' : 'one of them'} stays shared)`;
}
