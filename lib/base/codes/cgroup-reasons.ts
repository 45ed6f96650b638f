// CgroupReason: why an operation on a cgroup failed. Types only: nothing is loaded at runtime.

/** Why a cgroup operation failed, for programs: `details.reason`. */
export type CgroupReason =
  /** Not a possible path or name of a cgroup. */
  | 'bad-path'
  | 'bad-name'
  /** No visible hierarchy has the cpuset controller. */
  | 'none'
  | 'missing'
  | 'readonly'
  | 'no-access'
  /** Inside a systemd unit without delegation, or the unit itself. */
  | 'systemd-unit'
  /** Only the owner of the cgroup above may do this. */
  | 'not-delegated'
  /** This version of cgroups does not support it. */
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
