// The requests of a pod; resources of a pod as a whole, as a kubelet counts them.
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

export interface PodRequest {
  readonly uid: string | undefined;
  readonly name: string | undefined;
  /** The name, unique in its pod; undefined for an acquired grant. */
  readonly namespace?: string | undefined;
  readonly qosClass: QosClass;
  /**
   * Which containers keep it from being Guaranteed, and by what, for people; null: it is
   * Guaranteed.
   */
  readonly notGuaranteed: string | null;
  /** Its resources as a whole; null if it has none. */
  readonly resources: PodResources | null;
  /** Devices that a DRA driver gives, by container: they count in hints, and are not given out here. */
  readonly draExtendedResources?: Readonly<Record<string, readonly string[]>> | undefined;
  /** True if a fraction of CPUs gets the whole CPUs exclusively and the rest from the shared pool. */
  readonly isMixed?: boolean | undefined;
  /** Its annotation says that it may be moved to make room for others. */
  readonly isMovable?: boolean | undefined;
  /** In the order in which they are admitted: init containers and sidecars, then the others. */
  readonly containers: readonly ContainerRequest[];
}

/** The resources of a pod as a whole. */
export interface PodResources {
  /** `cpu` in millicores, memory and hugepages in bytes. */
  readonly requests: ContainerRequest['requests'];
  readonly limits: ContainerRequest['requests'];
  /** The containers whose requests of cpu and memory are not zero, and are their limits. */
  readonly guaranteed: readonly string[];
  /** The pod's class by its containers alone, and what keeps them from being Guaranteed. */
  readonly ofContainers: Pick<PodRequest, 'qosClass' | 'notGuaranteed'>;
  /** The managers place the pod (PodLevelResourceManagers); else nothing of it is exclusive. */
  readonly isManaged: boolean;
}

/** A container, and what it asks for exactly. */
export interface ParsedContainer {
  readonly container: ContainerRequest;
  readonly requests: Amounts;
  /** The same object where it requests what is its limit. */
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

// Counts what a pod needs at one time, as Kubernetes does.
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

// What is limited and not requested: what the containers request of it, or else the limit.
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
  const given = podShape.object(value, field);
  const limits = amountsOf(given.limits, `${field}.limits`);
  const own = amountsOf(given.requests, `${field}.requests`);
  if (own.length === 0 && limits.length === 0) return undefined;
  const requests = withDefaults(own, limits, containers);
  for (const { resource, amount } of requests) {
    const limit = amountIn(limits, resource);
    const isExact = isNeverOvercommitted(resource);
    const isRight =
      limit === undefined ? !isExact : isExact ? amount.nanos === limit.nanos : amount.nanos <= limit.nanos;
    if (!isRight)
      fail(
        `${field}.requests.${resource}`,
        shown(amount, resource),
        isExact ? 'its limit' : 'at most its limit',
      );
  }
  return { requests, limits };
}

/**
 * As the Kubernetes API has it, of a manifest: a pod requests at least what its containers request,
 * and none of them may use more than the pod.
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
        shown(amount, resource),
        `at least what its containers request, ${shown(exactly(total), resource)}`,
      );
  }
  for (const { resource, amount } of limits) {
    const over = containers.find((each) => nanosOf(each.limits, resource) > amount.nanos);
    if (over)
      fail(
        `${field}.limits.${resource}`,
        shown(amount, resource),
        `at least the limit of container ${over.container.name}`,
      );
  }
}

const shown = (amount: Amount, resource: string) => {
  const number = inUnits([{ resource, amount }], 'resources')[resource]!;
  return resource === 'cpu' ? `${number}m` : number;
};

/** The fields of a pod's request. */
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
 * A pod as the kubelet of these settings takes it; the same object where it says nothing of the
 * pod as a whole.
 * @throws ERR_INVALID_POD under a kubelet that knows no resources of a whole pod
 */
export function podUnder(
  { kubeletVersion, featureGates }: Pick<MachineSettings, 'kubeletVersion' | 'featureGates'>,
  pod: PodRequest,
): PodRequest {
  const { resources } = pod;
  if (pod.draExtendedResources && !featureGates.DRAExtendedResource)
    return podUnder({ kubeletVersion, featureGates }, { ...pod, draExtendedResources: undefined });
  if (resources === null) return pod;
  // Ignoring them would give the pod less than it requests.
  if (kubeletVersion === 'v1.32')
    fail('resources', resources.requests, 'left out: the kubelet v1.32 supports no resources of a whole pod');
  // A gate that is off: the kubelet does not look at them, and still gives nothing exclusive.
  if (!featureGates.PodLevelResources) return { ...pod, ...resources.ofContainers };
  return featureGates.PodLevelResourceManagers
    ? { ...pod, resources: { ...resources, isManaged: true } }
    : pod;
}
