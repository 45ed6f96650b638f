// Checks and freezes requests.
import type { EnforcementLevel, EnforcementRequest } from '../account/levels.js';
import type { Elasticity, MoveConsent } from '../account/pod-assignment.js';
import type { QuietPart, QuietRequest } from '../account/quiet/quiet-request.js';
import { checkOptions, invalidOption, isName, NAME } from '../base/check-options.js';
import { oncePer } from '../base/collections/once-per.js';
import { NumalignError } from '../base/errors.js';
import type { Topology } from '../machine/topology.js';
import { type CpuRange, parseElastic } from './elastic.js';
import { type AimedLevel, parseAim } from './enforcement-options.js';
import { MOVABLE, type MovableOptions, parseMovable } from './movable.js';
import { namesOf } from './option-table.js';
import { type OwnerChoice, parseOwner } from './owner.js';
import { type Placement, parsePlacement } from './placement.js';
import { PLACEMENT_OPTIONS, type RequestPlacementOptions } from './placement-options.js';
import {
  CONTAINER_NAME,
  guaranteedPod,
  isContainerName,
  type PodRequest,
  parsePod,
} from './pods/pod-request.js';
import {
  type ContainerRequest,
  MILLI,
  parseResources,
  type ResourceAmounts,
} from './pods/resource-amounts.js';
import { parseQuiet, parseRequiredQuiet, type QuietOptions } from './quiet.js';
import { isMemoryType } from './values/memory-types.js';
import { option, parseCpuCount, parseMixedCount } from './values/option-values.js';
import type { Quantity } from './values/quantity.js';

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
  owner?: OwnerChoice;
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
   * Memory to book near the CPUs, such as `'2Gi'`. Refused with the memory policy `None`.
   * @default none
   */
  memory?: Quantity;
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

/** The options of {@link Manager.admit} and {@link Manager.plan}. The amounts are in the pod. */
export type AdmitOptions = RequestOptions;

/** CPUs of a grant that only some threads of its process use. */
export interface PartRequest {
  readonly name: string;
  readonly cpu: number;
}

/** A pod to admit, and on what terms. */
export interface AdmissionRequest {
  readonly pod: PodRequest;
  /** The parts of the pod's only container. */
  readonly parts?: readonly PartRequest[];
  readonly owner: OwnerChoice;
  readonly placement: Placement;
  /** Without options that the request leaves out. */
  readonly enforcement: Partial<EnforcementRequest>;
  /** True if the pod runs in this process, which can use only CPUs of its own cpuset. */
  readonly isForCaller: boolean;
  readonly wait: boolean;
  /** The kernel work to keep off its CPUs. */
  readonly quiet?: QuietRequest | undefined;
  /** The parts of `quiet` without which the request is refused. */
  readonly requiredQuiet?: readonly QuietPart[];
  /** True to replace CPUs that the kubelet takes. */
  readonly movesWhenTaken?: boolean | undefined;
  /** The terms of a move that makes room for others; undefined: the grant never moves. */
  readonly movable?: MoveConsent | undefined;
  /** The range of CPUs: the pod requests the least number, and gets more if there is room. */
  readonly elastic?: Elasticity | undefined;
}

/** The names of {@link RequestOptions}. */
export const REQUEST_OPTIONS: readonly string[] = [
  ...namesOf(PLACEMENT_OPTIONS, 'request'),
  ...Object.keys({
    owner: true,
    require: true,
    enforcement: true,
    unmovableMembers: true,
    quiet: true,
    onTaken: true,
    mixed: true,
    movable: true,
    signal: true,
    wait: true,
  } satisfies Record<Exclude<keyof RequestOptions, keyof RequestPlacementOptions>, true>),
];

/** The names of {@link AcquireOptions}. */
export const ACQUIRE_OPTIONS: readonly string[] = [
  ...Object.keys({
    cpu: true,
    weight: true,
    parts: true,
    memory: true,
    resources: true,
    name: true,
    optional: true,
  } satisfies Record<Exclude<keyof AcquireOptions, keyof RequestOptions> | 'optional', true>),
  ...REQUEST_OPTIONS,
];

