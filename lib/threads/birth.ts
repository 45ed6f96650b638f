// Birth: makes the threads and processes that the calling thread starts begin on a grant. They
// inherit its mask, memory policy and cgroup, and so have the grant's CPUs from their first
// instruction.
import { native } from '../base/native.js';
import type { CpuSet } from '../machine/cpu-set.js';
import type { GrantedThreads } from './granted-threads.js';
import { preferNodes } from './memory.js';

/** The memory nodes and cgroup of a birth; default: those of this thread. */
type BirthPlace = Partial<Pick<GrantedThreads, 'preferredNodes' | 'group'>>;

/**
 * Ends a birth. Returns the id of the one thread that was started in the meantime, or 0 if unknown.
 */
export type CloseBirth = () => number;

// The open births of this environment, each within the one before.
const open: CloseBirth[] = [];
// An open birth of something that may never start.
let trial: CloseBirth | undefined;

/** Whether what the calling thread starts now begins on a grant, other than by a trial. */
export const isBirthOpen = () => open.length > 0 && trial === undefined;

/**
 * Until the returned function is called, what the calling thread starts begins on these CPUs, in
 * the grant's cgroup if it has one, and with its memory nodes preferred. Closing a birth also
 * closes those opened later.
 * @throws ERR_SYSCALL if the CPUs cannot be used here, ERR_CGROUP, ERR_ENFORCEMENT
 */
export function openBirth({ preferredNodes, group }: BirthPlace, cpus: CpuSet): CloseBirth {
  trial?.();
  const leave = group?.enterToStart();
  const restore = preferredNodes && preferNodes(preferredNodes);
  const restoreAll = () => {
    restore?.();
    leave?.();
  };
  let birth: number;
  try {
    birth = native.openBirth(cpus.words);
  } catch (error) {
    restoreAll();
    throw error;
  }
  let tid = 0;
  const close = () => {
    if (!open.includes(close)) return tid;
    while (open.at(-1) !== close) open.at(-1)!();
    open.pop();
    if (trial === close) trial = undefined;
    tid = native.closeBirth(birth);
    restoreAll();
    return tid;
  };
  open.push(close);
  return close;
}

/**
 * Like {@link openBirth}, for a start that may fail unseen: the next birth that is opened ends it.
 * @throws like {@link openBirth}
 */
export function openTrial(target: BirthPlace, cpus: CpuSet): CloseBirth {
  trial = openBirth(target, cpus);
  return trial;
}

/**
 * Runs `action`, which starts something there. `tid`: the id of the one new thread, 0 if unknown.
 */
export function bornOn<T>(target: BirthPlace, cpus: CpuSet, action: () => T): { value: T; tid: number } {
  const close = openBirth(target, cpus);
  try {
    const value = action();
    return { value, tid: close() };
  } finally {
    close();
  }
}
