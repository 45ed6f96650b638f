// Placement: where a container runs, as it is on record, and what its runtime hears. Pure.
import { type CpuSet, NodeSet, type PodContainer } from 'numalign';
import type { ContainerAdjustment, ContainerUpdate } from '../nri/messages.js';
import { CPUS_VARIABLE, DEVICES_VARIABLE, GRANT_VARIABLE } from '../placement/allocation.js';
import { CHOICE_ANNOTATION } from '../placement/annotations.js';
import type { ContainerRequest } from '../placement/container-request.js';

/** What is granted to a container. */
export interface Placement {
  /** The grant's, or the allocation's. */
  readonly uid: string;
  /** The device plugin has booked it: it is the pod's, whose containers may start again. */
  readonly isAllocation: boolean;
  /** Of its own; null: it runs in the shared pool. */
  readonly cpus: CpuSet | null;
  /** NUMA nodes of the memory that is booked for it; empty: none is. */
  readonly memoryNodes: NodeSet;
  /** `resource=id`, the names of CDI. */
  readonly devices: readonly string[];
}

export function placementOf(uid: string, { cpus, memory, devices }: PodContainer): Placement {
  return {
    uid,
    isAllocation: false,
    cpus,
    memoryNodes: NodeSet.from(memory.flatMap(({ nodes }) => nodes)),
    devices: Object.entries(devices).flatMap(([resource, held]) => held.map(({ id }) => `${resource}=${id}`)),
  };
}

/** The CPUs of a container in the shared pool: those that its creator has chosen, where any is left. */
export function sharedCpus(pool: CpuSet, choice: CpuSet | null): CpuSet {
  const chosen = choice?.intersection(pool);
  return chosen && !chosen.isEmpty ? chosen : pool;
}

const cpuset = (cpus: CpuSet, mems: NodeSet | undefined) => ({
  cpu: { cpus: cpus.toString(), ...(mems && !mems.isEmpty && { mems: mems.toString() }) },
});

/**
 * For CreateContainer. Devices are passed on by their CDI names where that is asked for: both as newer
 * runtimes take them and as the annotation of the CDI specification.
 */
export function adjustment(
  cpus: CpuSet,
  placement: Placement | null,
  { choice, cdi }: Pick<ContainerRequest, 'choice' | 'cdi'>,
): ContainerAdjustment {
  const { uid, memoryNodes, devices = [] } = placement ?? {};
  // What the shared pool is changes while a container runs.
  const exclusive = placement?.cpus ?? null;
  const env = [
    ...(exclusive === null ? [] : [{ key: CPUS_VARIABLE, value: exclusive.toString() }]),
    ...(uid === undefined ? [] : [{ key: GRANT_VARIABLE, value: uid }]),
    ...(devices.length === 0 ? [] : [{ key: DEVICES_VARIABLE, value: devices.join(',') }]),
  ];
  const names = cdi ? devices : [];
  return {
    env,
    annotations: {
      // A plugin that comes later cannot tell a cpuset that numalign has narrowed from a choice.
      [CHOICE_ANNOTATION]: choice?.toString() ?? '',
      ...(names.length > 0 && { 'cdi.k8s.io/numalign': names.join(',') }),
    },
    linux: { resources: cpuset(cpus, memoryNodes) },
    ...(names.length > 0 && { CDI_devices: names.map((name) => ({ name })) }),
  };
}

/** `isOptional`: a container that has just ended is no reason to fail. */
export function update(id: string, cpus: CpuSet, mems?: NodeSet, isOptional = false): ContainerUpdate {
  return {
    container_id: id,
    linux: { resources: cpuset(cpus, mems) },
    ...(isOptional && { ignore_failure: true }),
  };
}
