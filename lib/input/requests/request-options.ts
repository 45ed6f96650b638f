// The options of requests, and their names.
import type { EnforcementLevel } from '../../account/levels.js';
import type { QuietPart } from '../../account/pod-assignment.js';
import type { CpuSet } from '../../machine/cpu-set.js';
import type { AimedLevel } from '../enforcement-options.js';
import { namesOf } from '../option-table.js';
import { PLACEMENT_OPTIONS, type RequestPlacementOptions } from '../placement-options.js';
import type { ResourceAmounts } from '../pods/resource-amounts.js';
import { allOf } from '../values/option-values.js';
import type { Quantity } from '../values/quantity.js';
import type { CpuRange } from './elastic.js';
import type { MovableOptions } from './movable.js';
import type { RequestedOwner } from './owner.js';
import type { QuietOptions } from './quiet.js';

/**
 * The options that {@link Manager.acquire}, {@link Manager.admit} and {@link Manager.plan} share.
 */
export interface RequestOptions extends RequestPlacementOptions {
  /**
   * When the grant ends. `process`: with this process or Worker. `persistent`: when it is released
   * by its uid. `{ cgroup }`, the absolute path of a cgroup's folder: when no process is left in
   * the cgroup or below it. The cgroup must have a process now.
   * @default `process`
   */
  owner?: RequestedOwner;
  /**
   * The weakest enforcement level that you accept: a lower one is ERR_ENFORCEMENT. Or
   * `{ enforcement, quiet }`, with parts of `quiet` that must be fully reached: else the request is
   * ERR_QUIET.
   * @default `recorded`
   */
  require?: EnforcementLevel | Requirement;
  /**
   * Moves the kernel's own work off the CPUs until the grant ends. `true`: every part except
   * `cache`. {@link Grant.quiet} shows what is reached. See docs/quiet.md.
   * @default `false`
   */
  quiet?: boolean | QuietOptions;
  /**
   * The strongest enforcement level to aim at, not below `require`.
   * @default the manager's; `isolated` if that is required
   */
  enforcement?: AimedLevel;
  /**
   * Like {@link ManagerOptions.unmovableMembers}.
   * @default the manager's
   */
  unmovableMembers?: 'fail' | 'report';
  /**
   * What happens if the kubelet takes CPUs of the grant, see {@link Manager.recordKubelet}. `keep`:
   * the grant stays and gets the flag CPU_TAKEN. `move`: a manager of this process replaces the
   * CPUs when it reconciles, and the threads follow; without room they only leave the taken CPUs.
   * `move` needs the owner `process`. See docs/kubelet.md.
   * @default `keep`
   */
  onTaken?: 'keep' | 'move';
  /**
   * Makes the whole CPUs of a fractional amount exclusive and books the rest in the shared pool:
   * `2.5` stands for two exclusive CPUs and half of a shared one. Without this option, a fractional
   * amount gets no exclusive CPU. Refused for a pod with resources as a whole. See docs/dynamic.md.
   * @default `false`
   */
  mixed?: boolean;
  /**
   * Consents to a move to other CPUs and memory, on these terms, if that makes room for another
   * request. The grant's threads, memory and attached processes move. The owner gets a notice first
   * ({@link Grant.on}). No grant moves without consent. See docs/grants.md.
   * @default `false`; for a manifest its annotation `numalign.io/movable`
   */
  movable?: boolean | MovableOptions;
  /**
   * Aborts the wait for the lock of the state and, with `wait`, for room.
   * @default none
   */
  signal?: AbortSignal;
  /**
   * Waits until there is room, in the order of arrival over all processes. A request that would not
   * fit the empty machine is rejected at once. Requests without `wait` do not queue. See
   * docs/grants.md.
   * @default `false`
   */
  wait?: boolean;
}

/** What a request requires, see {@link RequestOptions.require}. */
export interface Requirement {
  /** The weakest level that you accept, else ERR_ENFORCEMENT; by default `recorded`. */
  readonly enforcement?: EnforcementLevel;
  /** Parts that must be fully reached, else ERR_QUIET; by default none. */
  readonly quiet?: readonly QuietPart[];
}

