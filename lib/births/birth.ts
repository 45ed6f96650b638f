// Birth: what threads and processes have that the calling thread starts. They inherit its mask, its
// memory policy and its cgroup, and have the CPUs of a grant from their first instruction.
import { native } from '../base/native.js';
import type { CpuSet } from '../machine/cpu-set.js';
import type { GrantedThreads } from '../threads/granted-threads.js';
import { preferNodes } from '../threads/memory.js';

/** Where something is born, beside its CPUs. Without them it has the memory policy and cgroup of this thread. */
type BirthPlace = Partial<Pick<GrantedThreads, 'memoryNodes' | 'group'>>;

/** Ends a birth. The id of the one thread that was started meanwhile, 0 where unknown. */
export type CloseBirth = () => number;

// Those of this environment that are open, one in the other.
const open: CloseBirth[] = [];
// One of them, of something that may never start.
let trial: CloseBirth | undefined;

/** Whether what the calling thread starts now is born on a grant, and that is no trial. */
export const isBirthOpen = () => open.length > 0 && trial === undefined;

/**
 * Until the answer is called, what the calling thread starts is born on these CPUs of a grant, in
 * its cgroup where it has one, with its memory nodes preferred; or on others of the machine. A birth that was opened later ends
 * before.
 * @throws ERR_SYSCALL where the CPUs cannot be used here, ERR_CGROUP, ERR_ENFORCEMENT
 */
export function openBirth({ memoryNodes, group }: BirthPlace, cpus: CpuSet): CloseBirth {
  trial?.();
  const leave = group?.enterToStart();
  const restore = memoryNodes && preferNodes(memoryNodes);
  const back = () => {
    restore?.();
    leave?.();
  };
  let birth: number;
  try {
    birth = native.openBirth(cpus.words);
  } catch (error) {
    back();
    throw error;
  }
  let tid = 0;
  const close = () => {
    if (!open.includes(close)) return tid;
    while (open.at(-1) !== close) open.at(-1)!();
    open.pop();
    if (trial === close) trial = undefined;
    tid = native.closeBirth(birth);
    back();
    return tid;
  };
  open.push(close);
  return close;
}

/**
 * For something that may fail unseen: as {@link openBirth}, and the next birth that is opened ends it.
 * @throws as {@link openBirth}
 */
export function openTrial(target: BirthPlace, cpus: CpuSet): CloseBirth {
  trial = openBirth(target, cpus);
  return trial;
}

/** Has `action` start something there. `tid`: of the one thread, 0 where unknown. */
export function bornOn<T>(target: BirthPlace, cpus: CpuSet, action: () => T): { value: T; tid: number } {
  const close = openBirth(target, cpus);
  try {
    const value = action();
    return { value, tid: close() };
  } finally {
    close();
  }
}