function parseCommon(options: Record<string, unknown>, placement: Placement) {
  const { signal, wait = false, cpuManagerPolicyOptions } = options;
  const owner = parseOwner(options.owner);
  checkSignal(signal);
  const strict = 'strict-cpu-reservation';
  if (
    typeof cpuManagerPolicyOptions === 'object' &&
    cpuManagerPolicyOptions !== null &&
    strict in cpuManagerPolicyOptions
  ) {
    invalidOption(
      strict,
      (cpuManagerPolicyOptions as Record<string, unknown>)[strict],
      'left out: it is a setting of the machine',
    );
  }
  const requirement = parseRequire(options.require);
  const quiet = parseQuiet(options.quiet);
  return {
    owner,
    quiet,
    requiredQuiet: parseRequiredQuiet(requirement.quiet, quiet),
    wait: option.flag(wait, 'wait'),
    movesWhenTaken: parseOnTaken(options.onTaken, owner),
    isMixed: option.optional(options.mixed, 'mixed', option.flag) ?? false,
    movable: parseMovable(options.movable),
    enforcement: parseAim({ ...options, require: requirement.enforcement }),
    placement: parsePlacement(options, placement),
  } as const;
}

function parseRequire(value: unknown): { enforcement?: unknown; quiet?: unknown } {
  const isObject = typeof value === 'object' && value !== null;
  return isObject ? checkOptions(value, ['enforcement', 'quiet'], 'require') : { enforcement: value };
}

/** The result for a request without options. */
export const NO_OPTIONS: AdmitOptions & Record<string, unknown> = Object.freeze({});

// All requests without options share a result.
const commonOf = oncePer((placement: Placement) => parseCommon(NO_OPTIONS, placement));

function parseOnTaken(value: unknown, owner: OwnerChoice): boolean {
  const isMove = option.optional(value, 'onTaken', (choice, name) =>
    option.oneOf(choice, name, ['keep', 'move']),
  );
  if (isMove !== 'move') return false;
  // numalign cannot confirm that threads of other processes have left.
  if (owner !== 'process') invalidOption('onTaken', value, "'keep' unless the owner is a process");
  return true;
}

const PARTS = 'CPUs by the name of the part, such as { main: 1, io: 1 }';

function parseParts(value: unknown, cpu: number): readonly PartRequest[] {
  if (value instanceof Map) invalidOption('parts', value, PARTS);
  const parts = Object.entries(option.object(value, 'parts', PARTS)).map(([name, count]) => {
    if (!isContainerName(name)) invalidOption('parts', name, `named by ${CONTAINER_NAME}`);
    return Object.freeze({ name, cpu: parseCpuCount(count, `parts.${name}`) });
  });
  const sum = parts.reduce((all, part) => all + part.cpu, 0);
  if (sum >= cpu) {
    const most = cpu === 1 ? 'left out with one CPU' : `at most ${cpu - 1} CPUs in all`;
    invalidOption('parts', value, `${most}: all other threads of the process need one of the ${cpu}`);
  }
  return Object.freeze(parts);
}

/** @throws ERR_INVALID_OPTION */
export function checkSignal(signal: unknown): AbortSignal | undefined {
  return signal === undefined ? signal : option.that(signal, 'signal', isSignal, 'an AbortSignal');
}

const isSignal = (value: unknown): value is AbortSignal => value instanceof AbortSignal;

const OTHER_AMOUNTS = ', a range { min, max }, or with mixed: true an amount such as 2.5';

