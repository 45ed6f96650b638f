// The checks that refuse exclusive CPUs: whole cores, the shared pool, too few CPUs. Pure.
import { mixedOfPods } from '../../account/cpus-of-pods.js';
import { freeCpus, grantableCpus, sharedPool } from '../../account/pools.js';
import { Refusal, refusal } from '../../base/refusal.js';
import { cpusNamed } from '../../base/text/cpus-named.js';
import type { Placement } from '../../input/placement.js';
import { MILLI } from '../../input/values/quantity.js';
import { CpuSet } from '../../machine/cpu-set.js';
import type { Topology } from '../../machine/topology.js';
import type { Draft } from '../draft/draft.js';
import { candidates, mixedMilli, podExclusiveCount, siblings } from './cpu-choices.js';

export function mustBeWhole({ fullPhysicalCpusOnly, holdSiblings }: Placement): boolean {
  return fullPhysicalCpusOnly && !holdSiblings;
}

export function checkMultiple(
  { topology: { cpusPerCore }, placement }: Pick<Draft, 'topology' | 'placement'>,
  count: number,
): void {
  if (!mustBeWhole(placement) || count % cpusPerCore === 0) return;
  const message = `${count} CPUs requested: not a multiple of ${cpusPerCore}, the threads of a core`;
  throw smtAlignment(message, { value: count, valid: `a multiple of ${cpusPerCore}` });
}

// Like the kubelet, ignores CPUs that init containers left behind.
export function checkSmtAlignment(draft: Draft, count: number): void {
  const { topology, placement, free } = draft;
  if (!mustBeWhole(placement)) return;
  checkMultiple(draft, count);
  const whole = topology.wholeCores(free);
  if (whole.size >= count) return;
  const message = `${count} CPUs requested in whole cores: ${freeText(whole)}`;
  throw smtAlignment(message, { value: count, valid: `at most ${whole.size} now` });
}

/** Enough whole cores are free, but their sizes do not add up. The kubelet would split a core. */
export class UnevenCores extends Refusal {
  constructor(count: number, from: CpuSet) {
    const message = `${count} CPUs requested: the free cores (${from}) do not add up to them`;
    super('SMTAlignmentError', 'ERR_SMT_ALIGNMENT', message, { value: count });
  }
}

function smtAlignment(message: string, details: { value: number; valid: string }): Refusal {
  return refusal('SMTAlignmentError', 'ERR_SMT_ALIGNMENT', message, details);
}

export function insufficient(draft: Draft, count: number, from: CpuSet): Refusal {
  const { topology, pool } = draft;
  const most = mostOf(draft, from);
  const isOrdinary = pool === 'ordinary' && most < from.size;
  // A resized grant keeps its CPUs. The message counts all CPUs that the request names.
  const keptCount = draft.kept?.cpus.size ?? 0;
  const total = count + keptCount;
  const limit = limitText(draft, total, from);
  const isNever = from.isEmpty && limit.length > 0;
  const text = isOrdinary
    ? keptShared(draft, total, most + keptCount, limit)
    : `${requestText(draft, total)}: ${[...limit, ...(isNever ? [] : [freeText(from, keptCount)])].join(', and ')}`;
  return refusal('UnexpectedAdmissionError', 'ERR_INSUFFICIENT_CPUS', text, {
    value: total,
    valid: upTo(most + keptCount),
    free: Object.fromEntries(topology.nodes.map(({ id, cpus }) => [id, cpus.intersection(from).toString()])),
  });
}

// Why the request can never be met, with any settings or with these; empty if it can.
function limitText(draft: Draft, count: number, from: CpuSet): string[] {
  const { present, pool, kept } = draft;
  const all = everGrantable(draft, count);
  if (all.isEmpty && !kept)
    return [`the settings leave no ${pool === 'isolated' ? 'isolated ' : ''}CPU that can be granted`];
  const { size } = present.online;
  if (count > size) return [`this machine has ${size} CPU${size === 1 ? '' : 's'}`];
  const most = mostEver(draft, all);
  if (kept || count <= most || all.equals(from)) return [];
  return [`at most ${most} can ever be granted (of ${cpusNamed(all)})`];
}

/** The CPUs that the settings let a request for `count` have, granted or not. */
export const everGrantable = (draft: Draft, count: number): CpuSet =>
  grantableCpus(draft.state.settings, draft.present, draft.pool)
    .intersection(draft.allowed)
    .intersection(candidates(draft, count).machine.cpus);

/** How many of these CPUs can be granted on the empty machine. */
export const mostEver = (draft: Draft, cpus: CpuSet): number =>
  mostBeside(draft, cpus, sharedPool({ ...draft.state, pods: [], kubelet: null }, draft.present));

function freeText(free: CpuSet, keptCount = 0): string {
  const beside = keptCount === 0 ? '' : `, beside ${keptCount} of this grant`;
  if (free.isEmpty) return `none is free${beside}`;
  return `${free.size} ${free.size === 1 ? 'is' : 'are'} free (${free})${beside}`;
}

