// MemoryMode: the memory policies that can be asked for.
import { invalidOption } from '../base/check-options.js';

/**
 * Where memory comes from that the thread touches for the first time. `preferred`: from these
 * nodes, others when they are full. `bind`: from these nodes only; where they are full the kernel
 * kills a process, mostly this one. `interleave`: from each of them in turn.
 */
export type MemoryMode = 'preferred' | 'bind' | 'interleave';

/**
 * What can be in force: a {@link MemoryMode}, or what a thread has without one (`default`, `local`:
 * the node of the CPU that touches the memory).
 */
export type MemoryPolicyMode = MemoryMode | 'default' | 'local' | 'weighted-interleave';

// By the kernel's number.
export const MODES: Readonly<Record<number, MemoryPolicyMode>> = {
  0: 'default',
  1: 'preferred',
  2: 'bind',
  3: 'interleave',
  4: 'local',
  6: 'weighted-interleave',
};

export const ASKED_MODES: Readonly<Record<MemoryMode, number>> = { preferred: 1, bind: 2, interleave: 3 };

/** @throws ERR_INVALID_OPTION */
export function checkMemoryMode(value: unknown): MemoryMode | 'none' {
  if (value === 'none' || (typeof value === 'string' && Object.hasOwn(ASKED_MODES, value)))
    return value as MemoryMode;
  return invalidOption('memory', value, "'preferred', 'bind', 'strict', 'interleave' or 'none'");
}
