// MemoryMode: the memory policies to choose from.
import { invalidOption } from '../base/check-options.js';

/**
 * Where memory comes from that the thread touches for the first time. `preferred`: from these
 * nodes, or from others when they are full. `bind`: only from these nodes; when they are full, the
 * kernel kills a process, usually this one. `interleave`: from each of them in turn.
 */
export type MemoryMode = 'preferred' | 'bind' | 'interleave';

/**
 * The policy in force: a {@link MemoryMode}, or what a thread has without one (`default`, `local`:
 * the node of the CPU that touches the memory).
 */
export type MemoryPolicyMode = MemoryMode | 'default' | 'local' | 'weighted-interleave';

// Keyed by the kernel's numbers.
export const MODES: Readonly<Record<number, MemoryPolicyMode>> = {
  0: 'default',
  1: 'preferred',
  2: 'bind',
  3: 'interleave',
  4: 'local',
  6: 'weighted-interleave',
};

export const MODE_NUMBERS: Readonly<Record<MemoryMode, number>> = { preferred: 1, bind: 2, interleave: 3 };

/** @throws ERR_INVALID_OPTION */
export function checkMemoryMode(value: unknown): MemoryMode | 'none' {
  if (value === 'none' || (typeof value === 'string' && Object.hasOwn(MODE_NUMBERS, value)))
    return value as MemoryMode;
  return invalidOption('memory', value, "'preferred', 'bind', 'strict', 'interleave' or 'none'");
}
