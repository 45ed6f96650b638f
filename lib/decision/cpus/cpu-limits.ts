// What stands in the way of exclusive CPUs: whole cores, the shared pool, too few of them. Pure.
import { mixedOfPods } from '../../account/cpus-of-pods.js';
import { freeCpus, grantableCpus, sharedPool } from '../../account/pools.js';
import type { ErrorDetails } from '../../base/errors.js';
import { Refusal } from '../../base/refusal.js';
import { cpusNamed } from '../../base/text/cpus-named.js';
import type { Placement } from '../../input/placement.js';
import { MILLI } from '../../input/values/quantity.js';
import { CpuSet } from '../../machine/cpu-set.js';
import { choices, mixedMilli, podExclusiveCount, siblings } from './cpu-choices.js';
import type { Draft } from './draft.js';

export function mustBeWhole({ fullPhysicalCpusOnly, holdSiblings }: Placement): boolean {
  return fullPhysicalCpusOnly && !holdSiblings;
}

export function checkMultiple({ topology: { cpusPerCore }, placement }: Draft, count: number): void {
  if (!mustBeWhole(placement) || count % cpusPerCore === 0) return;
  throw smtAlignment(`CPUs asked for: ${count}, no multiple of ${cpusPerCore}, the threads of a core`, {
    value: count,
    valid: `a multiple of ${cpusPerCore}`,
  });
}

// As the kubelet: CPUs left behind by init containers do not count here.
export function checkSmtAlignment(draft: Draft, count: number): void {
  const { topology, placement, free } = draft;
  if (!mustBeWhole(placement)) return;
  checkMultiple(draft, count);
  const whole = topology.wholeCores(free);
  if (whole.size < count) {
    throw smtAlignment(`CPUs asked for in whole cores: ${count}, free in such: ${whole.size}`, {
      value: count,
      valid: `at most ${whole.size} at present`,
    });
  }
}

/** Enough whole cores are free, but of sizes that do not add up: the kubelet hands out parts of them. */
export class UnevenCores extends Refusal {
  constructor(count: number, from: CpuSet) {
    const message = `CPUs asked for: ${count}; the free cores (${from}) do not add up to it`;
    super('SMTAlignmentError', 'ERR_SMT_ALIGNMENT', message, { value: count });
  }
}

function smtAlignment(message: string, details: ErrorDetails): Refusal {
  return new Refusal('SMTAlignmentError', 'ERR_SMT_ALIGNMENT', message, details);
}

export function insufficient(draft: Draft, count: number, from: CpuSet): Refusal {
  const { topology, pool } = draft;
  const most = mostOf(draft, from);
  const which = from.isEmpty ? '' : ` (${from})`;
  const isOrdinary = pool === 'ordinary' && most < from.size;
  const message = isOrdinary
    ? keptShared(draft, count, most)
    : `${nounOf(draft, 0)} asked for: ${count}, free: ${from.size}${which}`;
  const text = `${message}${neverText(draft, count)}`;
  return new Refusal('UnexpectedAdmissionError', 'ERR_INSUFFICIENT_CPUS', text, {
    value: count,
    valid: upTo(most),
    free: Object.fromEntries(topology.nodes.map(({ id, cpus }) => [id, cpus.intersection(from).toString()])),
  });
}

// Of a request that waiting would not help.
function neverText(draft: Draft, count: number): string {
  const { state, present, pool, allowed, kept } = draft;
  const all = grantableCpus(state.settings, present, pool).intersection(allowed);
  if (kept || count <= all.size) return '';
  return `; ${all.isEmpty ? 'the settings leave no CPU that can be granted' : `more than ${all.size} never can be, of the CPUs ${all}`}`;
}

function nounOf({ placement, pool, kept }: Draft, count: number): string {
  const s = count === 1 ? '' : 's';
  // Beside those that a grant which is resized has.
  const more = kept ? 'more ' : '';
  if (placement.holdSiblings) return `${more}whole core${s}${pool === 'isolated' ? ' of isolated CPUs' : ''}`;
  return `${more}${pool === 'isolated' ? 'isolated' : 'exclusive'} CPU${s}`;
}

function upTo(most: number): string {
  if (most < 1) return 'none at present';
  return most === 1 ? '1' : `1 to ${most}`;
}

