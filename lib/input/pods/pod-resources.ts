// The requests of a pod, and the resources of a pod as a whole, as a kubelet counts them.
import type { MachineSettings } from '../../account/assignments.js';
import { isMemoryType } from '../values/memory-types.js';
import type { Amount } from '../values/quantity.js';
import {
  type Amounts,
  amountIn,
  type ContainerRequest,
  fail,
  inUnits,
  isNeverOvercommitted,
  nanosOf,
  parseAmounts,
  podShape,
} from './resource-amounts.js';

/** How Kubernetes ranks a pod. Only containers of Guaranteed pods get exclusive CPUs. */
export const QOS_CLASSES = ['Guaranteed', 'Burstable', 'BestEffort'] as const;
/**
 * The QoS class of a pod, by the rules of Kubernetes. `Guaranteed`: every container has limits of
 * CPU and memory, and equal requests. `BestEffort`: none has requests or limits of these.
 * `Burstable`: all other pods.
 */
export type QosClass = (typeof QOS_CLASSES)[number];

/** What a pod requests, checked and in exact amounts. */
export interface PodRequest {
  /** Identifies the pod; undefined if it has none yet. */
  readonly uid: string | undefined;
  /** A name for people. */
  readonly name: string | undefined;
  /** Undefined for an acquired grant. */
  readonly namespace?: string | undefined;
  /** By the rules of Kubernetes. */
  readonly qosClass: QosClass;
  /** Why the pod is not Guaranteed, for people; null if it is. */
  readonly notGuaranteed: string | null;
  /** The resources of the pod as a whole; null if it has none. */
  readonly resources: PodResources | null;
  /**
   * Resources of a DRA driver by container: they count in hints, but numalign allocates no device.
   */
  readonly draExtendedResources?: Readonly<Record<string, readonly string[]>> | undefined;
  /**
   * True if a fractional amount gets its whole CPUs exclusively and the rest from the shared pool.
   */
  readonly isMixed?: boolean | undefined;
  /** The container that gets exclusive CPUs although the pod is not Guaranteed. */
  readonly exclusiveContainer?: string | undefined;
  /** True if the pod's annotation consents to a move that makes room for others. */
  readonly isMovable?: boolean | undefined;
  /** In the order in which they are admitted: init containers and sidecars, then the others. */
  readonly containers: readonly ContainerRequest[];
}

/** The resources of a pod as a whole. */
export interface PodResources {
  /** `cpu` in millicores, memory and hugepages in bytes. */
  readonly requests: ContainerRequest['requests'];
  /** In the same units. */
  readonly limits: ContainerRequest['requests'];
  /** The containers whose requests of cpu and memory are not zero and equal their limits. */
  readonly guaranteed: readonly string[];
  /** The pod's class by its containers alone, and what keeps them from being Guaranteed. */
  readonly ofContainers: Pick<PodRequest, 'qosClass' | 'notGuaranteed'>;
  /**
   * True if the managers place the pod (PodLevelResourceManagers); else it gets nothing exclusive.
   */
  readonly isManaged: boolean;
}

/** A container with its exact amounts. */
export interface ParsedContainer {
  readonly container: ContainerRequest;
  readonly requests: Amounts;
  /** The same object as `requests` if the container requests its limits. */
  readonly limits: Amounts;
}

const VALID = 'keyed by cpu, memory or hugepages-<size>';

function amountsOf(value: unknown, field: string): Amounts {
  const amounts = parseAmounts(value, field);
  for (const { resource } of amounts)
    if (resource !== 'cpu' && !isMemoryType(resource)) fail(field, resource, VALID);
  return amounts;
}

const exactly = (nanos: bigint): Amount => ({ nanos, milli: undefined, whole: undefined });

// The most of a resource that the pod needs at one time: podTotal() with exact amounts.
function totalOf(containers: readonly ParsedContainer[], resource: string): bigint {
  let [starting, sidecars, apps] = [0n, 0n, 0n];
  for (const { container, requests } of containers) {
    const amount = nanosOf(requests, resource);
    if (container.kind === 'app') apps += amount;
    else if (container.kind === 'sidecar') sidecars += amount;
    else if (sidecars + amount > starting) starting = sidecars + amount;
  }
  return starting > sidecars + apps ? starting : sidecars + apps;
}

// A resource with a limit and no request gets the sum that the containers request, or else the
// limit.
function withDefaults(requests: Amounts, limits: Amounts, containers: readonly ParsedContainer[]): Amounts {
  const all = [...requests];
  for (const { resource, amount } of limits) {
    if (amountIn(all, resource)) continue;
    const total = totalOf(containers, resource);
    all.push({ resource, amount: total > 0n ? exactly(total) : amount });
  }
  return all;
}

