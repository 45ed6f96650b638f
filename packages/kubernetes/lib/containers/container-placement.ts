// Placement: where a container runs by the record, and what its runtime is told. Pure.
import { CpuSet, NodeSet, type PodContainer } from 'numalign';
import { type ContainerAdjustment, type ContainerUpdate, MemoryPolicyMode } from '../nri/messages.js';
import {
  CPUS_VARIABLE,
  DEVICES_VARIABLE,
  GRANT_VARIABLE,
  HOUSEKEEPING_VARIABLE,
} from '../placement/allocation.js';
import { CHOICE_ANNOTATION, type RuntimeClasses } from '../placement/annotations.js';
import type { ContainerRequest } from '../placement/container-request.js';

/** What is granted to a container. */
export interface Placement {
  /** The id of the grant or the allocation. */
  readonly uid: string;
  /** True if the device plugin has booked it. */
  readonly isAllocation: boolean;
  /** True if it belongs to the pod, whose containers may start again, and ends with its sandbox. */
  readonly isOfPod: boolean;
  /** The container's name if the grant is the whole pod's; null if it has one by itself. */
  readonly partOfPod: string | null;
  /** The grants of its claims, which end with them; empty: it has none. */
  readonly claimGrants: readonly string[];
  /** Its exclusive CPUs; null if it runs in the shared pool. */
  readonly cpus: CpuSet | null;
  /** The NUMA nodes of its booked memory; empty: nothing is booked. */
  readonly memoryNodes: NodeSet;
  /** `resource=id`, which are CDI names. */
  readonly devices: readonly string[];
}

// Most containers have none, and each list takes memory.
const NONE: readonly string[] = [];

export function placementOf(
  uid: string,
  isOfPod: boolean,
  { cpus, memory, devices }: PodContainer,
): Placement {
  const names = Object.entries(devices).flatMap(([resource, ids]) =>
    ids.map(({ id }) => `${resource}=${id}`),
  );
  return {
    uid,
    isAllocation: false,
    isOfPod,
    partOfPod: null,
    claimGrants: NONE,
    cpus,
    memoryNodes: NodeSet.from(memory.flatMap(({ nodes }) => nodes)),
    devices: names.length === 0 ? NONE : names,
  };
}

/**
 * The CPUs of a container in the shared pool: those that its creator has chosen, if any are left.
 */
export function sharedCpus(pool: CpuSet, chosenCpus: CpuSet | null): CpuSet {
  const common = chosenCpus?.intersection(pool);
  return common && !common.isEmpty ? common : pool;
}

/** The CPUs that a container has now: its own, or those of the shared pool. */
export const cpusOf = (placement: Placement | null, pool: CpuSet, chosenCpus: CpuSet | null): CpuSet =>
  placement?.cpus ?? sharedCpus(pool, chosenCpus);

const cpuset = (cpus: CpuSet, mems: NodeSet | undefined) => ({
  cpu: { cpus: cpus.toString(), ...(mems && !mems.isEmpty && { mems: mems.toString() }) },
});

/**
 * The adjustment for CreateContainer. `bindsMemory`: by a memory policy, too. On request, devices are passed on by their CDI names, both in
 * the form of newer runtimes and as the annotation of the CDI specification.
 */
export function adjustment(
  cpus: CpuSet,
  placement: Placement | null,
  { chosenCpus, cdi, quiet, classes }: Pick<ContainerRequest, 'chosenCpus' | 'cdi' | 'quiet' | 'classes'>,
  { bindsMemory = false } = {},
): ContainerAdjustment {
  const { uid, memoryNodes, devices = [], claimGrants = [] } = placement ?? {};
  // The shared pool may change while a container runs.
  const exclusive = placement?.cpus ?? null;
  const env = [
    ...(exclusive === null ? [] : [{ key: CPUS_VARIABLE, value: exclusive.toString() }]),
    ...housekeepingOf(exclusive, quiet?.quiet.housekeeping),
    ...(uid === undefined ? [] : [{ key: GRANT_VARIABLE, value: claimGrants.join(',') || uid }]),
    ...(devices.length === 0 ? [] : [{ key: DEVICES_VARIABLE, value: devices.join(',') }]),
  ];
  const names = cdi ? devices : [];
  return {
    env,
    annotations: {
      // A later plugin cannot distinguish a cpuset that numalign has narrowed from a chosen one.
      [CHOICE_ANNOTATION]: chosenCpus?.toString() ?? '',
      ...(names.length > 0 && { 'cdi.k8s.io/numalign': names.join(',') }),
    },
    linux: {
      resources: { ...cpuset(cpus, memoryNodes), ...classesOf(classes) },
      // It holds if someone widens the cpuset, and follows it if numalign moves the memory.
      ...(bindsMemory &&
        memoryNodes &&
        !memoryNodes.isEmpty && { memory_policy: { mode: MemoryPolicyMode.BIND, nodes: `${memoryNodes}` } }),
    },
    ...(names.length > 0 && { CDI_devices: names.map((name) => ({ name })) }),
  };
}

/** The CPUs of its own that kernel work may use, as `quiet` chooses them: the lowest. */
function housekeepingOf(exclusive: CpuSet | null, count = 0) {
  if (exclusive === null || count === 0) return [];
  const cpus = CpuSet.from(exclusive.toArray().slice(0, count));
  return [{ key: HOUSEKEEPING_VARIABLE, value: cpus.toString() }];
}

// Newer runtimes have classes; others skip the fields.
const classesOf = ({ rdt, blockio }: Partial<RuntimeClasses> = {}) => ({
  ...(rdt !== undefined && { rdt_class: { value: rdt } }),
  ...(blockio !== undefined && { blockio_class: { value: blockio } }),
});

/** `isOptional`: no error if the container has just ended. */
export function update(id: string, cpus: CpuSet, mems?: NodeSet, isOptional = false): ContainerUpdate {
  return {
    container_id: id,
    linux: { resources: cpuset(cpus, mems) },
    ...(isOptional && { ignore_failure: true }),
  };
}
