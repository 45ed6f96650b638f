// Requests as callers give them -> checked, frozen requests.
import type { EnforcementRequest } from '../account/levels.js';
import type { Elasticity, EnforcementLevel, MoveConsent } from '../account/pod-assignment.js';
import type { QuietPart, QuietRequest } from '../account/quiet/quiet-request.js';
import { checkOptions, invalidOption, isName, NAME } from '../base/check-options.js';
import { NumalignError } from '../base/errors.js';
import type { Topology } from '../machine/topology.js';
import { type CpuRange, parseElastic } from './elastic.js';
import { type AimedLevel, parseAim } from './enforcement-options.js';
import { MOVABLE, type MovableOptions, parseMovable } from './movable.js';
import { type OwnerChoice, parseOwner } from './owner.js';
import { type Placement, parsePlacement } from './placement.js';
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
import type { RequestPlacementOptions } from './policies.js';
import { parseQuiet, parseRequiredQuiet, type QuietOptions } from './quiet.js';
import { isMemoryType } from './values/memory-types.js';
import { option, parseCpuCount, parseMixedCount } from './values/option-values.js';
import type { Quantity } from './values/quantity.js';

/** The options that {@link Manager.acquire}, {@link Manager.admit} and {@link Manager.plan} share. */
export interface RequestOptions extends RequestPlacementOptions {
  /**
   * When the grant ends. `process`: with this process or Worker. `persistent`: when it is released by
   * its uid. `{ cgroup }`, the absolute path of a cgroup's folder: when no process is left in it or
   * below it; there must be one now.
   * @default `process`
   */
  owner?: OwnerChoice;
  /**
   * The weakest enforcement level that you accept, below it the request is ERR_ENFORCEMENT; or `{
   * enforcement, quiet }`, with parts of `quiet` that must be fully reached (else ERR_QUIET).
   * @default `recorded`
   */
  require?: EnforcementLevel | Requirement;
  /**
   * Moves the kernel's own work off the CPUs until the grant ends. `true`: every part but `cache`.
   * {@link Grant.quiet} says what is reached. See docs/quiet.md.
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
   * What happens if the kubelet takes CPUs of the grant, see {@link Manager.recordKubelet}. `keep`: the
   * grant stays and gets the flag CPU_TAKEN. `move`: a manager of this process replaces the CPUs when
   * it reconciles, and the threads follow; without room they only leave the taken CPUs. `move` needs
   * the owner `process`. See docs/kubelet.md.
   * @default `keep`
   */
  onTaken?: 'keep' | 'move';
  /**
   * Makes the whole CPUs of a fractional amount exclusive and books the rest in the shared pool: `2.5`
   * are two exclusive CPUs and half of a shared one. Without it a fraction makes no CPU exclusive.
   * Refused for a pod with resources as a whole. See docs/dynamic.md.
   * @default `false`
   */
  mixed?: boolean;
  /**
   * Consents to a move to other CPUs and memory, on these terms, if that makes room for another
   * request. Its threads, its memory and attached processes move. The owner hears of it first
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
   * Waits until there is room, in the order of arrival over all processes. A request that would not fit
   * the empty machine is rejected at once. Requests without `wait` do not queue. See docs/grants.md.
   * @default `false`
   */
  wait?: boolean;
}

/** The required level, see {@link RequestOptions.require}. */
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
   * How many exclusive CPUs: a whole number from 1. With `mixed`, also a fraction such as 2.5. A range
   * such as `{ min: 2, max: 8 }` gives as many as there are: the grant shrinks for requests and grows
   * again when there is room. It requires that the process is the owner. See docs/dynamic.md.
   * @default required
   */
  cpu: number | CpuRange;
  /**
   * For a range of CPUs: its share beside other ranges, from 1 to 10000. Twice the weight gets twice
   * the CPUs.
   * @default `100`
   */
  weight?: number;
  /**
   * CPUs of the grant for single threads, by part name: `{ main: 1, io: 1 }`. Whole CPUs, whole cores
   * with `full-pcpus-only`, and fewer in all than `cpu`: all other threads share the rest. A name has 1
   * to 63 lower-case letters, digits and inner hyphens. See docs/threads.md.
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
   * A name for people, of 1 to 253 characters. A grant gets the CPUs of the last grant of its name
   * again, if they are free.
   * @default the grant's uid
   */
  name?: string;
}

/** The options of {@link Manager.admit} and {@link Manager.plan}. The pod has the amounts. */
export type AdmitOptions = RequestOptions;

