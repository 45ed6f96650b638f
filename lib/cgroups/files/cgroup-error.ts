// ERR_CGROUP: what the kernel's numbers mean for what was being done to a cgroup, in words.
import { NumalignError } from '../../base/errors.js';

/** Why a cgroup could not be used, for programs: `details.reason`. */
export type CgroupReason =
  /** The path or the name cannot be one of a cgroup. */
  | 'bad-path'
  | 'bad-name'
  /** No hierarchy with the cpuset controller can be seen. */
  | 'none'
  | 'missing'
  | 'readonly'
  | 'no-access'
  /** Inside a systemd unit that was not delegated, or the unit itself. */
  | 'systemd-unit'
  /** Only the owner of the cgroup above could do it. */
  | 'not-delegated'
  /** cgroup v1 has no such thing, or v2 does not. */
  | 'version'
  | 'no-process'
  | 'no-cpus'
  | 'outside-parent'
  | 'in-use'
  | 'invalid-ids'
  | 'internal-processes'
  | 'threaded'
  | 'limit'
  | 'deadline'
  | 'realtime'
  | 'partition-invalid'
  | 'nested-partition'
  | 'foreign-partition'
  | 'not-made'
  | 'kernel';

/** What was being done; with the errno it tells what is wrong. */
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

const ROOT_OR_OWNER = 'root, or the user that the cgroup was delegated to';

// Of open(2): nothing was asked of the cgroup yet.
const UNOPENED: Record<string, Meaning> = {
  ENOENT: [
    'missing',
    'there is no such cgroup, or it has no such file',
    'a cgroup with the cpuset controller',
  ],
  ENODEV: ['missing', 'the cgroup was removed meanwhile', 'a cgroup that is there'],
  EACCES: ['no-access', 'it belongs to somebody else', ROOT_OR_OWNER],
  EPERM: ['no-access', 'it belongs to somebody else', ROOT_OR_OWNER],
  EROFS: ['readonly', 'the hierarchy is mounted read-only', 'a hierarchy mounted read-write'],
  ELOOP: ['bad-path', 'it is a link', 'a path without links'],
};

const ATTACH: Record<string, Meaning> = {
  ESRCH: ['no-process', 'it has ended, or was never there', 'the number of a living process or thread'],
  ENOSPC: [
    'no-cpus',
    'the cgroup has no CPUs or no memory nodes yet',
    'a cgroup whose CPUs and memory nodes are set',
  ],
  EACCES: [
    'no-access',
    'it belongs to another user, or comes from outside of what was delegated to this one',
    'root, or a process from inside of the delegated cgroup',
  ],
  EPERM: ['no-access', 'it belongs to another user', 'root, or a process of this user'],
  ENOENT: [
    'no-access',
    'it is in a cgroup that cannot be seen from here',
    'a process inside of the cgroup namespace',
  ],
  EINVAL: [
    'kernel',
    'it is a thread of the kernel that is bound to its CPUs, or a real-time one without an allowance in this cgroup',
    'another process',
  ],
  EBUSY: [
    'internal-processes',
    'the cgroup hands controllers on to cgroups below it, and then cannot hold processes itself; or its CPUs have no room for a deadline task',
    'a cgroup with none below it',
  ],
  EOPNOTSUPP: [
    'threaded',
    'the cgroup lies in a threaded subtree, or below one that holds processes',
    'a domain cgroup',
  ],
};

const SET_IDS: Record<string, Meaning> = {
  EACCES: [
    'outside-parent',
    'the cgroup above does not have all of them',
    'a part of what the cgroup above has',
  ],
  EBUSY: [
    'in-use',
    'a cgroup below has more of them, or deadline tasks need them',
    'at least what the cgroups below have: shrink these first',
  ],
  ERANGE: ['invalid-ids', 'this kernel has no such number', 'what the machine has'],
  EINVAL: [
    'invalid-ids',
    'not all of them are online, or a neighbour has some of them exclusively',
    'what is online and in no exclusive neighbour',
  ],
  ENOSPC: [
    'no-cpus',
    'there are processes in the cgroup, which need at least one',
    'at least one, or an empty cgroup',
  ],
  ENODEV: UNOPENED.ENODEV!,
};

