// Memory of a grant: the NUMA policy of the calling thread, and moves of its memory. See
// set_mempolicy(2), mbind(2), migrate_pages(2) and numa(7).
import { invalidOption } from '../base/check-options.js';
import { ENVIRONMENT } from '../base/collections/registry.js';
import { NumalignError, refusalOf, unlessRefused } from '../base/errors.js';
import { native } from '../base/native.js';
import type { NativePolicy } from '../base/native-threads.js';
import { NodeSet } from '../machine/cpu-set.js';

/**
 * Where memory comes from that the thread touches for the first time. `preferred`: from these
 * nodes, or from others when they are full. `bind`: only from these nodes; when they are full, the
 * kernel kills a process, usually this one. `interleave`: from each of them in turn.
 * `weighted-interleave`: from each as often as its weight says, as the system has it for the node.
 */
export type MemoryMode = 'preferred' | 'bind' | 'interleave' | 'weighted-interleave';

/**
 * The policy in force: a {@link MemoryMode}, or what a thread has without one (`default`, `local`:
 * the node of the CPU that touches the memory).
 */
export type MemoryPolicyMode = MemoryMode | 'default' | 'local';

// Keyed by the kernel's numbers.
const MODES: Readonly<Record<number, MemoryPolicyMode>> = {
  0: 'default',
  1: 'preferred',
  2: 'bind',
  3: 'interleave',
  4: 'local',
  6: 'weighted-interleave',
};

const MODE_NUMBERS: Readonly<Record<MemoryMode, number>> = {
  preferred: 1,
  bind: 2,
  interleave: 3,
  'weighted-interleave': 6,
};

/** The modes of a thread, for errors. */
export const MODES_OF_A_THREAD = "'preferred', 'bind', 'interleave', 'weighted-interleave' or 'none'";

/** @throws ERR_INVALID_OPTION */
export function checkMemoryMode(value: unknown): MemoryMode | 'none' {
  if (value === 'none' || (typeof value === 'string' && Object.hasOwn(MODE_NUMBERS, value)))
    return value as MemoryMode;
  return invalidOption('memory', value, `'strict', ${MODES_OF_A_THREAD}`);
}

/** What became of memory that already existed. */
export interface MemoryMigration {
  /**
   * The pages that the kernel reports as not moved; null if it moved none at all. Pages shared with
   * other processes need CAP_SYS_NICE and are not counted.
   */
  readonly notMoved: number | null;
  /** Why nothing was moved, such as `EPERM`; null otherwise. */
  readonly reason: string | null;
}

/**
 * The memory policy of the calling thread, for what it touches later. Other running threads are not
 * affected.
 */
export interface MemoryPinResult {
  /** The mode in force now, read back; null if it cannot be read. */
  readonly mode: MemoryPolicyMode | null;
  /** The nodes of the policy in force. */
  readonly nodes: NodeSet;
  /**
   * True if the requested policy is in force. Otherwise the node of the CPU that first touches a
   * page decides.
   */
  readonly applied: boolean;
  /**
   * Why `applied` is false:
   * - The kernel's refusal, such as `EPERM` or `ENOSYS` (a container's seccomp profile) or `EINVAL`
   *   (none of the nodes has memory that may be used here).
   * - `clipped`: only some of the nodes are in force, because a cpuset forbids the others, or
   *   because a kernel before 5.15 prefers only one.
   * - `unweighted`: the kernel is older than 6.9 and knows no weights: `interleave` is in force.
   * - `other-thread`: another thread was pinned, which only itself could set its policy.
   */
  readonly reason: string | null;
  /** Null if a migration was not requested. */
  readonly migrated: MemoryMigration | null;
}

/** The name of the kernel's refusal. Throws any other error. */
function refusalName(error: unknown): string {
  if (error instanceof NumalignError && error.errnoName !== undefined) return error.errnoName;
  throw error;
}

// The calling thread's policy for a grant, and its policy before the first pin. An environment has
// one thread.
const newThreadMemory = () => ({
  pinned: undefined as { readonly grant: string; readonly before: NativePolicy } | undefined,
});

const threadMemory = () => ENVIRONMENT.of(newThreadMemory);

/** What to do with the calling thread's memory. */
export interface MemoryPin {
  grant: string;
  mode: MemoryMode;
  nodes: NodeSet;
  /** Move what is on these nodes; undefined: move nothing. */
  from: NodeSet | undefined;
}