/** What is shared now, less what the pod has or keeps. */
function sharedBeside({ present, state, taken, kept }: Draft): CpuSet {
  const pool = sharedPool(state, present).difference(taken);
  return kept ? pool.difference(kept.cpus.union(kept.held)) : pool;
}

/** How many can be granted of `from`: where that is all that is shared, not the last of it. */
function mostOf(draft: Draft, from: CpuSet): number {
  const { topology, placement } = draft;
  const shared = sharedBeside(draft);
  const all = placement.holdSiblings ? from.union(siblings(topology, from)) : from;
  const isLast = !shared.isEmpty && shared.isSubsetOf(all);
  return isLast ? Math.max(from.size - (mustBeWhole(placement) ? topology.cpusPerCore : 1), 0) : from.size;
}

function keptShared(draft: Draft, count: number, most: number): string {
  const pool = sharedBeside(draft);
  const why = pool.size === 1 ? `CPU ${pool} must stay shared` : `of the CPUs ${pool} one must stay shared`;
  return `${count} ${nounOf(draft, count)} asked for; ${most === 0 ? 'none' : most} can be granted: ${why}`;
}

/** Whether a pod that takes these leaves no CPU for everything else to run on. */
export function leavesNoPool({ state, present }: Pick<Draft, 'state' | 'present'>, taken: CpuSet): boolean {
  return !taken.isEmpty && sharedPool(state, present).isSubsetOf(taken);
}

/** Whether the pod leaves a CPU for everything else to run on. @throws ERR_SHARED_POOL_EMPTY */
export function checkSharedPool(draft: Draft): void {
  const { present, state, pod, placement, taken } = draft;
  if (!leavesNoPool(draft, taken)) return;
  const pool = sharedPool(state, present);
  // As it was before the pod took any.
  const before = {
    ...draft,
    free: draft.free.union(taken),
    taken: CpuSet.EMPTY,
    reusable: CpuSet.EMPTY,
    kept: undefined,
  };
  const asked = podExclusiveCount(pod, placement);
  const most = pool.isEmpty ? 0 : Math.min(mostOf(before, choices(before, asked).from), asked - 1);
  const message = pool.isEmpty
    ? 'no CPU is left to share: everything else needs one'
    : keptShared(before, asked, most);
  throw new Refusal('UnexpectedAdmissionError', 'ERR_SHARED_POOL_EMPTY', message, {
    value: asked,
    valid: upTo(most),
    sharedPool: pool.toString(),
  });
}

/** Whether a pod that takes CPUs, or a fraction of the shared pool, may be short of room there. */
export const needsRoom = ({ pod, state }: Pick<Draft, 'pod' | 'state'>): boolean =>
  pod.isMixed === true || mixedOfPods(state.pods) > 0;

/**
 * Whether the pod leaves as much to share as is booked for mixed pods, itself among them. CPUs that
 * are reserved are not for them. A pod that is resized to less needs no room.
 * @throws ERR_SHARED_POOL_FULL
 */
export function checkRoom({ state, present, pod, placement, taken, kept }: Draft): void {
  const free = freeCpus(state, present);
  const asked = mixedMilli(pod, placement);
  const more = kept ? taken.difference(kept.cpus.union(kept.held)) : taken;
  if (!more.intersects(free) && (asked === 0 || kept)) return;
  const booked = mixedOfPods(state.pods);
  const left = free.difference(taken);
  if (booked + asked <= left.size * MILLI) return;
  const wanted = [
    ...(booked > 0 ? [`${booked}m of the shared pool are booked for mixed grants`] : []),
    ...(asked > 0 ? [`${asked}m of the shared pool are asked for`] : []),
  ];
  const most = free.size - booked / MILLI;
  throw new Refusal(
    'UnexpectedAdmissionError',
    'ERR_SHARED_POOL_FULL',
    `${wanted.join(', and ')}: ${left.isEmpty ? 'no CPU' : cpusNamed(left)} would be left for that`,
    {
      value: podExclusiveCount(pod, placement) + asked / MILLI,
      valid: upTo(asked > 0 ? most : Math.floor(most)),
      sharedPool: sharedPool(state, present).difference(taken).toString(),
    },
  );
}
