// Cache ways: which ways of one L3 cache each grant has for itself, as masks for resctrl.
import { native } from '../../base/native.js';

/** The most ways that a resctrl mask can have. */
export const MOST_WAYS = 32;

/** Masks have one bit per way. */
export interface CacheWaysQuestion {
  /** A mask of every way of the cache: `cbm_mask`. */
  readonly all: number;
  /** The fewest ways that a mask may have: `min_cbm_bits`. */
  readonly minBits: number;
  /** Ways that other hardware also uses: `shareable_bits`. */
  readonly shareable: number;
  /** Ways of groups that are not numalign's. */
  readonly foreign: number;
  /** What the default group has now. */
  readonly base: number;
  /** Ways of grants that have ended. */
  readonly released: number;
  /** In the order in which they are served. `current`: the mask that each has now; 0: none. */
  readonly requests: readonly { readonly ways: number; readonly current: number }[];
}

export interface CacheWays {
  /** By request; 0: there is no room for it. */
  readonly masks: readonly number[];
  /** What the default group can have beside them; 0: nothing. */
  readonly rest: number;
  /** The most ways that one more request could have. */
  readonly most: number;
}

const REST = 0;
const MOST = 1;
const MASKS = 2;

/**
 * Masks are contiguous and disjoint. A request keeps its current ways if they are as wide as it
 * needs. The others are placed so that the default group gets the widest run possible.
 */
export function cacheWays(question: CacheWaysQuestion): CacheWays {
  const { all, minBits, shareable, foreign, base, released, requests } = question;
  const rows = requests.flatMap(({ ways, current }) => [Math.min(ways, MOST_WAYS), current]);
  const answer = native.cacheWays(Uint32Array.of(all, minBits, shareable, foreign, base, released, ...rows));
  return { masks: [...answer.subarray(MASKS)], rest: answer[REST]!, most: answer[MOST]! };
}

/** The widest run of neighbouring ways in a mask, the lowest of several; 0 for 0. */
export function widestRun(mask: number): number {
  let widest = { first: 0, length: 0 };
  for (let first = 0; first < MOST_WAYS; first++) {
    let length = 0;
    while (first + length < MOST_WAYS && (mask / 2 ** (first + length)) % 2 >= 1) length++;
    if (length > widest.length) widest = { first, length };
  }
  return (2 ** widest.length - 1) * 2 ** widest.first;
}