/** @throws ERR_INVALID_OPTION, ERR_INVALID_QUANTITY */
export function parseAcquire(options: AcquireOptions, placement: Placement): AdmissionRequest {
  const fields = checkOptions(options, ACQUIRE_OPTIONS, 'acquire');
  option.optional(fields.optional, 'optional', option.flag);
  const { isMixed, ...common } = parseCommon(fields, placement);
  const elastic = parseElastic(fields, common.owner);
  const cpu = elastic?.min ?? fields.cpu;
  const milli = isMixed ? parseMixedCount(cpu, 'cpu') : parseCpuCount(cpu, 'cpu', OTHER_AMOUNTS) * MILLI;
  const name = fields.name === undefined ? undefined : option.that(fields.name, 'name', isName, NAME);
  const requests = Object.freeze({ cpu: milli, ...parseResources(fields.memory, fields.resources) });
  const container: ContainerRequest = Object.freeze({ name: 'main', kind: 'app', requests });
  const pod = guaranteedPod({ uid: undefined, name }, container, isMixed);
  if (common.placement.cpuPolicy === 'none') {
    throw new NumalignError(
      'ERR_INVALID_OPTION',
      'acquire needs exclusive CPUs, and the CPU policy none grants none',
      {
        option: 'cpuManagerPolicy',
        value: 'none',
        valid: ['static', 'dynamic'],
      },
    );
  }
  const parts = parseParts(fields.parts ?? {}, Math.floor(milli / MILLI));
  return Object.freeze({ pod, parts, isForCaller: true, elastic, ...common });
}

/**
 * Checks that the parts of a grant with whole cores are whole cores too.
 * @throws ERR_INVALID_OPTION
 */
export function checkParts(
  { parts = [], placement: { fullPhysicalCpusOnly, holdSiblings } }: AdmissionRequest,
  { cpusPerCore }: Topology,
): void {
  if (!fullPhysicalCpusOnly || holdSiblings) return;
  const part = parts.find(({ cpu }) => cpu % cpusPerCore !== 0);
  if (!part) return;
  const valid = `a multiple of ${cpusPerCore}, the threads of a core, with full-pcpus-only`;
  invalidOption(`parts.${part.name}`, part.cpu, valid);
}

/**
 * Checks that a request names only hugepages and resources with registered devices.
 * @throws ERR_INVALID_OPTION
 */
export function checkAcquirable(
  { pod, placement }: AdmissionRequest,
  resources: Iterable<string>,
  isOpen: boolean,
): void {
  const resourceNames = new Set(resources);
  for (const { requests } of pod.containers) {
    const names = Object.keys(requests).filter((name) => name !== 'cpu');
    if (placement.memoryPolicy === 'None' && names.some(isMemoryType)) {
      invalidOption('memory', names, 'left out with the memory policy None, which books no memory');
    }
    const other = names.find((name) => !isMemoryType(name) && !resourceNames.has(name));
    if (other !== undefined && !isOpen) {
      throw new NumalignError(
        'ERR_INVALID_OPTION',
        `resources: ${other} is not registered here; valid are hugepages (such as hugepages-2Mi)${resourceNames.size > 0 ? ` and ${[...resourceNames].join(', ')}` : ''}; register devices with the manager first (devices of openManager, registerDevices)`,
        { option: 'resources', value: other, valid: ['hugepages', ...resourceNames] },
      );
    }
  }
}

function mixedPod(pod: PodRequest): PodRequest {
  // The containers of such a pod share one booking.
  if (pod.resources) invalidOption('mixed', true, 'left out for a pod with resources as a whole');
  return Object.freeze({ ...pod, isMixed: true });
}

/** @throws ERR_INVALID_OPTION, ERR_INVALID_POD, ERR_INVALID_QUANTITY */
export function parseAdmit(pod: unknown, options: AdmitOptions, placement: Placement): AdmissionRequest {
  const fields = checkOptions(options, REQUEST_OPTIONS, 'admit');
  // The unparsed content of a file.
  if (typeof pod === 'string' || pod instanceof Uint8Array) {
    throw new NumalignError('ERR_INVALID_POD', 'the pod must be an object, not text: parse it first', {
      field: 'the pod',
      value: pod,
      valid: 'an object',
    });
  }
  const request = parsePod(pod);
  // Member by member: a spread takes many times as long.
  const common = fields === NO_OPTIONS ? commonOf(placement) : parseCommon(fields, placement);
  const { owner, wait, quiet, requiredQuiet, movesWhenTaken, movable, enforcement } = common;
  return Object.freeze({
    pod: common.isMixed ? mixedPod(request) : request,
    isForCaller: false,
    owner,
    wait,
    quiet,
    requiredQuiet,
    movesWhenTaken,
    movable: fields.movable === undefined && request.isMovable ? MOVABLE : movable,
    enforcement,
    placement: common.placement,
  });
}
