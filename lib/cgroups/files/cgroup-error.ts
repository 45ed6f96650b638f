// ERR_CGROUP: explains the kernel's error numbers for operations on cgroups.

import type { CgroupReason } from '../../base/codes/cgroup-reasons.js';
import { errnoName } from '../../base/codes/errno.js';
import { isNumalignError, NumalignError } from '../../base/errors.js';

/** The operation. Together with the errno, it tells the cause. */
export type CgroupAction =
  | 'attach'
  | 'attach-thread'
  | 'set-cpus'
  | 'set-mems'
  | 'set-partition'
  | 'set-quota'
  | 'set-migration'
  | 'enable-controller'
  | 'make'
  | 'remove'
  | 'look';

type Meaning = readonly [reason: CgroupReason, why: string, valid: string];
type Meanings = Record<string, Meaning>;

const ROOT_OR_OWNER = 'root, or the user that the cgroup was delegated to';

// The tables are made when something fails. This one is of open(2), before any operation on the cgroup.
const unopened = (): Meanings => ({
  ENOENT: ['missing', 'the cgroup or its file does not exist', 'a cgroup with the cpuset controller'],
  ENODEV: ['missing', 'the cgroup was removed meanwhile', 'a cgroup that exists'],
  EACCES: ['no-access', 'it belongs to another user', ROOT_OR_OWNER],
  EPERM: ['no-access', 'it belongs to another user', ROOT_OR_OWNER],
  EROFS: ['readonly', 'the hierarchy is mounted read-only', 'a hierarchy mounted read-write'],
  ELOOP: ['bad-path', 'it is a link', 'a path without links'],
});

const attaching = (): Meanings => ({
  ESRCH: ['no-process', 'it has ended, or never existed', 'the number of a living process or thread'],
  ENOSPC: [
    'no-cpus',
    'the cgroup has no CPUs or no memory nodes yet',
    'a cgroup whose CPUs and memory nodes are set',
  ],
  EACCES: [
    'no-access',
    'it belongs to another user, or comes from outside the cgroup delegated to this one',
    'root, or a process inside the delegated cgroup',
  ],
  EPERM: ['no-access', 'it belongs to another user', 'root, or a process of this user'],
  ENOENT: [
    'no-access',
    'it is in a cgroup that is not visible from here',
    'a process inside the cgroup namespace',
  ],
  EINVAL: [
    'kernel',
    'it is a kernel thread bound to its CPUs, or a real-time thread without an allowance in this cgroup',
    'another process',
  ],
  EBUSY: [
    'internal-processes',
    'the cgroup enables controllers for cgroups below it and so cannot hold processes; or its CPUs have no room for a deadline task',
    'a cgroup without others below it',
  ],
  EOPNOTSUPP: [
    'threaded',
    'the cgroup lies in a threaded subtree, or below one that holds processes',
    'a domain cgroup',
  ],
});

const settingIds = (): Meanings => ({
  EACCES: [
    'outside-parent',
    'the cgroup above does not have all of them',
    'a part of what the cgroup above has',
  ],
  EBUSY: [
    'in-use',
    'a cgroup below has more of them, or deadline tasks need them',
    'at least what the cgroups below have; shrink these first',
  ],
  ERANGE: ['invalid-ids', 'the kernel does not know such a number', 'numbers that the machine has'],
  EINVAL: [
    'invalid-ids',
    'not all of them are online, or a neighbour holds some of them exclusively',
    'numbers that are online and in no exclusive neighbour',
  ],
  ENOSPC: [
    'no-cpus',
    'the cgroup has processes, which need at least one',
    'at least one, or an empty cgroup',
  ],
  ENODEV: unopened().ENODEV!,
});

