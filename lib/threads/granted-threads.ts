// GrantedThreads: what must be known of a grant to put threads on its CPUs.
import type { EnforcementLevel } from '../account/pod-assignment.js';
import { invalidOption } from '../base/check-options.js';
import { native } from '../base/native.js';
import { type NativePinOutcome, THREAD_ROLES, type ThreadRole } from '../base/native-threads.js';
import type { Enforcer } from '../enforcement/enforcer.js';
import type { GrantGroup } from '../enforcement/grant-group.js';
import { type PinResult, type Threads, toTid } from '../machine/affinity.js';
import { CpuSet, type NodeSet } from '../machine/cpu-set.js';

export interface GrantedThreads {
  readonly grant: string;
  /** Of the grant, whose threads they are; '': of none. */
  readonly part: string;
  /** The uuid of its owner. */
  readonly owner: string;
  /** Where threads may be put. */
  readonly cpus: CpuSet;
  readonly memoryNodes: NodeSet;
  /** Every thread has to be put on one CPU, see {@link needsOneToOne}. */
  readonly oneToOne: boolean;
  /** Of a part of the grant. @throws ERR_UNKNOWN_PART */
  readonly onPart: (name: string) => GrantedThreads;
  /** Its cgroup, where it has one. */
  readonly group: GrantGroup | undefined;
  /** See {@link Enforcer.learnChoices}. */
  readonly learnChoices: () => void;
  /**
   * Has threads of this process run in the shared pool from now on, as its members do. Undefined
   * where nothing of the pool is booked for the grant.
   */
  readonly share?: ((tids: readonly number[]) => Promise<PinResult>) | undefined;
}

/**
 * Whether every thread has to be put on one CPU: the kernel does not balance load between isolated
 * CPUs, so that a thread stays on the CPU where it happens to be, and those that may run on several
 * pile up on one. `unbalanced`: CPUs over which it balances none now.
 */
export function needsOneToOne(
  { cpus, enforcement }: { cpus: CpuSet; enforcement: EnforcementLevel },
  unbalanced: CpuSet,
): boolean {
  return cpus.size > 1 && (enforcement === 'isolated' || cpus.intersects(unbalanced));
}

/**
 * CPUs that an option names; default: all that threads may be put on.
 * @throws ERR_INVALID_OPTION for none and for others than these, ERR_INVALID_LIST
 */
export function cpusWithin(
  { cpus, part }: GrantedThreads,
  option: string,
  value: CpuSet | string | undefined,
): CpuSet {
  if (value === undefined) return cpus;
  const whose = part === '' ? 'the grant' : `part ${part} of the grant`;
  const valid = `CPUs of ${whose}, at least one: ${cpus}`;
  if (!(value instanceof CpuSet) && typeof value !== 'string') invalidOption(option, value, valid);
  const chosen = CpuSet.coerce(value);
  if (chosen.isEmpty || !chosen.isSubsetOf(cpus)) invalidOption(option, String(chosen), valid);
  return chosen;
}

/**
 * Moves threads into the grant's cgroup, where it has one, and has `put` pin them; where that fails
 * they leave it again. `isWhole`: all of the process is in it, threads that are just being born
 * included.
 * @throws ERR_ALREADY_PINNED unless `replace`, and nothing is moved then; ERR_CGROUP,
 *   ERR_ENFORCEMENT
 */
export function inGroup<T>(
  { grant, cpus, group, learnChoices }: Pick<GrantedThreads, 'grant' | 'cpus' | 'group' | 'learnChoices'>,
  threads: readonly Threads[],
  replace: boolean,
  put: (isWhole: boolean) => T,
): T {
  learnChoices();
  if (!group) return put(false);
  if (!replace) for (const each of threads) native.checkNotPinned(toTid(each), grant);
  const wasInUse = group.isInUse;
  try {
    return put(group.enter(threads));
  } catch (error) {
    if (!wasInUse) group.leave(cpus);
    throw error;
  }
}

/** Where threads of one kind go. */
export interface ThreadPlace {
  /** Of the grant, which has these CPUs; '': of none. */
  readonly part: string;
  readonly cpus: CpuSet;
  /** Each on one of them, the least used. */
  readonly oneEach: boolean;
}

/**
 * Pins every thread of this process whose role has a place; others stay where they are.
 * @throws ERR_ALREADY_PINNED unless `replace`; nothing is moved then
 */
export function placeByRole(
  granted: GrantedThreads,
  places: Readonly<Partial<Record<ThreadRole, ThreadPlace | undefined>>>,
  replace: boolean,
): Record<ThreadRole, NativePinOutcome> {
  const { grant, owner, part } = granted;
  const inOrder = THREAD_ROLES.map((role) => places[role]);
  const wholeOf = (place: ThreadPlace) =>
    place.part === part ? granted.cpus : granted.onPart(place.part).cpus;
  const outcomes = native.place({
    cpus: inOrder.map((place) => place?.cpus.words),
    oneEach: inOrder.map((place) => place?.oneEach),
    parts: inOrder.map((place) => place?.part),
    granted: inOrder.map((place) => place && wholeOf(place).words),
    grant,
    owner,
    replace,
  });
  return Object.fromEntries(THREAD_ROLES.map((role, i) => [role, outcomes[i]!])) as Record<
    ThreadRole,
    NativePinOutcome
  >;
}