/** The exact resources of a pod as a whole; undefined if it has none. @throws ERR_INVALID_POD */
export function parsePodAmounts(
  value: unknown,
  field: string,
  containers: readonly ParsedContainer[],
): Pick<ParsedContainer, 'requests' | 'limits'> | undefined {
  if (value === undefined || value === null) return undefined;
  const fields = podShape.object(value, field);
  const limits = amountsOf(fields.limits, `${field}.limits`);
  const ownRequests = amountsOf(fields.requests, `${field}.requests`);
  if (ownRequests.length === 0 && limits.length === 0) return undefined;
  const requests = withDefaults(ownRequests, limits, containers);
  for (const { resource, amount } of requests) {
    const limit = amountIn(limits, resource);
    const isExact = isNeverOvercommitted(resource);
    const isRight =
      limit === undefined ? !isExact : isExact ? amount.nanos === limit.nanos : amount.nanos <= limit.nanos;
    if (!isRight)
      fail(
        `${field}.requests.${resource}`,
        amountText(amount, resource),
        isExact ? 'its limit' : 'at most its limit',
      );
  }
  return { requests, limits };
}

/**
 * Checks a manifest like the Kubernetes API: a pod requests at least as much as its containers, and
 * no container has a greater limit than the pod.
 * @throws ERR_INVALID_POD
 */
export function checkPodAmounts(
  { requests, limits }: Pick<ParsedContainer, 'requests' | 'limits'>,
  field: string,
  containers: readonly ParsedContainer[],
): void {
  for (const { resource, amount } of requests) {
    const total = totalOf(containers, resource);
    if (amount.nanos < total)
      fail(
        `${field}.requests.${resource}`,
        amountText(amount, resource),
        `at least what its containers request, ${amountText(exactly(total), resource)}`,
      );
  }
  for (const { resource, amount } of limits) {
    const greater = containers.find((each) => nanosOf(each.limits, resource) > amount.nanos);
    if (greater)
      fail(
        `${field}.limits.${resource}`,
        amountText(amount, resource),
        `at least the limit of container ${greater.container.name}`,
      );
  }
}

const amountText = (amount: Amount, resource: string) => {
  const number = inUnits([{ resource, amount }], 'resources')[resource]!;
  return resource === 'cpu' ? `${number}m` : number;
};

/** The resources of a pod as a whole, in units. */
export function podResources(
  { requests, limits }: Pick<ParsedContainer, 'requests' | 'limits'>,
  field: string,
  containers: readonly ParsedContainer[],
  ofContainers: { readonly qosClass: QosClass; readonly notGuaranteed: string | null },
): PodResources {
  const isGuaranteed = (each: ParsedContainer) =>
    ['cpu', 'memory'].every((resource) => {
      const limit = nanosOf(each.limits, resource);
      return limit > 0n && nanosOf(each.requests, resource) === limit;
    });
  return Object.freeze({
    requests: inUnits(requests, `${field}.requests`),
    limits: inUnits(limits, `${field}.limits`),
    guaranteed: Object.freeze(containers.filter(isGuaranteed).map(({ container: { name } }) => name)),
    ofContainers: Object.freeze(ofContainers),
    isManaged: false,
  });
}

/**
 * A pod as the kubelet of these settings reads it; the same object if these settings change
 * nothing.
 * @throws ERR_INVALID_POD for resources of a whole pod under a kubelet that does not support them
 */
export function podUnder(
  { kubeletVersion, featureGates }: Pick<MachineSettings, 'kubeletVersion' | 'featureGates'>,
  pod: PodRequest,
): PodRequest {
  const { resources } = pod;
  if (pod.draExtendedResources && !featureGates.DRAExtendedResource)
    return podUnder({ kubeletVersion, featureGates }, { ...pod, draExtendedResources: undefined });
  if (resources === null) return pod;
  // To ignore them would give the pod less than it requests.
  if (kubeletVersion === 'v1.32')
    fail('resources', resources.requests, 'left out: the kubelet v1.32 supports no resources of a whole pod');
  // With the gate off, the kubelet ignores them, and still gives the pod nothing exclusive.
  if (!featureGates.PodLevelResources) return { ...pod, ...resources.ofContainers };
  return featureGates.PodLevelResourceManagers
    ? { ...pod, resources: { ...resources, isManaged: true } }
    : pod;
}