function requestText({ placement, pool }: Draft, count: number): string {
  const s = count === 1 ? '' : 's';
  const isIsolated = pool === 'isolated';
  const cores = `whole core${s}${isIsolated ? ' of isolated CPUs' : ''}`;
  const cpus = `${isIsolated ? 'isolated' : 'exclusive'} CPU${s}`;
  return `${count} ${placement.holdSiblings ? cores : cpus} requested`;
}

function upTo(most: number): string {
  if (most < 1) return 'none now';
  return most === 1 ? '1' : `1 to ${most}`;
}

/** The shared pool without the CPUs that the pod has or keeps. */
function sharedBeside({ present, state, taken, kept }: Draft): CpuSet {
  const pool = sharedPool(state, present).difference(taken);
  return kept ? pool.difference(kept.cpus.union(kept.held)) : pool;
}

/** How many CPUs in `from` can be granted. One stays if they are the whole shared pool. */
const mostOf = (draft: Draft, from: CpuSet): number => mostBeside(draft, from, sharedBeside(draft));

function mostBeside({ topology, placement }: Draft, available: CpuSet, shared: CpuSet): number {
  const from = mustBeWhole(placement) ? topology.wholeCores(available) : available;
  const all = placement.holdSiblings ? from.union(siblings(topology, from)) : from;
  if (shared.isEmpty || !shared.isSubsetOf(all)) return from.size;
  return from.size - (mustBeWhole(placement) ? leastCore(topology, from) : Math.min(1, from.size));
}

// The fewest threads of a core in `from`; without such a core, all of `from`.
const leastCore = ({ cores }: Topology, from: CpuSet): number =>
  cores.reduce((least, { cpus }) => (cpus.isSubsetOf(from) ? Math.min(least, cpus.size) : least), from.size);

function keptShared(draft: Draft, count: number, most: number, limit: readonly string[] = []): string {
  const pool = sharedBeside(draft);
  const shared =
    pool.size === 1 ? `CPU ${pool} must stay shared` : `one of the CPUs ${pool} must stay shared`;
  const why = [...limit, shared].join(', and ');
  return `${requestText(draft, count)}: ${why}; ${most === 0 ? 'none' : `at most ${most}`} can be granted now`;
}

/** True if taking these CPUs empties the shared pool. */
export function leavesNoPool({ state, present }: Pick<Draft, 'state' | 'present'>, taken: CpuSet): boolean {
  return !taken.isEmpty && sharedPool(state, present).isSubsetOf(taken);
}

/** Checks that the pod leaves a CPU in the shared pool. @throws ERR_INSUFFICIENT_CPUS */
export function checkSharedPool(draft: Draft): void {
  const { present, state, pod, placement, taken } = draft;
  if (!leavesNoPool(draft, taken)) return;
  const pool = sharedPool(state, present);
  // The draft before the pod took any CPUs.
  const before = {
    ...draft,
    free: draft.free.union(taken),
    taken: CpuSet.EMPTY,
    reusable: CpuSet.EMPTY,
    kept: undefined,
  };
  const count = podExclusiveCount(pod, placement);
  const most = pool.isEmpty ? 0 : Math.min(mostOf(before, candidates(before, count).from), count - 1);
  const message = pool.isEmpty
    ? 'no CPU would be left for everything else: one must stay shared'
    : keptShared(before, count, most);
  throw refusal('UnexpectedAdmissionError', 'ERR_INSUFFICIENT_CPUS', message, {
    value: count,
    valid: upTo(most),
    sharedPool: pool.toString(),
  });
}

/** True if the pod may need room in the shared pool. */
export const needsRoom = ({ pod, state }: Pick<Draft, 'pod' | 'state'>): boolean =>
  pod.isMixed === true || mixedOfPods(state.pods) > 0;

/**
 * Checks that the pod leaves as much shared pool as mixed pods book, with its own share. Reserved
 * CPUs do not count. A pod that shrinks needs no room.
 * @throws ERR_SHARED_POOL_FULL
 */
export function checkRoom({ state, present, pod, placement, taken, kept }: Draft): void {
  const free = freeCpus(state, present);
  const milli = mixedMilli(pod, placement);
  const addedCpus = kept ? taken.difference(kept.cpus.union(kept.held)) : taken;
  if (!addedCpus.intersects(free) && (milli === 0 || kept)) return;
  const booked = mixedOfPods(state.pods);
  const left = free.difference(taken);
  if (booked + milli <= left.size * MILLI) return;
  const wanted = [
    ...(booked > 0 ? [`${booked}m of the shared pool are booked for mixed grants`] : []),
    ...(milli > 0 ? [`${milli}m of the shared pool are requested`] : []),
  ];
  const most = free.size - booked / MILLI;
  throw refusal(
    'UnexpectedAdmissionError',
    'ERR_SHARED_POOL_FULL',
    `${wanted.join(', and ')}: ${left.isEmpty ? 'no CPU' : cpusNamed(left)} would be left for them`,
    {
      value: podExclusiveCount(pod, placement) + milli / MILLI,
      valid: upTo(milli > 0 ? most : Math.floor(most)),
      sharedPool: sharedPool(state, present).difference(taken).toString(),
    },
  );
}
