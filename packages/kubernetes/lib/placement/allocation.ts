// Allocation: CPUs that the device plugin has booked before the container is known. Environment
// variables carry the grant from the device plugin's answer to the container's creation. Pure.
import { CpuSet } from 'numalign';
import { NodeError } from '../base/errors.js';

/** The uid of the grant. */
export const ALLOCATION_VARIABLE = 'NUMALIGN_ALLOCATION';
/** The CPUs, as Linux lists them. */
export const CPUS_VARIABLE = 'NUMALIGN_CPUS';
/** The uid of a container's own grant. */
export const GRANT_VARIABLE = 'NUMALIGN_GRANT';
/** `resource=id` of each device, separated by commas. */
export const DEVICES_VARIABLE = 'NUMALIGN_DEVICES';

/** A container as the kubelet names it. */
export interface AllocatedContainer {
  readonly podUid: string;
  readonly name: string;
}

/**
 * Puts an allocation on record again whose grant has ended though its pod goes on. False: the kubelet
 * has not given these devices to this container.
 */
export type RestoreAllocation = (
  allocation: AllocationEnvironment,
  container: AllocatedContainer,
) => Promise<boolean>;

const PREFIX = 'device-plugin:';
// A pod's init containers leave their devices to those after them.
const MOST_UIDS = 64;

/** What is known of a grant. */
export interface NamedGrant {
  readonly name: string;
}

/** What the name of an allocation's grant says. */
export interface AllocationName {
  /** Such as `numalign.io/cpu`. */
  readonly resource: string;
  /** Of the allocations that the grant stands for, the newest last. */
  readonly uids: readonly string[];
}

/** The name of a grant that stands for these allocations: the newest of them. */
export function allocationName({ resource, uids }: AllocationName): string {
  return `${PREFIX}${resource}:${uids.slice(-MOST_UIDS).join('+')}`;
}

/** undefined: it is no allocation of a device plugin. */
export function parseAllocationName(name: string): AllocationName | undefined {
  if (!name.startsWith(PREFIX)) return undefined;
  const [resource, uids, ...rest] = name.slice(PREFIX.length).split(':');
  if (!resource || !uids || rest.length > 0) return undefined;
  return { resource, uids: uids.split('+') };
}

/** Whether a grant is an allocation of the device plugin for a resource. */
export function isAllocation({ name }: NamedGrant, resource: string): boolean {
  return parseAllocationName(name)?.resource === resource;
}

/** Whether a container has got an allocation's grant: its pod's cgroup owns it. */
export function isClaimed({ owner }: { readonly owner: { readonly kind: string } }): boolean {
  return owner.kind === 'cgroup';
}

/** What a container's environment says. */
export interface AllocationEnvironment {
  readonly uid: string;
  readonly cpus: CpuSet;
}

/** The environment of a container that has an allocation. */
export function allocationEnvironment({ uid, cpus }: AllocationEnvironment): Record<string, string> {
  return { [CPUS_VARIABLE]: cpus.toString(), [ALLOCATION_VARIABLE]: uid };
}

function valueIn(environment: readonly string[], variable: string): string | undefined {
  const prefix = `${variable}=`;
  const found = environment.filter((each) => each.startsWith(prefix));
  const values = new Set(found.map((each) => each.slice(prefix.length)));
  if (values.size <= 1) return [...values][0];
  // A pod's own variables come beside those of the kubelet.
  throw new NodeError('ERR_ALLOCATION', `${variable} has more than one value: ${[...values].join(', ')}`, {
    value: [...values],
    valid: 'one value, which the device plugin sets',
  });
}

/**
 * What the environment of a container that is created says, each entry `NAME=value`; undefined where
 * it has no allocation.
 * @throws ERR_ALLOCATION where it contradicts itself, or has one of the two variables only
 */
export function allocationIn(environment: readonly string[]): AllocationEnvironment | undefined {
  const [uid, list] = [ALLOCATION_VARIABLE, CPUS_VARIABLE].map((variable) => valueIn(environment, variable));
  // NUMALIGN_CPUS alone is what numalign tells other processes.
  if (uid === undefined) return undefined;
  try {
    const cpus = CpuSet.parse(list ?? '');
    if (!cpus.isEmpty) return { uid, cpus };
  } catch (cause) {
    throw new NodeError('ERR_ALLOCATION', `${CPUS_VARIABLE} is no list of CPUs: ${list}`, {
      value: list,
      valid: 'a list such as 2-3,8',
      cause,
    });
  }
  throw new NodeError('ERR_ALLOCATION', `${ALLOCATION_VARIABLE} comes without ${CPUS_VARIABLE}`, {
    value: uid,
    valid: 'both variables, as the device plugin sets them',
  });
}

/**
 * The grants that stand for an allocation: one, more where a container of its pod has got a part of
 * its CPUs since (an init container leaves them), none where it is not on record.
 */
export function grantsOf<Grant extends NamedGrant>(uid: string, grants: readonly Grant[]): Grant[] {
  return grants.filter(({ name }) => parseAllocationName(name)?.uids.includes(uid));
}
