// GrantedThreads: what it takes to put threads on the CPUs of a grant.
import { type EnforcementLevel, LEVELS } from '../account/levels.js';
import { invalidOption } from '../base/check-options.js';
import { unlessRefused } from '../base/errors.js';
import { native } from '../base/native.js';
import { type NativePinOutcome, THREAD_ROLES, type ThreadRole } from '../base/native-threads.js';
import type { Enforcer } from '../enforcement/enforcer.js';
import type { GrantGroup } from '../enforcement/grant-group.js';
import { type PinResult, type Threads, toTid } from '../machine/affinity.js';
import { CpuSet, type NodeSet } from '../machine/cpu-set.js';

export interface GrantedThreads {
  readonly grant: string;
  /** The part of the grant that the threads belong to; '': none. */
  readonly part: string;
  /** The uuid of the grant's owner. */
  readonly owner: string;
  /** The CPUs that threads may be put on. */
  readonly cpus: CpuSet;
  readonly memoryNodes: NodeSet;
  /** Those that memory is to come from first. */
  readonly preferredNodes: NodeSet;
  /** True if every thread must be put on one CPU, see {@link needsOneToOne}. */
  readonly oneToOne: boolean;
  /** The same for a part of the grant. @throws ERR_UNKNOWN_PART */
  readonly onPart: (name: string) => GrantedThreads;
  /** The grant's cgroup, if it has one. */
  readonly group: GrantGroup | undefined;
  /** See {@link Enforcer.learnAskedMasks}. */
  readonly learnAskedMasks: () => void;
  /**
   * Moves threads of this process to the shared pool, where they stay. Undefined if the grant has
   * not booked anything from the pool.
   */
  readonly share?: ((tids: readonly number[]) => Promise<PinResult>) | undefined;
}

/**
 * Whether every thread must be put on one CPU. The kernel does not balance load between isolated
 * CPUs: a thread stays on the CPU where it happens to be, and threads that may use several CPUs
 * pile up on one. `unbalanced`: the CPUs without balancing now.
 */
export function needsOneToOne(
  { cpus, enforcement }: { cpus: CpuSet; enforcement: EnforcementLevel },
  unbalanced: CpuSet,
): boolean {
  return cpus.size > 1 && (LEVELS[enforcement].isolatesCpus || cpus.intersects(unbalanced));
}

/**
 * The CPUs that an option names; default: all that threads may be put on.
 * @throws ERR_INVALID_OPTION for an empty set or other CPUs, ERR_INVALID_LIST
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
  const cpuSet = CpuSet.coerce(value);
  if (cpuSet.isEmpty || !cpuSet.isSubsetOf(cpus)) invalidOption(option, String(cpuSet), valid);
  return cpuSet;
}

/**
 * Moves threads into the grant's cgroup, if it has one, and runs `put`, which pins them. If that
 * fails, they leave the cgroup again. `isWhole`: the whole process is in the cgroup, with threads
 * that are just being created.
 * @throws ERR_ALREADY_PINNED unless `replace`, before anything moves; ERR_CGROUP, ERR_ENFORCEMENT
 */
export function inGroup<T>(
  {
    grant,
    cpus,
    group,
    learnAskedMasks,
  }: Pick<GrantedThreads, 'grant' | 'cpus' | 'group' | 'learnAskedMasks'>,
  threads: readonly Threads[],
  replace: boolean,
  put: (isWhole: boolean) => T,
): T {
  learnAskedMasks();
  if (!group) return put(false);
  if (!replace) for (const each of threads) native.checkNotPinned(toTid(each), grant);
  const wasInUse = group.isInUse;
  try {
    return put(group.enter(threads));
  } catch (error) {
    // The caller must see the first error.
    if (!wasInUse)
      unlessRefused(() => {
        group.leave(cpus);
        group.forgetHome();
      });
    native.restoreMasks();
    throw error;
  }
}

/** Where threads of one kind run. */
export interface ThreadPlace {
  /** The part of the grant that has these CPUs; '': none. */
  readonly part: string;
  readonly cpus: CpuSet;
  /** True: each thread gets one of them, the least used. */
  readonly oneEach: boolean;
}

/**
 * Pins every thread of this process whose role has a place; others stay where they are.
 * @throws ERR_ALREADY_PINNED unless `replace`, before anything moves
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
  const byRole = THREAD_ROLES.map((role, i) => [role, outcomes[i]!]);
  return Object.fromEntries(byRole) as Record<ThreadRole, NativePinOutcome>;
}
