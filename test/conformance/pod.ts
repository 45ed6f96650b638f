// Pods as scenarios record them: their requests, and the calls to the package.
import type { PodSpec } from '../../lib/index.js';

/** Resource name to amount: CPU in millicores, everything else in whole units. */
type Amounts = Readonly<Record<string, number>>;

interface RecordedContainer {
  readonly name: string;
  readonly requests: Amounts;
  readonly limits: Amounts;
  readonly restartPolicy?: string;
}

export interface RecordedPod {
  readonly uid: string;
  readonly initContainers: readonly RecordedContainer[];
  readonly containers: readonly RecordedContainer[];
  /** Of the pod as a whole. */
  readonly podResources?: { readonly requests?: Amounts; readonly limits?: Amounts };
  /** By container: what a DRA driver gives. */
  readonly draExtendedResources?: Readonly<Record<string, readonly string[]>>;
}

/** One container as the managers look at it. */
export interface Claim {
  readonly name: string;
  readonly kind: 'init' | 'sidecar' | 'app';
  /** Without what a DRA driver gives. */
  readonly requests: Amounts;
  /** How many exclusive CPUs it must have; 0: it runs in the shared pool. */
  readonly cpus: number;
  /** How many bytes of each memory type must be booked for it. */
  readonly memory: Amounts;
  /** It has what the others leave of the memory that is booked for its pod. */
  readonly isShared: boolean;
}

/** What is booked for a pod as a whole, of which its containers have parts. */
export interface Whole {
  readonly cpus: number;
  /** Bytes by type. */
  readonly memory: Amounts;
}

// Of these a request is its limit, and either may stand for both.
const isNeverOvercommitted = (resource: string) =>
  resource.includes('/') || resource.startsWith('hugepages-');

/**
 * What a container asks for. The package fills in requests from limits as the API does; recorded
 * pods stand behind that step.
 */
function requestsOf({ requests, limits }: RecordedContainer): Amounts {
  const unasked = Object.entries(limits).map(([resource, limit]) => [
    resource,
    isNeverOvercommitted(resource) ? limit : 0,
  ]);
  return { ...Object.fromEntries(unasked), ...requests };
}

function sum(
  containers: readonly RecordedContainer[],
  list: 'requests' | 'limits',
  resource: string,
): number {
  return containers.reduce((total, container) => total + (container[list][resource] ?? 0), 0);
}

/**
 * As the API classifies pods: every container limits both CPU and memory, and in sum the requests
 * are the limits.
 */
function isGuaranteed({ initContainers, containers, podResources }: RecordedPod): boolean {
  if (podResources) return isExact(podResources);
  const all = [...initContainers, ...containers];
  return ['cpu', 'memory'].every(
    (resource) =>
      all.every(({ limits }) => (limits[resource] ?? 0) > 0) &&
      sum(all, 'requests', resource) === sum(all, 'limits', resource),
  );
}

/** Whether cpu and memory are limited to just what is requested of them. */
function isExact({ requests = {}, limits = {} }: { requests?: Amounts; limits?: Amounts }): boolean {
  return ['cpu', 'memory'].every(
    (resource) => (requests[resource] ?? 0) > 0 && requests[resource] === limits[resource],
  );
}

/** The policies that decide what containers are given. */
export interface Policies {
  readonly cpuPolicy: 'none' | 'static';
  readonly memoryPolicy: 'None' | 'Static';
  readonly topologyPolicy?: string;
  readonly topologyScope?: 'container' | 'pod';
  readonly featureGates?: {
    readonly PodLevelResourceManagers?: boolean;
    readonly PodLevelResources?: boolean;
  };
}

/** How a pod with pod-level resources is placed; undefined: it has none. */
export function levelOf(
  { podResources }: RecordedPod,
  { featureGates: gates, topologyPolicy, topologyScope }: Policies,
): 'none' | 'containers' | 'pod' | undefined {
  if (!podResources) return undefined;
  if (gates?.PodLevelResourceManagers !== true) return 'none';
  return topologyScope === 'pod' && topologyPolicy !== 'none' ? 'pod' : 'containers';
}

/** What must be booked for a pod as a whole; undefined: its containers are placed one by one. */
export function wholeOf(pod: RecordedPod, policies: Policies): Whole | undefined {
  if (levelOf(pod, policies) !== 'pod' || !isGuaranteed(pod)) return undefined;
  const requests = pod.podResources!.requests ?? {};
  const { cpu = 0 } = requests;
  const memory = Object.entries(requests).filter(
    ([type, bytes]) => policies.memoryPolicy === 'Static' && isMemoryType(type) && bytes > 0,
  );
  const isExclusive = policies.cpuPolicy === 'static' && cpu % 1000 === 0;
  const cpus = isExclusive ? cpu / 1000 : 0;
  return cpus > 0 || memory.length > 0 ? { cpus, memory: Object.fromEntries(memory) } : undefined;
}

const isMemoryType = (resource: string) => resource === 'memory' || resource.startsWith('hugepages-');

/** The pod's containers in order of admission. */
export function claimsOf(pod: RecordedPod, policies: Policies): Claim[] {
  const { cpuPolicy, memoryPolicy } = policies;
  const level = levelOf(pod, policies);
  const isPlaced = isGuaranteed(pod) && level !== 'none';
  // Without whole CPUs of the pod none of its containers has its own.
  const isWhole = level !== 'pod' || (pod.podResources!.requests!.cpu ?? 0) % 1000 === 0;
  const isExclusive = cpuPolicy === 'static' && isPlaced && isWhole;
  const isBooked = memoryPolicy === 'Static' && isPlaced;
  const claim = (container: RecordedContainer, kind: Claim['kind']): Claim => {
    const dra = pod.draExtendedResources?.[container.name] ?? [];
    const all = Object.entries(requestsOf(container));
    const requests = Object.fromEntries(all.filter(([resource]) => !dra.includes(resource)));
    const { cpu = 0 } = requests;
    const isOwn = level === undefined || isExact(container);
    const cpus = isExclusive && isOwn && cpu % 1000 === 0 ? cpu / 1000 : 0;
    const memory = Object.entries(requests).filter(
      ([type, bytes]) => isBooked && isOwn && isMemoryType(type) && bytes > 0,
    );
    const isShared = level !== undefined && !isOwn;
    return { name: container.name, kind, requests, cpus, memory: Object.fromEntries(memory), isShared };
  };
  return [
    ...pod.initContainers.map((container) =>
      claim(container, container.restartPolicy === 'Always' ? 'sidecar' : 'init'),
    ),
    ...pod.containers.map((container) => claim(container, 'app')),
  ];
}

function quantities(amounts: Amounts): Record<string, string | number> {
  const entries = Object.entries(amounts);
  return Object.fromEntries(entries.map(([name, amount]) => [name, name === 'cpu' ? `${amount}m` : amount]));
}

/** The pod as the package takes it. */
export function podSpec({
  uid,
  initContainers,
  containers,
  podResources,
  draExtendedResources,
}: RecordedPod): PodSpec {
  const spec = (container: RecordedContainer) => {
    const { name, limits, restartPolicy } = container;
    return {
      name,
      requests: quantities(requestsOf(container)),
      limits: quantities(limits),
      ...(restartPolicy !== undefined && { restartPolicy }),
    };
  };
  const resources = podResources && {
    requests: quantities(podResources.requests ?? {}),
    limits: quantities(podResources.limits ?? {}),
  };
  return {
    uid,
    initContainers: initContainers.map(spec),
    containers: containers.map(spec),
    ...(resources && { resources }),
    ...(draExtendedResources && { draExtendedResources }),
  };
}