const MEANINGS: Record<CgroupAction, Record<string, Meaning>> = {
  attach: ATTACH,
  'attach-thread': ATTACH,
  'set-cpus': SET_IDS,
  'set-mems': SET_IDS,
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
    EBUSY: ['in-use', 'the kernel is busy with it, or deadline tasks need the CPUs', 'to try again'],
  },
  'set-quota': {},
  'set-migration': {},
  'enable-controller': {
    EBUSY: [
      'internal-processes',
      'there are processes in it',
      'a cgroup whose processes are all in cgroups below it',
    ],
    EOPNOTSUPP: [
      'threaded',
      'it lies in a threaded subtree, or below a cgroup that holds processes',
      'a domain cgroup',
    ],
    ENOENT: [
      'not-delegated',
      'the cgroup above does not hand the controller on',
      'to have it delegated, such as by Delegate=cpuset',
    ],
    EINVAL: ['realtime', 'real-time processes are below it', 'a cgroup without them'],
  },
  make: {
    EACCES: ['no-access', 'the cgroup above belongs to somebody else', ROOT_OR_OWNER],
    EPERM: ['no-access', 'the cgroup above belongs to somebody else', ROOT_OR_OWNER],
    ENOENT: ['missing', 'there is no cgroup above it', 'a path whose parent is a cgroup'],
    EAGAIN: [
      'limit',
      'cgroup.max.depth or cgroup.max.descendants of a cgroup above is reached',
      'fewer cgroups',
    ],
    ENOSPC: ['limit', 'the machine has no room for more cgroups', 'fewer cgroups'],
    EOPNOTSUPP: ['threaded', 'the cgroup above is threaded', 'a domain cgroup'],
    EROFS: UNOPENED.EROFS!,
  },
  remove: {
    EBUSY: ['in-use', 'there are processes or cgroups in it', 'an empty cgroup'],
    EACCES: ['no-access', 'the cgroup above belongs to somebody else', ROOT_OR_OWNER],
    EPERM: ['no-access', 'the cgroup above belongs to somebody else', ROOT_OR_OWNER],
    EROFS: UNOPENED.EROFS!,
  },
  look: {
    ESRCH: ATTACH.ESRCH!,
    EOPNOTSUPP: ['threaded', 'a threaded cgroup does not tell its processes', 'a domain cgroup'],
  },
};

const UNKNOWN: Meaning = ['kernel', 'the kernel refused', 'see the errno'];

/** An ERR_CGROUP that no system call has to do with. */
export function cgroupRefusal(
  reason: CgroupReason,
  message: string,
  details: { path?: string; value: unknown; valid: string; [name: string]: unknown },
): NumalignError {
  return new NumalignError('ERR_CGROUP', message, { reason, ...details });
}

/**
 * The refusal of a system call as ERR_CGROUP. `doing` completes "cannot …". What is no system
 * call's refusal is returned as it is.
 */
export function cgroupError(
  thrown: unknown,
  action: CgroupAction,
  doing: string,
  path: string,
  value: unknown,
): unknown {
  const { errno, code, syscall } = thrown as NodeJS.ErrnoException;
  if (errno === undefined || code === undefined || thrown instanceof NumalignError) return thrown;
  // libuv and the kernel name 95 differently.
  const name = code === 'ENOTSUP' ? 'EOPNOTSUPP' : code;
  const meanings = syscall === 'open' && action !== 'look' ? UNOPENED : { ...UNOPENED, ...MEANINGS[action] };
  const [reason, why, valid] = meanings[name] ?? UNKNOWN;
  const needed = reason === 'no-access' ? 'it takes' : 'valid is';
  return new NumalignError(
    'ERR_CGROUP',
    `cannot ${doing}: ${why} (${name}, ${syscall} ${path}); ${needed} ${valid}`,
    {
      reason,
      errno: -errno,
      syscall,
      path,
      value,
      valid,
      cause: thrown,
    },
  );
}

/** The result of `action`, its refusal as {@link cgroupError}. */
export function attempt<T>(
  action: CgroupAction,
  doing: string,
  path: string,
  value: unknown,
  step: () => T,
): T {
  try {
    return step();
  } catch (error) {
    throw cgroupError(error, action, doing, path, value);
  }
}

/** Runs a step about a process or thread that may have ended, which then is no error. */
export function unlessEnded(step: () => void): void {
  try {
    step();
  } catch (error) {
    if (!(error instanceof NumalignError) || error.errnoName !== 'ESRCH') throw error;
  }
}
