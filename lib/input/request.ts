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

/** What {@link Manager.acquire} and {@link Manager.admit} both take. */
export interface RequestOptions extends RequestPlacementOptions {
  /**
   * `process` (default): the grant ends with this process or Worker. `persistent`: it stays until
   * released by its id. `{ cgroup }`, the absolute path of a cgroup's folder: it ends when no
   * process is in the cgroup or below it any more; one must be when it is made.
   */
  owner?: OwnerChoice;
  /**
   * The weakest level of enforcement that will do, or that and the parts of `quiet` that must be
   * reached wholly: `{ enforcement: 'partition', quiet: ['interrupts'] }`. Where it cannot be had the
   * request is refused. Default: recorded.
   */
  require?: EnforcementLevel | Requirement;
  /**
   * What the kernel does on the CPUs besides running threads goes elsewhere, and comes back when the
   * grant ends; {@link Grant.quiet} says what was reached. `true`: all parts but `cache`. Default:
   * false.
   */
  quiet?: boolean | QuietOptions;
  /** The strongest level that is aimed at. Default: the manager's. */
  enforcement?: AimedLevel;
  /** Default: the manager's. */
  unmovableMembers?: 'fail' | 'report';
  /**
   * What happens where the kubelet takes CPUs that the grant has, see {@link Manager.recordKubelet}.
   * `keep` (default): it stays where it is, and is flagged CPU_TAKEN. `move`: a manager of this
   * process gives it as many others in its rounds (`cpuManagerReconcilePeriod` above 0, or by
   * {@link Manager.reconcile}), and its threads follow; where there is no room they leave what is
   * taken. Only where the process is the owner.
   */
  onTaken?: 'keep' | 'move';
  /**
   * Of a fractional amount of CPU the whole CPUs are exclusive, and the rest is booked in the shared
   * pool: `2.5` are two CPUs and half of a shared one. Of a pod it holds for containers that may have
   * exclusive CPUs. Default: false, and a fraction makes nothing exclusive.
   */
  mixed?: boolean;
  /**
   * Consent to be moved to other CPUs and memory, on the terms given, where that makes room for
   * another request: its threads, the pages of its processes, and the processes that are attached to
   * it. Its owner hears of it before ({@link Grant.on}), and no grant is moved without. Default: false;
   * of a manifest what its annotation `numalign.io/movable` says.
   */
  movable?: boolean | MovableOptions;
  /** Gives up waiting: for the state's lock, and with `wait` for room. */
  signal?: AbortSignal;
  /**
   * Where there is no room now, wait until there is: first come first served among all who wait, in
   * whatever process. Whoever does not wait does not queue either. What could not be had on the
   * empty machine is rejected at once. Default: false.
   */
  wait?: boolean;
}

/** What a request does not go without; see {@link RequestOptions.require}. */
export interface Requirement {
  readonly enforcement?: EnforcementLevel;
  readonly quiet?: readonly QuietPart[];
}

/**
 * What {@link Manager.acquire} takes: a Guaranteed pod of one container. Placement options left out
 * are the manager's.
 */
export interface AcquireOptions extends RequestOptions {
  /**
   * How many exclusive CPUs: a whole number of at least 1; with `mixed` any such as 2.5. Or a range
   * such as `{ min: 2, max: 8 }`, by which the grant grows and shrinks by itself: as many as there is
   * room for; it gives some up where others ask, and has more again where there is room
   * (`resize` of {@link GrantEvents}). Only where the process is the owner.
   */
  cpu: number | CpuRange;
  /**
   * Of a range of CPUs, from 1 to 10000: of two such grants between their bounds one of twice the
   * weight has twice as many. Default: 100.
   */
  weight?: number;
  /**
   * Some of the CPUs for single threads of the process each, such as `{ main: 1, io: 1 }`: by name, of
   * 1 to 63 small letters, digits and inner hyphens, whole CPUs. Fewer in all than `cpu`: what they
   * leave is for all other threads. Default: none.
   */
  parts?: Readonly<Record<string, number>>;
  /**
   * Memory near the CPUs, such as `'2Gi'`: booked, so that others who ask are placed elsewhere.
   * Default: none.
   */
  memory?: Quantity;
  /**
   * Hugepages and devices by the name of the resource, such as `{ 'hugepages-2Mi': '64Mi',
   * 'example.com/nic': 1 }`.
   */
  resources?: ResourceAmounts;
  /**
   * For people, and for the next one: where the CPUs that the last grant of this name had are free,
   * they are given again. Default: the grant's id.
   */
  name?: string;
}

/**
 * What {@link Manager.admit} takes beside the pod. Placement options left out are the manager's.
 */
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
  /** What it is to have kept away from its CPUs besides other threads. */
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

/** Of what leaves everything to the manager. */
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
  // Of threads of others nobody could tell that they have left.
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
      'acquire takes exclusive CPUs, which the CPU policy none gives to nobody',
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
 * Whoever acquires wants what he names: hugepages, and resources that somebody gives out.
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
      invalidOption('memory', names, 'left out with the memory policy None, which books it for nobody');
    }
    const unknown = names.find((name) => !isMemoryType(name) && !known.has(name));
    if (unknown !== undefined && !isOpen) {
      throw new NumalignError(
        'ERR_INVALID_OPTION',
        `resources: nobody gives out ${unknown} here; there are hugepages (such as hugepages-2Mi)${known.size > 0 ? ` and ${[...known].join(', ')}` : ''}, and devices are registered with the manager first (devices of openManager, registerDevices)`,
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