/**
 * The options of {@link Manager.acquire}, which requests a Guaranteed pod of one container. With
 * `optional: true`, it returns an {@link EmptyGrant} if there is no room, instead of throwing.
 */
export interface AcquireOptions extends RequestOptions {
  /**
   * How many exclusive CPUs: a whole number from 1. With `mixed`, also a fraction such as 2.5. A
   * range such as `{ min: 2, max: 8 }` gives as many as are free: the grant shrinks for requests
   * and grows again when there is room. It requires that the process is the owner. See
   * docs/dynamic.md.
   * @default required
   */
  cpu: number | CpuRange;
  /**
   * For a range of CPUs: its share relative to other ranges, from 1 to 10000. Twice the weight gets
   * twice the CPUs.
   * @default `100`
   */
  weight?: number;
  /**
   * CPUs of the grant for single threads, by part name: `{ main: 1, io: 1 }`. Parts are whole CPUs,
   * with `full-pcpus-only` whole cores. They have fewer CPUs in all than `cpu`: all other threads
   * share the rest. A name has 1 to 63 lower-case letters, digits and inner hyphens. See
   * docs/threads.md.
   * @default none
   */
  parts?: Readonly<Record<string, number>>;
  /**
   * Memory to book near the CPUs, such as `'2Gi'`, or with the tiers that are accepted, in order:
   * `{ size: '64Gi', tier: ['hbm', 'dram'] }`. Refused with the memory policy `None`.
   * @default none
   */
  memory?: Quantity | TieredMemory;
  /**
   * Hugepages and devices by resource: `{ 'hugepages-2Mi': '64Mi', 'example.com/nic': 1 }`. Each
   * resource must be registered here.
   * @default none
   */
  resources?: ResourceAmounts;
  /**
   * A name for people, of 1 to 253 characters. If they are free, a grant gets the CPUs of the
   * previous grant of its name.
   * @default the grant's uid
   */
  name?: string;
}

/** Memory of some tiers, see {@link AcquireOptions.memory}. */
export interface TieredMemory {
  /** How much. */
  readonly size: Quantity;
  /** As {@link RequestPlacementOptions.memoryTiers}. */
  readonly tier: NonNullable<RequestPlacementOptions['memoryTiers']>;
}

/** The options of {@link Manager.admit} and {@link Manager.plan}. The amounts are in the pod. */
export interface AdmitOptions extends RequestOptions {
  /**
   * A container of a Burstable pod that gets exclusive CPUs, as many as it requests, if that is a
   * whole number. The pod's other containers and its memory are shared. The kubelet has no such option.
   * @default none
   */
  exclusiveContainer?: string;
  /**
   * The only CPUs to choose exclusive ones from, as a CpuSet or a list such as `'4-7'`. The shared
   * pool stays whole.
   * @default all
   */
  within?: CpuSet | string;
}

/** The names of {@link RequestOptions}. */
export const REQUEST_OPTIONS: readonly string[] = [
  ...namesOf(PLACEMENT_OPTIONS, 'request'),
  ...allOf<Exclude<keyof RequestOptions, keyof RequestPlacementOptions>>()([
    'owner',
    'require',
    'enforcement',
    'unmovableMembers',
    'quiet',
    'onTaken',
    'mixed',
    'movable',
    'signal',
    'wait',
  ]),
];

/** The names of {@link AdmitOptions}. */
export const ADMIT_OPTIONS: readonly string[] = [...REQUEST_OPTIONS, 'exclusiveContainer', 'within'];

/** The names of {@link AcquireOptions}. */
export const ACQUIRE_OPTIONS: readonly string[] = [
  ...allOf<Exclude<keyof AcquireOptions, keyof RequestOptions> | 'optional'>()([
    'cpu',
    'weight',
    'parts',
    'memory',
    'resources',
    'name',
    'optional',
  ]),
  ...REQUEST_OPTIONS,
];

/** The options of a request without any. */
export const NO_OPTIONS: AdmitOptions & Record<string, unknown> = Object.freeze({});
