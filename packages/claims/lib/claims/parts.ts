// Parts: what of a claim is granted together, and the request for it. Pure.
import { type AdmitOptions, CpuSet, NodeSet } from 'numalign';
import { invalidOption } from 'numalign/tools';
import type { Topology } from 'numalign/topology';
import { type DeviceIdentity, memoryType } from '../devices/devices.js';
import type { ClaimParameters } from './parameters.js';

/** In amounts, which are billionths. */
export const UNIT = 10n ** 9n;
const MILLI = UNIT / 1000n;

/** A device, or amounts of it, that a scheduler has allocated. */
export interface DeviceResult {
  /** The request, or its alternative. */
  readonly request: string;
  readonly device: DeviceIdentity;
  /** In billionths, by capacity; empty for a device that has one claim. */
  readonly amounts: ReadonlyMap<string, bigint>;
  /** The CPUs that the request asks for, in billionths: the amounts are in steps of the device. */
  readonly asked: bigint | undefined;
}

/** CPUs and memory that are granted together. */
export interface ClaimPart<T extends DeviceResult = DeviceResult> {
  readonly request: string;
  readonly results: readonly T[];
  /** Of all these devices. */
  readonly device: DeviceIdentity;
  /** In billionths, as the scheduler counts them. */
  readonly cpus: bigint;
  /** The CPUs to choose from. */
  readonly within: CpuSet;
  /** True if the scheduler has chosen: it gets all of `within`. */
  readonly isExact: boolean;
  /** Bytes by type, on the NUMA node of the device. */
  readonly memory: Readonly<Record<string, number>>;
}

const isWhole = ({ kind }: DeviceIdentity) => kind === 'core' || kind === 'cpu';

/** Cores and CPUs of a request are one part; of other devices, each is one. */
export function partsOf<T extends DeviceResult>(results: readonly T[]): ClaimPart<T>[] {
  const whole = results.filter(({ device }) => isWhole(device));
  const requests = new Set(whole.map(({ request }) => request));
  return [
    ...results.filter(({ device }) => !isWhole(device)).map(sharedPart),
    ...[...requests].map((request) => wholePart(whole.filter((each) => each.request === request))),
  ];
}

function wholePart<T extends DeviceResult>(results: readonly T[]): ClaimPart<T> {
  const { request, device } = results[0]!;
  const within = results.reduce((all, each) => all.union(each.device.cpus), CpuSet.EMPTY);
  const cpus = BigInt(within.size) * UNIT;
  return { ...{ request, results, device, cpus, within }, isExact: true, memory: {} };
}

function sharedPart<T extends DeviceResult>(result: T): ClaimPart<T> {
  const { request, device, amounts } = result;
  const memory = [...amounts].flatMap(([name, amount]): [string, number][] => {
    const type = memoryType(name);
    return type === undefined || amount === 0n ? [] : [[type, Number(amount / UNIT)]];
  });
  return {
    ...{ request, results: [result], device, isExact: false },
    cpus: device.kind === 'memory' ? 0n : (amounts.get('cpu') ?? 0n),
    within: device.cpus,
    memory: Object.fromEntries(memory),
  };
}

/** What is asked of a manager for a part. */
export interface PartRequest {
  /** Resources by name, as of a container. */
  readonly limits: Readonly<Record<string, number>>;
  /** How many CPUs of them are exclusive. */
  readonly exclusive: number;
  readonly options: AdmitOptions;
}

type CorePlacement = Pick<ClaimParameters, 'cpuManagerPolicyOptions' | 'smt'>;

/** What is in effect where a claim does not say. */
export interface PlacementInEffect {
  readonly manager?: CorePlacement;
  /** Of every request. */
  readonly request?: CorePlacement;
}

/** @throws ERR_INVALID_OPTION if the devices of the part cannot have these parameters */
export function requestFor(
  part: ClaimPart,
  { mixed, movable, ...parameters }: ClaimParameters,
  topology: Topology,
  { manager = {}, request = {} }: PlacementInEffect = {},
): PartRequest {
  const { cpus, isExact, memory, within } = part;
  const step = isOfWholeCores(manager, { ...request, ...parameters }) ? topology.cpusPerCore : 1;
  // A configuration may be for all requests of a claim, and some for memory alone.
  const hasCpus = cpus > 0n;
  const mixedCpu = mixed && hasCpus ? mixedCpus(part, step) : undefined;
  const cpu = mixedCpu ?? Number(cpus) / Number(UNIT);
  return {
    limits: { ...(cpu > 0 && { cpu }), ...memory },
    exclusive: Math.floor(cpu),
    options: {
      policy: isExact ? 'none' : 'single-numa-node',
      ...parameters,
      ...(mixedCpu !== undefined && { mixed }),
      ...(movable && hasCpus && { movable: termsOf(part, movable, topology) }),
      ...{ owner: 'persistent', within: within.toString() },
    },
  };
}

function isOfWholeCores(manager: CorePlacement, request: CorePlacement): boolean {
  const options = { ...manager.cpuManagerPolicyOptions, ...request.cpuManagerPolicyOptions };
  return options['full-pcpus-only'] === true && (request.smt ?? manager.smt) !== 'hold-sibling';
}

/**
 * The scheduler counts the fraction as a whole CPU, which stays in the shared pool. Undefined: the
 * whole CPUs are no whole cores, of `step` threads, and all that the scheduler counts are exclusive.
 */
function mixedCpus({ cpus, isExact, device, results }: ClaimPart, step: number): number | undefined {
  if (isExact)
    invalidOption('mixed', true, `left out for devices ${device.kind}: they have no parts of a CPU`);
  const asked = results[0]!.asked ?? cpus;
  if (asked < UNIT)
    invalidOption('mixed', true, `left out without a whole CPU: ${Number(asked / MILLI)}m are asked for`);
  const least = asked < cpus ? asked : cpus;
  const cpu = Number((least + MILLI - 1n) / MILLI) / 1000;
  return Math.floor(cpu) % step === 0 ? cpu : undefined;
}

// Others would hold what the scheduler has given to this claim there, and it what is theirs.
function termsOf(
  { device: { kind, node } }: ClaimPart,
  movable: NonNullable<ClaimParameters['movable']>,
  { numaNodes }: Topology,
): NonNullable<ClaimParameters['movable']> {
  if (kind !== 'node')
    invalidOption('movable', movable, `left out for devices ${kind}: a move may lead to another one`);
  const terms = movable === true ? {} : movable;
  if (typeof terms === 'object' && terms.exclude !== undefined)
    invalidOption('movable.exclude', terms.exclude, 'left out: claims stay on the NUMA node of their device');
  return { ...(terms as object), exclude: NodeSet.from(numaNodes.filter((each) => each !== node)) };
}