/**
 * Sets the calling thread's policy. A refusal of the kernel is part of the result, and not thrown.
 */
export function pinMemory({ grant, mode, nodes, from }: MemoryPin): MemoryPinResult {
  let reason: string | null = null;
  let now: NativePolicy | undefined;
  try {
    // Read first: a policy that cannot be restored must not be replaced.
    const before = native.memoryPolicy();
    now = before;
    reason = setPolicy(mode, nodes);
    threadMemory().pinned = { grant, before: threadMemory().pinned?.before ?? before };
    now = native.memoryPolicy();
  } catch (error) {
    reason = refusalName(error);
  }
  const inForce = new NodeSet(now?.nodes ?? new Uint32Array());
  if (reason === null && !inForce.equals(nodes)) reason = 'clipped';
  return {
    mode: (now && MODES[now.mode]) ?? null,
    nodes: inForce,
    applied: reason === null,
    reason,
    migrated: from === undefined ? null : migrate(from, nodes),
  };
}

// Returns why another mode is in force; null if it is the requested one.
function setPolicy(mode: MemoryMode, nodes: NodeSet): string | null {
  const set = (number: number) => native.setMemoryPolicy(number, 0, nodes.words);
  if (mode !== 'weighted-interleave') {
    set(MODE_NUMBERS[mode]);
    return null;
  }
  const refusal = refusalOf(() => set(MODE_NUMBERS[mode]));
  if (refusal === undefined) return null;
  if (refusal.errnoName !== 'EINVAL') throw refusal;
  // The nodes are not the reason if this is accepted.
  set(MODE_NUMBERS.interleave);
  return 'unweighted';
}

/**
 * Moves what a process has on some nodes; default: this process. A refusal of the kernel is part of
 * the result, and not thrown.
 */
export function migrate(from: NodeSet, to: NodeSet, pid = 0): MemoryMigration {
  if (from.isEmpty) return { notMoved: 0, reason: null };
  try {
    return { notMoved: native.migratePages(from.words, to.words, pid), reason: null };
  } catch (error) {
    return { notMoved: null, reason: refusalName(error) };
  }
}

/** The result if another thread than the calling one was pinned. */
export const OTHER_THREAD: MemoryPinResult = Object.freeze({
  mode: null,
  nodes: NodeSet.EMPTY,
  applied: false,
  reason: 'other-thread',
  migrated: null,
});

/**
 * Restores the policy that the calling thread had before it was pinned for this grant. Returns a
 * function that undoes this. Does nothing on other threads.
 */
export function unpinMemory(grant: string): () => void {
  const memory = threadMemory();
  const was = memory.pinned;
  if (was === undefined || was.grant !== grant) return () => {};
  const policy = policyNow();
  // Now denied: the policy stays.
  if (!policy || !trySetPolicy(was.before)) return () => {};
  memory.pinned = undefined;
  return () => {
    if (trySetPolicy(policy)) memory.pinned = was;
  };
}

/**
 * Makes the calling thread's memory come from the grant's new nodes, if its policy is that of this
 * grant. `preferred`: those that it is to come from first.
 */
export function followMemory(grant: string, nodes: NodeSet, preferred: NodeSet): void {
  const policy = threadMemory().pinned?.grant === grant ? policyNow() : undefined;
  const isPreferred = policy?.mode === MODE_NUMBERS.preferred;
  if (policy) trySetPolicy({ ...policy, nodes: (isPreferred ? preferred : nodes).words });
}

// Undefined if it is refused.
const policyNow = () => unlessRefused(() => native.memoryPolicy());

// Returns false if it is refused: by a seccomp filter, or because a cpuset has changed.
const trySetPolicy = ({ mode, flags, nodes }: NativePolicy): boolean =>
  refusalOf(() => native.setMemoryPolicy(mode, flags, nodes)) === undefined;

/**
 * Makes the calling thread prefer memory from these nodes, as far as that is allowed. Returns a
 * function that undoes this. Threads and processes that it starts inherit the policy.
 */
export function preferNodes(nodes: NodeSet): () => void {
  const before = policyNow();
  if (!before || !trySetPolicy({ mode: MODE_NUMBERS.preferred, flags: 0, nodes: nodes.words }))
    return () => {};
  return () => void trySetPolicy(before);
}
