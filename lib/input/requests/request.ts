// Checks and freezes requests.
import type { EnforcementRequest } from '../../account/levels.js';
import type { Elasticity, MoveConsent, QuietPart, QuietRequest } from '../../account/pod-assignment.js';
import { checkOptions, invalidOption, isName, NAME } from '../../base/check-options.js';
import { oncePer } from '../../base/collections/once-per.js';
import { NumalignError } from '../../base/errors.js';
import { isObject } from '../../base/shapes.js';
import type { CpuSet } from '../../machine/cpu-set.js';
import type { Topology } from '../../machine/topology.js';
import { MANAGER_OPTIONS } from '../config.js';
import { parseAim } from '../enforcement-options.js';
import { STRICT } from '../machine-options.js';
import { type Placement, parsePlacement } from '../placement.js';
import { guaranteedPod, parsePod } from '../pods/pod-request.js';
import type { PodRequest } from '../pods/pod-resources.js';
import { CONTAINER_NAME, isContainerName } from '../pods/pod-spec.js';
import { type ContainerRequest, parseResources } from '../pods/resource-amounts.js';
import { isMemoryType } from '../values/memory-types.js';
import { option, parseCpuCount, parseCpus, parseMixedCount } from '../values/option-values.js';
import { MILLI } from '../values/quantity.js';
import { parseElastic } from './elastic.js';
import { MOVABLE, parseMovable } from './movable.js';
import { parseOwner, type RequestedOwner } from './owner.js';
import { parseQuiet, parseRequiredQuiet } from './quiet.js';
import {
  ACQUIRE_OPTIONS,
  type AcquireOptions,
  ADMIT_OPTIONS,
  type AdmitOptions,
  NO_OPTIONS,
  REQUEST_OPTIONS,
} from './request-options.js';

/** CPUs of a grant that only some threads of its process use. */
export interface PartRequest {
  readonly name: string;
  readonly cpu: number;
}

/** A pod to admit, and on what terms. */
export interface AdmissionRequest {
  readonly pod: PodRequest;
  /** The parts of the pod's only container. */
  readonly parts?: readonly PartRequest[] | undefined;
  readonly owner: RequestedOwner;
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
  /** The only CPUs to choose from; undefined: all. */
  readonly within?: CpuSet | undefined;
  /** True to replace CPUs that the kubelet takes. */
  readonly movesWhenTaken?: boolean | undefined;
  /** The terms of a move that makes room for others; undefined: the grant never moves. */
  readonly movable?: MoveConsent | undefined;
  /** The range of CPUs: the pod requests the least number, and gets more if there is room. */
  readonly elastic?: Elasticity | undefined;
}

// What the options of all requests say.
function parseCommon(options: Record<string, unknown>, placement: Placement) {
  const { signal, wait = false, cpuManagerPolicyOptions: cpuOptions } = options;
  const owner = parseOwner(options.owner);
  checkSignal(signal);
  if (isObject(cpuOptions) && STRICT in cpuOptions)
    invalidOption(STRICT, cpuOptions[STRICT], 'left out: it is a setting of the machine');
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
  return isObject(value) ? checkOptions(value, ['enforcement', 'quiet'], 'require') : { enforcement: value };
}

// All requests without any of these options share a result.
const commonOf = oncePer((placement: Placement) => parseCommon(NO_OPTIONS, placement));

// By name: an option may be an accessor of a class, which is not among the object's keys.
function parseOptions(fields: Record<string, unknown>, placement: Placement) {
  const isAny = REQUEST_OPTIONS.some((name) => fields[name] !== undefined);
  return isAny ? parseCommon(fields, placement) : commonOf(placement);
}

function parseOnTaken(value: unknown, owner: RequestedOwner): boolean {
  const isMove = option.optional(value, 'onTaken', (choice, name) =>
    option.oneOf(choice, name, ['keep', 'move']),
  );
  if (isMove !== 'move') return false;
  // numalign cannot confirm that threads of other processes have left.
  if (owner !== 'process') invalidOption('onTaken', value, "'keep' unless the owner is a process");
  return true;
}