/** CPUs of a grant that some threads of its process are to have alone. */
export interface PartRequest {
  readonly name: string;
  readonly cpu: number;
}

/** A pod that asks to be admitted. */
export interface AdmissionRequest {
  readonly pod: PodRequest;
  /** Of its only container. */
  readonly parts?: readonly PartRequest[];
  readonly owner: OwnerChoice;
  readonly placement: Placement;
  /** Where it says something. */
  readonly enforcement: Partial<EnforcementRequest>;
  /** It runs in this process, so CPUs outside its cpuset are of no use. */
  readonly isForCaller: boolean;
  readonly wait: boolean;
  /** The kernel work to keep off its CPUs. */
  readonly quiet?: QuietRequest | undefined;
  /** Parts of it without which the request is refused. */
  readonly requiredQuiet?: readonly QuietPart[];
  /** It gets others for CPUs that the kubelet takes. */
  readonly movesWhenTaken?: boolean | undefined;
  /** On what terms it may be moved to make room for others; undefined: never. */
  readonly movable?: MoveConsent | undefined;
  /** It asks for its least CPUs, and gets as many more as there is room for. */
  readonly elastic?: Elasticity | undefined;
}

/** The names of {@link RequestOptions}. */
export const REQUEST_OPTIONS = [
  'owner',
  'policy',
  'scope',
  'cpuManagerPolicyOptions',
  'topologyManagerPolicyOptions',
  'initContainerLookahead',
  'strictHugepages',
  'placement',
  'smt',
  'require',
  'enforcement',
  'unmovableMembers',
  'quiet',
  'isolation',
  'onTaken',
  'mixed',
  'movable',
  'signal',
  'wait',
] as const satisfies readonly (keyof RequestOptions)[];

/** The names of {@link AcquireOptions}. */
export const ACQUIRE_OPTIONS = [
  'cpu',
  'weight',
  'parts',
  'memory',
  'resources',
  'name',
  'optional',
  ...REQUEST_OPTIONS,
] as const satisfies readonly (keyof AcquireOptions | 'optional')[];

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
  const required = parseRequire(options.require);
  const quiet = parseQuiet(options.quiet);
  return {
    owner,
    quiet,
    requiredQuiet: parseRequiredQuiet(required.quiet, quiet),
    wait: option.flag(wait, 'wait'),
    movesWhenTaken: parseOnTaken(options.onTaken, owner),
    isMixed: option.optional(options.mixed, 'mixed', option.flag) ?? false,
    movable: parseMovable(options.movable),
    enforcement: parseAim({ ...options, require: required.enforcement }),
    placement: parsePlacement(options, placement),
  } as const;
}

function parseRequire(value: unknown): { enforcement?: unknown; quiet?: unknown } {
  const isObject = typeof value === 'object' && value !== null;
  return isObject ? checkOptions(value, ['enforcement', 'quiet'], 'require') : { enforcement: value };
}

/** The result for a request without options. */
export const NO_OPTIONS: AdmitOptions & Record<string, unknown> = Object.freeze({});

const commons = new WeakMap<Placement, ReturnType<typeof parseCommon>>();

// The same for all requests without options.
function commonOf(placement: Placement): ReturnType<typeof parseCommon> {
  let common = commons.get(placement);
  if (!common) {
    common = parseCommon(NO_OPTIONS, placement);
    commons.set(placement, common);
  }
  return common;
}

function parseOnTaken(value: unknown, owner: OwnerChoice): boolean {
  const isMove = option.optional(value, 'onTaken', (given, name) =>
    option.oneOf(given, name, ['keep', 'move']),
  );
  if (isMove !== 'move') return false;
  // numalign cannot confirm that threads of other processes have left.
  if (owner !== 'process') invalidOption('onTaken', value, "'keep' where the owner is no process");
  return true;
}

const PARTS = 'CPUs by the name of the part, such as { main: 1, io: 1 }';

function parseParts(given: unknown, cpu: number): readonly PartRequest[] {
  if (given instanceof Map) invalidOption('parts', given, PARTS);
  const parts = Object.entries(option.object(given, 'parts', PARTS)).map(([name, count]) => {
    if (!isContainerName(name)) invalidOption('parts', name, `named by ${CONTAINER_NAME}`);
    return Object.freeze({ name, cpu: parseCpuCount(count, `parts.${name}`) });
  });
  const sum = parts.reduce((all, part) => all + part.cpu, 0);
  if (sum >= cpu) {
    const most = cpu === 1 ? 'left out with one CPU' : `at most ${cpu - 1} CPUs in all`;
    invalidOption('parts', given, `${most}: all other threads of the process need one of the ${cpu}`);
  }
  return Object.freeze(parts);
}

