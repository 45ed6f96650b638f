// ClaimParts: an allocated claim -> its parts, each of which is a grant. Pure.
import { parseQuantity } from 'numalign/tools';
import type { Topology } from 'numalign/topology';
import { NodeError } from '../../base/errors.js';
import {
  type ClaimParameters,
  type DeviceIdentity,
  type DeviceResult,
  deviceNamed,
  type ClaimPart as Part,
  type PartRequest,
  type PlacementInEffect,
  parametersOf,
  partsOf,
  requestFor,
  UNIT,
} from '../devices.js';
import type { AllocatedClaim, AllocationResult } from './allocated-claim.js';

interface AllocatedDevice extends DeviceResult {
  readonly result: AllocationResult;
}

/** CPUs and memory that are granted together, and the request for them. */
export interface ClaimPart extends Part<AllocatedDevice>, PartRequest {
  readonly parameters: ClaimParameters;
}

/**
 * @throws ERR_CLAIM_DEVICE if the machine has no such device, or it is for an administrator;
 *   ERR_CLAIM_AMOUNT; ERR_CLAIM_PARAMETERS
 */
export function claimParts(
  claim: AllocatedClaim,
  topology: Topology,
  driver: string,
  inEffect: PlacementInEffect = {},
): ClaimPart[] {
  const { results, configs } = claim;
  return partsOf(results.map((result) => allocatedDevice(result, topology))).map((part) => {
    checkAmounts(part);
    return checked(() => {
      const parameters = parametersOf(driver, configs, part.request);
      return { ...part, ...requestFor(part, parameters, topology, inEffect), parameters };
    });
  });
}

function checked<T>(parse: () => T): T {
  try {
    return parse();
  } catch (cause) {
    const { message, details } = cause as Error & { details?: { value?: unknown; valid?: unknown } };
    throw new NodeError('ERR_CLAIM_PARAMETERS', `the parameters of the claim: ${message}`, {
      ...{ value: details?.value, valid: details?.valid, cause },
    });
  }
}

// Devices of a machine are known by name; a changed machine is another object.
const known = new WeakMap<Topology, Map<string, DeviceIdentity>>();

function identityOf(device: string, topology: Topology): DeviceIdentity {
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

function allocatedDevice(result: AllocationResult, topology: Topology): AllocatedDevice {
  const { request, device, isAdmin, asked } = result;
  if (isAdmin)
    throw new NodeError('ERR_CLAIM_DEVICE', `the claim asks for ${device} with adminAccess`, {
      value: request,
      valid: 'left out: CPUs have nothing to administrate',
    });
  return {
    ...{ request, result, device: identityOf(device, topology), amounts: amountsOf(result) },
    asked: asked === undefined ? undefined : parseQuantity(asked, `${device}.cpu`),
  };
}

// Names may be qualified with the domain of the driver.
const amountsOf = ({ device, amounts = {} }: AllocationResult): ReadonlyMap<string, bigint> =>
  new Map(
    Object.entries(amounts).map(([name, value]) => {
      const short = name.slice(name.indexOf('/') + 1);
      return [short, parseQuantity(value, `${device}.${short}`)];
    }),
  );

function checkAmounts({ request, isExact, results, cpus, memory }: Part<AllocatedDevice>): void {
  if (isExact) return;
  const { device, amounts } = results[0]!.result;
  if (!amounts)
    throw new NodeError('ERR_CLAIM_AMOUNT', `the scheduler does not say how much of ${device} it is`, {
      value: request,
      valid: 'a cluster with the feature gate DRAConsumableCapacity',
    });
  if (cpus < 0n || cpus % UNIT !== 0n)
    throw new NodeError('ERR_CLAIM_AMOUNT', `the claim has a part of a CPU of ${device}`, {
      value: Number(cpus) / Number(UNIT),
      valid: 'whole CPUs',
    });
  if (cpus === 0n && Object.keys(memory).length === 0)
    throw new NodeError('ERR_CLAIM_AMOUNT', `the claim has nothing of ${device}`, {
      value: amounts,
      valid: 'an amount of CPUs or memory',
    });
}
