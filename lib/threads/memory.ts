// Memory of a grant: the NUMA policy of the calling thread, and where its memory moves. Follows
// set_mempolicy(2), mbind(2), migrate_pages(2) and numa(7).
import { NumalignError } from '../base/errors.js';
import { native } from '../base/native.js';
import type { NativePolicy } from '../base/native-threads.js';
import { ENVIRONMENT } from '../base/registry.js';
import { NodeSet } from '../machine/cpu-set.js';
import { ASKED_MODES, type MemoryMode, type MemoryPolicyMode, MODES } from './memory-mode.js';

/** What became of memory that was there already. */
export interface MemoryMigration {
  /**
   * Pages that the kernel says it could not move; null where it moved none at all. Pages shared
   * with other processes need CAP_SYS_NICE and are not counted.
   */
  readonly notMoved: number | null;
  /** Why none was moved, such as `EPERM`; null otherwise. */
  readonly reason: string | null;
}

/**
 * The account of a memory policy: of the calling thread and what it touches later, never of other
 * threads that run already.
 */
export interface MemoryPinResult {
  /** In force now, read back; null where it cannot be read. */
  readonly mode: MemoryPolicyMode | null;
  /** Of the policy in force. */
  readonly nodes: NodeSet;
  /**
   * Whether what was asked for is in force. Where not, the node of the CPU that first touches a
   * page decides.
   */
  readonly applied: boolean;
  /**
   * Why not: the kernel's refusal, such as `EPERM` or `ENOSYS` (a container's seccomp profile) or
   * `EINVAL` (none of the nodes has memory that may be used here); `clipped` where only some of the
   * nodes are in force, since a cpuset forbids the others or a kernel before 5.15 prefers one only;
   * `other-thread` where another thread was pinned, whose policy only itself could set.
   */
  readonly reason: string | null;
  /** null where it was not asked for. */
  readonly migrated: MemoryMigration | null;
}

/** The name of the kernel's refusal. Throws whatever is none. */
function refusalOf(error: unknown): string {
  if (error instanceof NumalignError && error.errnoName !== undefined) return error.errnoName;
  throw error;
}

interface ThreadMemory {
  /**
   * The policy that the calling thread has for a grant: the one from before the first pin. An
   * environment has one thread.
   */
  pinned: { readonly grant: string; readonly before: NativePolicy } | undefined;
}

const newThreadMemory = (): ThreadMemory => ({ pinned: undefined });

const threadMemory = () => ENVIRONMENT.of(newThreadMemory);

/** What is asked of the calling thread's memory. */
export interface MemoryPin {
  grant: string;
  mode: MemoryMode;
  nodes: NodeSet;
  /** Move what is on these nodes; undefined: leave everything where it is. */
  from: NodeSet | undefined;
}

/** Sets the calling thread's policy. What the kernel refuses is told, not thrown. */
export function pinMemory({ grant, mode, nodes, from }: MemoryPin): MemoryPinResult {
  let reason: string | null = null;
  let now: NativePolicy | undefined;
  try {
    // Read first: what could not be given back is not taken.
    const before = native.memoryPolicy();
    now = before;
    native.setMemoryPolicy(ASKED_MODES[mode], 0, nodes.words);
    threadMemory().pinned = { grant, before: threadMemory().pinned?.before ?? before };
    now = native.memoryPolicy();
  } catch (error) {
    reason = refusalOf(error);
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

/**
 * Moves what a process, by default this one, has on some nodes. What the kernel refuses is told, not
 * thrown.
 */
export function migrate(from: NodeSet, to: NodeSet, pid = 0): MemoryMigration {
  if (from.isEmpty) return { notMoved: 0, reason: null };
  try {
    return { notMoved: native.migratePages(from.words, to.words, pid), reason: null };
  } catch (error) {
    return { notMoved: null, reason: refusalOf(error) };
  }
}

/** The result where another thread than the calling one was pinned. */
export const OTHER_THREAD: MemoryPinResult = Object.freeze({
  mode: null,
  nodes: NodeSet.EMPTY,
  applied: false,
  reason: 'other-thread',
  migrated: null,
});

/**
 * Gives the calling thread back the policy it had before it was pinned for this grant; returns what
 * undoes that. Does nothing on other threads.
 */
export function unpinMemory(grant: string): () => void {
  const memory = threadMemory();
  const was = memory.pinned;
  if (was === undefined || was.grant !== grant) return () => {};
  let policy: NativePolicy;
  try {
    policy = native.memoryPolicy();
  } catch (error) {
    refusalOf(error); // denied since: the policy stays
    return () => {};
  }
  if (!trySetPolicy(was.before)) return () => {};
  memory.pinned = undefined;
  return () => {
    if (trySetPolicy(policy)) memory.pinned = was;
  };
}

/**
 * The calling thread's memory comes from other nodes from now on, if its policy is that of this
 * grant: the grant's own have changed.
 */
export function followMemory(grant: string, nodes: NodeSet): void {
  if (threadMemory().pinned?.grant !== grant) return;
  try {
    const { mode, flags } = native.memoryPolicy();
    trySetPolicy({ mode, flags, nodes: nodes.words });
  } catch (error) {
    refusalOf(error); // denied since: the policy stays
  }
}

// Whether it was not refused: by a seccomp filter, or since a cpuset has changed.
function trySetPolicy({ mode, flags, nodes }: NativePolicy): boolean {
  try {
    native.setMemoryPolicy(mode, flags, nodes);
    return true;
  } catch (error) {
    refusalOf(error);
    return false;
  }
}

/**
 * Has the calling thread prefer memory from these nodes, as far as that is allowed; returns what
 * undoes that. Threads and processes that it starts inherit the policy.
 */
export function preferNodes(nodes: NodeSet): () => void {
  let before: NativePolicy;
  try {
    before = native.memoryPolicy();
    native.setMemoryPolicy(ASKED_MODES.preferred, 0, nodes.words);
  } catch (error) {
    refusalOf(error);
    return () => {};
  }
  return () => void trySetPolicy(before);
}