/** @throws ERR_INVALID_OPTION */
export function checkSignal(signal: unknown): AbortSignal | undefined {
  return signal === undefined ? signal : option.that(signal, 'signal', isSignal, 'an AbortSignal');
}

const isSignal = (value: unknown): value is AbortSignal => value instanceof AbortSignal;

/** @throws ERR_INVALID_OPTION, ERR_INVALID_QUANTITY */
export function parseAcquire(options: AcquireOptions, placement: Placement): AdmissionRequest {
  const given = checkOptions(options, ACQUIRE_OPTIONS, 'acquire');
  option.optional(given.optional, 'optional', option.flag);
  const { isMixed, ...common } = parseCommon(given, placement);
  const elastic = parseElastic(given, common.owner);
  const cpu = elastic?.min ?? given.cpu;
  const milli = isMixed ? parseMixedCount(cpu, 'cpu') : parseCpuCount(cpu, 'cpu') * MILLI;
  const name = given.name === undefined ? undefined : option.that(given.name, 'name', isName, NAME);
  const requests = Object.freeze({ cpu: milli, ...parseResources(given.memory, given.resources) });
  const container: ContainerRequest = Object.freeze({ name: 'main', kind: 'app', requests });
  const pod = guaranteedPod({ uid: undefined, name }, container, isMixed);
  if (common.placement.cpuPolicy === 'none') {
    throw new NumalignError(
      'ERR_INVALID_OPTION',
      'acquire takes exclusive CPUs, which the CPU policy none never grants',
      {
        option: 'cpuManagerPolicy',
        value: 'none',
        valid: ['static', 'dynamic'],
      },
    );
  }
  const parts = parseParts(given.parts ?? {}, Math.floor(milli / MILLI));
  return Object.freeze({ pod, parts, isForCaller: true, elastic, ...common });
}

/**
 * Parts are whole cores where a grant is.
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
 * A request names what it needs: hugepages, and resources with registered devices.
 * @throws ERR_INVALID_OPTION
 */
export function checkAcquirable(
  { pod, placement }: AdmissionRequest,
  resources: Iterable<string>,
  isOpen: boolean,
): void {
  const known = new Set(resources);
  for (const { requests } of pod.containers) {
    const names = Object.keys(requests).filter((name) => name !== 'cpu');
    if (placement.memoryPolicy === 'None' && names.some(isMemoryType)) {
      invalidOption('memory', names, 'left out with the memory policy None, which books no memory');
    }
    const unknown = names.find((name) => !isMemoryType(name) && !known.has(name));
    if (unknown !== undefined && !isOpen) {
      throw new NumalignError(
        'ERR_INVALID_OPTION',
        `resources: ${unknown} is not registered here; there are hugepages (such as hugepages-2Mi)${known.size > 0 ? ` and ${[...known].join(', ')}` : ''}, and devices are registered with the manager first (devices of openManager, registerDevices)`,
        { option: 'resources', value: unknown, valid: ['hugepages', ...known] },
      );
    }
  }
}

function mixedPod(pod: PodRequest): PodRequest {
  // Its containers share a whole that is booked as one.
  if (pod.resources) invalidOption('mixed', true, 'left out for a pod with resources as a whole');
  return Object.freeze({ ...pod, isMixed: true });
}

/** @throws ERR_INVALID_OPTION, ERR_INVALID_POD, ERR_INVALID_QUANTITY */
export function parseAdmit(pod: unknown, options: AdmitOptions, placement: Placement): AdmissionRequest {
  const given = checkOptions(options, REQUEST_OPTIONS, 'admit');
  // What a file was read into.
  if (typeof pod === 'string' || pod instanceof Uint8Array) {
    throw new NumalignError('ERR_INVALID_POD', 'the pod must be an object, not text: parse it first', {
      field: 'the pod',
      value: pod,
      valid: 'an object',
    });
  }
  const parsed = parsePod(pod);
  // Member by member: to add what is spread takes many times as long.
  const common = given === NO_OPTIONS ? commonOf(placement) : parseCommon(given, placement);
  const { owner, wait, quiet, requiredQuiet, movesWhenTaken, movable, enforcement } = common;
  return Object.freeze({
    pod: common.isMixed ? mixedPod(parsed) : parsed,
    isForCaller: false,
    owner,
    wait,
    quiet,
    requiredQuiet,
    movesWhenTaken,
    movable: given.movable === undefined && parsed.isMovable ? MOVABLE : movable,
    enforcement,
    placement: common.placement,
  });
}