const meaningsByAction = (): Record<CgroupAction, Meanings> => ({
  attach: attaching(),
  'attach-thread': attaching(),
  'set-cpus': settingIds(),
  'set-mems': settingIds(),
  'set-partition': {
    EINVAL: [
      'version',
      'this kernel does not know such a partition, or (before Linux 6.0) cannot make it with these CPUs',
      'member, root, or from Linux 6.1 on isolated, with CPUs that no cgroup beside it has',
    ],
    EACCES: [
      'not-delegated',
      'the partition of a cgroup belongs to the owner of the cgroup above',
      'a cgroup below',
    ],
    EBUSY: ['in-use', 'the kernel is busy with it, or deadline tasks need the CPUs', 'another try later'],
  },
  'set-quota': {},
  'set-migration': {},
  'enable-controller': {
    EBUSY: ['internal-processes', 'it has processes', 'a cgroup whose processes are all in cgroups below it'],
    EOPNOTSUPP: [
      'threaded',
      'it lies in a threaded subtree, or below a cgroup that holds processes',
      'a domain cgroup',
    ],
    ENOENT: [
      'not-delegated',
      'the cgroup above does not enable the controller',
      'delegation, for example by Delegate=cpuset',
    ],
    EINVAL: ['realtime', 'there are real-time processes below it', 'a cgroup without them'],
  },
  make: {
    EACCES: ['no-access', 'the cgroup above belongs to another user', ROOT_OR_OWNER],
    EPERM: ['no-access', 'the cgroup above belongs to another user', ROOT_OR_OWNER],
    ENOENT: ['missing', 'there is no cgroup above it', 'a path whose parent is a cgroup'],
    EAGAIN: [
      'limit',
      'cgroup.max.depth or cgroup.max.descendants of a cgroup above is reached',
      'fewer cgroups',
    ],
    ENOSPC: ['limit', 'the machine has no room for more cgroups', 'fewer cgroups'],
    EOPNOTSUPP: ['threaded', 'the cgroup above is threaded', 'a domain cgroup'],
    EROFS: unopened().EROFS!,
  },
  remove: {
    EBUSY: ['in-use', 'it has processes or cgroups', 'an empty cgroup'],
    EACCES: ['no-access', 'the cgroup above belongs to another user', ROOT_OR_OWNER],
    EPERM: ['no-access', 'the cgroup above belongs to another user', ROOT_OR_OWNER],
    EROFS: unopened().EROFS!,
  },
  look: {
    ESRCH: attaching().ESRCH!,
    EOPNOTSUPP: ['threaded', 'a threaded cgroup does not list its processes', 'a domain cgroup'],
  },
});

const UNKNOWN: Meaning = ['kernel', 'the kernel refused', 'see the errno'];

/** Why an operation on a cgroup failed; undefined for another error. */
export const cgroupReason = (error: unknown): CgroupReason | undefined =>
  isNumalignError(error, 'ERR_CGROUP') ? error.details.reason : undefined;

/** An ERR_CGROUP without a system call behind it. The message gets what is `valid`. */
export function cgroupRefusal(
  reason: CgroupReason,
  message: string,
  details: Omit<NumalignError<'ERR_CGROUP'>['details'], 'reason'>,
): NumalignError {
  return new NumalignError('ERR_CGROUP', `${message}; valid is ${details.valid}`, { reason, ...details });
}

/** A step on the file at `path`. */
export interface CgroupStep {
  readonly action: CgroupAction;
  /** Completes "cannot …". */
  readonly doing: string;
  readonly path: string;
  /** What is written, or asked about. */
  readonly value: unknown;
}

/** Turns a failed system call into ERR_CGROUP. Returns any other error as it is. */
export function cgroupError(error: unknown, { action, doing, path, value }: CgroupStep): unknown {
  const { errno, code, syscall } = error as NodeJS.ErrnoException;
  if (errno === undefined || code === undefined || error instanceof NumalignError) return error;
  // libuv has another name for errno 95 than the kernel.
  const name = code === 'ENOTSUP' ? 'EOPNOTSUPP' : errnoName(-errno);
  const meanings =
    syscall === 'open' && action !== 'look' ? unopened() : { ...unopened(), ...meaningsByAction()[action] };
  const [reason, why, valid] = meanings[name] ?? UNKNOWN;
  const label = reason === 'no-access' ? 'it takes' : 'valid is';
  const message = `cannot ${doing}: ${why} (${name}, ${syscall} ${path}); ${label} ${valid}`;
  return new NumalignError('ERR_CGROUP', message, {
    reason,
    errno: -errno,
    ...(syscall !== undefined && { syscall }),
    path,
    value,
    valid,
    cause: error,
  });
}

/** Runs `action`, and throws its failure as {@link cgroupError}. */
export function attempt<T>(step: CgroupStep, action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw cgroupError(error, step);
  }
}

/** Runs `action`, which only looks at the path; `doing`: by default it reads a file. */
export const look = <T>(path: string, action: () => T, doing = `read ${path}`): T =>
  attempt({ action: 'look', doing, path, value: undefined }, action);

/** Runs a step about a process or thread. It is not an error if that has ended. */
export function unlessEnded(step: () => void): void {
  try {
    step();
  } catch (error) {
    if (cgroupReason(error) !== 'no-process') throw error;
  }
}
