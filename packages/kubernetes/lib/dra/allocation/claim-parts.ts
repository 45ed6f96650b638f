// ClaimParts: an allocated claim -> its parts, each of which is a grant. Pure.
import { CpuSet } from 'numalign';
import { parseQuantity } from 'numalign/tools';
import type { Topology } from 'numalign/topology';
import { NodeError } from '../../base/errors.js';
import { type DeviceIdentity, deviceNamed, memoryType } from '../devices.js';
import type { AllocatedClaim, AllocationResult } from './allocated-claim.js';
import { type ClaimParameters, parametersOf } from './parameters.js';

/** CPUs and memory that are granted together. */
export interface ClaimPart {
  readonly request: string;
  readonly results: readonly AllocationResult[];
  readonly cpuCount: number;
  /** The CPUs to choose from. */
  readonly within: CpuSet;
  /** True if the scheduler has chosen: it gets all of `within`. */
  readonly isExact: boolean;
  /** Bytes by type, on {@link node}. */
  readonly memory: Readonly<Record<string, number>>;
  readonly node: number;
  readonly parameters: ClaimParameters;
}

// Of parseQuantity.
const UNIT = 10n ** 9n;

interface AllocatedDevice {
  readonly result: AllocationResult;
  readonly identity: DeviceIdentity;
}

const isWhole = ({ kind }: DeviceIdentity) => kind === 'core' || kind === 'cpu';

/**
 * Cores and CPUs of a request are one part; of other devices, each is one.
 * @throws ERR_CLAIM_DEVICE if the machine has no such device; ERR_CLAIM_AMOUNT; ERR_CLAIM_PARAMETERS
 */
export function claimParts(claim: AllocatedClaim, topology: Topology, driver: string): ClaimPart[] {
  const devices = claim.results.map((result) => ({ result, identity: identityOf(result, topology) }));
  const whole = devices.filter(({ identity }) => isWhole(identity));
  const requests = new Set(whole.map(({ result }) => result.request));
  const parameters = (request: string) => parametersOf(driver, claim.configs, request);
  return [
    ...devices
      .filter(({ identity }) => !isWhole(identity))
      .map((device) => sharedPart(device, parameters(device.result.request))),
    ...[...requests].map((request) => {
      const own = whole.filter(({ result }) => result.request === request);
      return wholePart(request, own, parameters(request));
    }),
  ];
}

// Devices of a machine are known by name; a changed machine is another object.
const known = new WeakMap<Topology, Map<string, DeviceIdentity>>();

function identityOf({ device }: AllocationResult, topology: Topology): DeviceIdentity {
  const names = known.get(topology) ?? new Map<string, DeviceIdentity>();
  known.set(topology, names);
  const identity = names.get(device) ?? deviceNamed(topology, device);
  if (identity) names.set(device, identity);
  if (identity) return identity;
  throw new NodeError('ERR_CLAIM_DEVICE', `this machine has no device ${device} now`, {
    value: device,
    valid: "a device of the node's ResourceSlices",
  });
}

function wholePart(
  request: string,
  devices: readonly AllocatedDevice[],
  parameters: ClaimParameters,
): ClaimPart {
  const within = devices.reduce((all, { identity }) => all.union(identity.cpus), CpuSet.EMPTY);
  return {
    ...{ request, parameters, within, isExact: true, cpuCount: within.size },
    results: devices.map(({ result }) => result),
    memory: {},
    node: devices[0]!.identity.node,
  };
}

function sharedPart({ result, identity }: AllocatedDevice, parameters: ClaimParameters): ClaimPart {
  const { request, device, amounts } = result;
  if (!amounts)
    throw new NodeError('ERR_CLAIM_AMOUNT', `the scheduler does not say how much of ${device} it is`, {
      value: request,
      valid: 'a cluster with the feature gate DRAConsumableCapacity',
    });
  // Names may be qualified with the domain of the driver.
  const entries = Object.entries(amounts).map(([name, value]): [string, bigint] => {
    const short = name.slice(name.indexOf('/') + 1);
    return [short, parseQuantity(value, `${device}.${short}`)];
  });
  const memory = entries.flatMap(([name, nanos]): [string, number][] => {
    const type = memoryType(name);
    return type === undefined || nanos === 0n ? [] : [[type, Number(nanos / UNIT)]];
  });
  const cpuCount = identity.kind === 'memory' ? 0 : countOf(Object.fromEntries(entries).cpu ?? 0n, device);
  if (cpuCount === 0 && memory.length === 0)
    throw new NodeError('ERR_CLAIM_AMOUNT', `the claim has nothing of ${device}`, {
      value: amounts,
      valid: 'an amount of CPUs or memory',
    });
  return {
    ...{ request, parameters, cpuCount, within: identity.cpus, isExact: false },
    results: [result],
    memory: Object.fromEntries(memory),
    node: identity.node,
  };
}

function countOf(nanos: bigint, device: string): number {
  if (nanos >= 0n && nanos % UNIT === 0n) return Number(nanos / UNIT);
  throw new NodeError('ERR_CLAIM_AMOUNT', `the claim has a part of a CPU of ${device}`, {
    value: Number(nanos) / Number(UNIT),
    valid: 'whole CPUs',
  });
}
