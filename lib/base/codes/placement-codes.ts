// PlacementCodes: why threads, memory and settings are not where a grant would have them. Types only:
// nothing is loaded at runtime.
import type { CgroupReason } from './cgroup-reasons.js';

// What the kernel refused; without an errno, a call had another effect than it reported.
interface Refused {
  errno?: number;
  syscall?: string;
  // The former value could not be restored after a step that failed.
  restored?: false;
}

// CPUs and NUMA nodes in facts are a set or its list.
interface CgroupFacts {
  reason: CgroupReason;
  valid: string;
  path?: string;
  text?: string;
  missing?: object | string;
  effective?: object | string;
}

/** The codes of what the kernel, or what it runs, does not allow; see {@link ErrorCodes}. */
export interface PlacementCodes {
  /**
   * A thread is pinned for another grant (`details.tid`, `details.grant`).
   * @remedy Release that grant first, or pin with `{ replace: true }`.
   */
  ERR_ALREADY_PINNED: { tid: number; grant: string };
  /**
   * A cgroup cannot be used as asked (`details.reason`): there is no hierarchy with the cpuset
   * controller, the path or name is impossible, a systemd unit is not delegated, a partition reads
   * back as invalid (`details.text`), or the kernel refused (`errno`, `errnoName`, `syscall`,
   * `details.path`). The changes of the operation are undone. Memory nodes that a container's group
   * cannot have are not errors: `memoryEnforcement` reports them, see docs/memory.md.
   * @remedy Follow the message; `details.valid` has what would work.
   */
  ERR_CGROUP: Refused & CgroupFacts;
  /**
   * The required enforcement level cannot be reached here: `details.value` is the one that can, and
   * `details.why` says what prevents more. Also: cgroup v2 cannot move a single thread into a
   * grant's cgroup, only a whole process; and `pin({ memory: 'strict' })` needs a grant with a
   * cgroup.
   * @remedy Require less, or do what `details.why` names; call `pin({ threads: 'process' })` first;
   *   use `memory: 'bind'`.
   */
  ERR_ENFORCEMENT: { value: string; valid?: string | readonly string[]; why?: readonly string[] };
  /**
   * `pin()` would put the whole process on several isolated CPUs (`details.value`). The kernel does
   * not balance load between these: all threads would pile up on one.
   * @remedy Call `grant.placeThreads()`, which puts each thread on one CPU.
   */
  ERR_ISOLATED_NEEDS_PLACEMENT: { value: string; valid: string };
  /**
   * A shared member (`details.value`) cannot leave the CPUs of the grant: this user may not move
   * it, or its cpuset has no other CPU. Nothing is granted, and members that left are back. Also: a
   * process cannot become a shared member, because it is attached to exclusive CPUs or this user
   * may not move it; nothing is changed.
   * @remedy Allow it to be moved, remove it from the shared members (`numalign share --remove`), or
   *   use `unmovableMembers: 'report'`.
   */
  ERR_MEMBER_UNMOVABLE: { grant?: string | null; container?: string | null };
  /**
   * A buffer needs `details.needed` bytes, more than the `details.free` bytes that its node
   * (`details.node`) or the machine has in pages or hugepages (`details.pageSize`).
   * @remedy Ask for less, leave out `node`, or have the kernel make more hugepages:
   *   `/proc/sys/vm/nr_hugepages`.
   */
  ERR_MEMORY_SHORTAGE: { needed: number; free: number | null; node: number | null; pageSize: number | null };
  /**
   * Required parts of `quiet` (`details.value`) are not fully reached. `details.valid` are the
   * parts that are, `details.why` says what prevents the others. Nothing is granted, and settings
   * are as before.
   * @remedy Do what `details.why` says, or do not `require` these parts. See docs/quiet.md.
   */
  ERR_QUIET: { value: readonly string[]; valid: readonly string[]; why: readonly string[] };
  /**
   * The scheduling class is refused: other threads of this process could run only on CPUs of
   * real-time threads (`details.tid`, `details.cpus`), the thread is not on the grant's CPUs, or
   * the process has neither CAP_SYS_NICE nor a sufficient limit (`details.limit`). Also: a Worker
   * would have only such CPUs, and is not started.
   * @remedy Place the other threads elsewhere with `grant.placeThreads()`; pin the thread first;
   *   raise `ulimit -r` or `ulimit -e`.
   */
  ERR_SCHEDULING: { tid?: number; cpus?: string; limit?: number };
  /**
   * The kernel refused a system call: `errno`, `errnoName` and `syscall` say what. `EINVAL` of
   * `sched_setaffinity`: no CPU of the set is online and in the cpuset of the process. `ENOSPC`:
   * the disk of the state folder is full.
   * @remedy Depends on `errnoName`.
   */
  ERR_SYSCALL: Refused;
}
