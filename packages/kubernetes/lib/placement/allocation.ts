// Allocation: CPUs that the device plugin has booked before the container is known. Environment
// variables carry the grant from the device plugin's answer to the creation of the container. Pure.
import { CpuSet } from 'numalign';
import { NodeError } from '../base/errors.js';

/** The uid of the grant. */
export const ALLOCATION_VARIABLE = 'NUMALIGN_ALLOCATION';
/** The CPUs in Linux list format. */
export const CPUS_VARIABLE = 'NUMALIGN_CPUS';
/** Those of them that kernel work may use. */
export const HOUSEKEEPING_VARIABLE = 'NUMALIGN_HOUSEKEEPING_CPUS';
/** The uid of a container's own grant. */
export const GRANT_VARIABLE = 'NUMALIGN_GRANT';
/** `resource=id` of each device, separated by commas. */
export const DEVICES_VARIABLE = 'NUMALIGN_DEVICES';

/** A container in the kubelet's terms. */
export interface AllocatedContainer {
  readonly podUid: string;
  readonly name: string;
}

/**
 * Records an allocation again whose grant has ended although its pod goes on. False if the kubelet
 * has not assigned these devices to this container.
 */
export type RestoreAllocation = (
  allocation: AllocationEnvironment,
  container: AllocatedContainer,
) => Promise<boolean>;

const PREFIX = 'device-plugin:';
// A pod's init containers leave their devices to later containers.
const MOST_UIDS = 64;

/** The known part of a grant. */
export interface NamedGrant {
  readonly name: string;
}

/** The content of an allocation grant's name. */
export interface AllocationName {
  /** For example `numalign.io/cpu`. */
  readonly resource: string;
  /** The ids of the allocations that the grant stands for, the newest last. */
  readonly uids: readonly string[];
}

/** The name of a grant that stands for these allocations, or the newest of them. */
export function allocationName({ resource, uids }: AllocationName): string {
  return `${PREFIX}${resource}:${uids.slice(-MOST_UIDS).join('+')}`;
}

/** Undefined if it is not an allocation of a device plugin. */
export function parseAllocationName(name: string): AllocationName | undefined {
  if (!name.startsWith(PREFIX)) return undefined;
  const [resource, uids, ...rest] = name.slice(PREFIX.length).split(':');
  if (!resource || !uids || rest.length > 0) return undefined;
  return { resource, uids: uids.split('+') };
}

/** Whether a grant is the device plugin's allocation of a resource. */
export function isAllocation({ name }: NamedGrant, resource: string): boolean {
  return parseAllocationName(name)?.resource === resource;
}

/** Whether a container has an allocation's grant: then its pod's cgroup owns the grant. */
export function isClaimed({ owner }: { readonly owner: { readonly kind: string } }): boolean {
  return owner.kind === 'cgroup';
}

/** The allocation in a container's environment. */
export interface AllocationEnvironment {
  readonly uid: string;
  readonly cpus: CpuSet;
}

/** The environment of a container with an allocation. */
export function allocationEnvironment({ uid, cpus }: AllocationEnvironment): Record<string, string> {
  return { [CPUS_VARIABLE]: cpus.toString(), [ALLOCATION_VARIABLE]: uid };
}

function valueIn(environment: readonly string[], variable: string): string | undefined {
  const prefix = `${variable}=`;
  const found = environment.filter((each) => each.startsWith(prefix));
  const values = new Set(found.map((each) => each.slice(prefix.length)));
  if (values.size <= 1) return [...values][0];
  // A pod's own variables come in addition to the kubelet's.
  throw new NodeError('ERR_ALLOCATION', `${variable} has more than one value: ${[...values].join(', ')}`, {
    value: [...values],
    valid: 'one value, which the device plugin sets',
  });
}

/**
 * The allocation in the environment of a container that is being created, each entry `NAME=value`;
 * undefined if it has none.
 * @throws ERR_ALLOCATION if it contradicts itself, or has only one of the two variables
 */
export function allocationIn(environment: readonly string[]): AllocationEnvironment | undefined {
  const [uid, list] = [ALLOCATION_VARIABLE, CPUS_VARIABLE].map((variable) => valueIn(environment, variable));
  // numalign also sets NUMALIGN_CPUS alone, for other processes.
  if (uid === undefined) return undefined;
  try {
    const cpus = CpuSet.parse(list ?? '');
    if (!cpus.isEmpty) return { uid, cpus };
  } catch (cause) {
    throw new NodeError('ERR_ALLOCATION', `${CPUS_VARIABLE} is not a list of CPUs: ${list}`, {
      value: list,
      valid: 'a list such as 2-3,8',
      cause,
    });
  }
  throw new NodeError('ERR_ALLOCATION', `${ALLOCATION_VARIABLE} is set without ${CPUS_VARIABLE}`, {
    value: uid,
    valid: 'both variables, as the device plugin sets them',
  });
}

/**
 * The grants that stand for an allocation: one, or more if a container of its pod has taken over a
 * part of its CPUs (an init container leaves them). Empty if it is not on record.
 */
export function grantsOf<Grant extends NamedGrant>(uid: string, grants: readonly Grant[]): Grant[] {
  return grants.filter(({ name }) => parseAllocationName(name)?.uids.includes(uid));
}