const PARTS = 'CPUs by the name of the part, such as { main: 1, io: 1 }';

function parseParts(value: unknown, cpu: number): readonly PartRequest[] | undefined {
  if (value === undefined || value === null) return undefined;
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

// Memory with tiers is the size and the option memoryTiers.
function withTiers(fields: Record<string, unknown>): Record<string, unknown> {
  const { memory, memoryTiers } = fields;
  if (!isObject(memory)) return fields;
  const { size, tier } = checkOptions(memory, ['size', 'tier'], 'memory');
  for (const [name, value] of Object.entries({ size, tier }))
    if (value === undefined)
      invalidOption(`memory.${name}`, value, "given, as in { size: '1Gi', tier: 'hbm' }");
  if (memoryTiers !== undefined) invalidOption('memoryTiers', memoryTiers, 'left out beside memory.tier');
  return { ...fields, memory: size, memoryTiers: tier };
}

/** @throws ERR_INVALID_OPTION, ERR_INVALID_QUANTITY */
export function parseAcquire(options: AcquireOptions, placement: Placement): AdmissionRequest {
  const checked = checkOptions(options, ACQUIRE_OPTIONS, 'acquire', (key) =>
    MANAGER_OPTIONS.includes(key) ? `openManager({ ${key} })` : undefined,
  );
  const fields = withTiers(checked);
  option.optional(fields.optional, 'optional', option.flag);
  const common = parseOptions(fields, placement);
  const elastic = parseElastic(fields, common.owner);
  const cpu = elastic?.min ?? fields.cpu;
  const { isMixed } = common;
  const milli = isMixed ? parseMixedCount(cpu, 'cpu') : parseCpuCount(cpu, 'cpu', OTHER_AMOUNTS) * MILLI;
  const name = fields.name === undefined ? undefined : option.that(fields.name, 'name', isName, NAME);
  const requests = Object.freeze({ cpu: milli, ...parseResources(fields.memory, fields.resources) });
  const container: ContainerRequest = Object.freeze({ name: 'main', kind: 'app', requests });
  const pod = guaranteedPod({ uid: undefined, name }, container, isMixed);
  if (common.placement.cpuPolicy === 'none') {
    const message = 'acquire needs exclusive CPUs, and the CPU policy none grants none';
    const details = { option: 'cpuManagerPolicy', value: 'none', valid: ['static', 'dynamic'] };
    throw new NumalignError('ERR_INVALID_OPTION', message, details);
  }
  const parts = parseParts(fields.parts, Math.floor(milli / MILLI));
  // The spread is last: members after one make it many times slower.
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

// Guaranteed pods need no such option.
function withExclusive(pod: PodRequest, name: unknown): PodRequest {
  if (name === undefined) return pod;
  const names = pod.containers.map((container) => container.name);
  const exclusiveContainer = option.oneOf(name, 'exclusiveContainer', names);
  if (pod.qosClass !== 'Burstable' || pod.resources)
    invalidOption('exclusiveContainer', name, `left out: the pod is ${pod.qosClass}`);
  return Object.freeze({ ...pod, exclusiveContainer });
}

/** @throws ERR_INVALID_OPTION, ERR_INVALID_POD, ERR_INVALID_QUANTITY */
export function parseAdmit(pod: unknown, options: AdmitOptions, placement: Placement): AdmissionRequest {
  const fields = checkOptions(options, ADMIT_OPTIONS, 'admit');
  // The unparsed content of a file.
  if (typeof pod === 'string' || pod instanceof Uint8Array) {
    const details = { field: 'the pod', value: pod, valid: 'an object' };
    throw new NumalignError(
      'ERR_INVALID_POD',
      'the pod must be an object, not text: parse it first',
      details,
    );
  }
  const request = withExclusive(parsePod(pod), fields.exclusiveContainer);
  const common = parseOptions(fields, placement);
  const isMovable = fields.movable === undefined && request.isMovable;
  return Object.freeze({
    pod: common.isMixed ? mixedPod(request) : request,
    isForCaller: false,
    within: option.optional(fields.within, 'within', parseCpus),
    ...(isMovable ? { ...common, movable: MOVABLE } : common),
  });
}
