// Pods as scenarios record them: what they ask for, and how the package is asked.
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
}

/** One container as the managers look at it. */
export interface Claim {
  readonly name: string;
  readonly kind: 'init' | 'sidecar' | 'app';
  readonly requests: Amounts;
  /** How many exclusive CPUs it must have; 0: it runs in the shared pool. */
  readonly cpus: number;
  /** How many bytes of each memory type must be booked for it. */
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
function isGuaranteed({ initContainers, containers }: RecordedPod): boolean {
  const all = [...initContainers, ...containers];
  return ['cpu', 'memory'].every(
    (resource) =>
      all.every(({ limits }) => (limits[resource] ?? 0) > 0) &&
      sum(all, 'requests', resource) === sum(all, 'limits', resource),
  );
}

/** The policies that decide what containers are given. */
export interface Policies {
  readonly cpuPolicy: 'none' | 'static';
  readonly memoryPolicy: 'None' | 'Static';
}

const isMemoryType = (resource: string) => resource === 'memory' || resource.startsWith('hugepages-');

/** The pod's containers in order of admission. */
export function claimsOf(pod: RecordedPod, { cpuPolicy, memoryPolicy }: Policies): Claim[] {
  const isExclusive = cpuPolicy === 'static' && isGuaranteed(pod);
  const isBooked = memoryPolicy === 'Static' && isGuaranteed(pod);
  const claim = (container: RecordedContainer, kind: Claim['kind']): Claim => {
    const requests = requestsOf(container);
    const { cpu = 0 } = requests;
    const cpus = isExclusive && cpu % 1000 === 0 ? cpu / 1000 : 0;
    const memory = Object.entries(requests).filter(
      ([type, bytes]) => isBooked && isMemoryType(type) && bytes > 0,
    );
    return { name: container.name, kind, requests, cpus, memory: Object.fromEntries(memory) };
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
export function podSpec({ uid, initContainers, containers }: RecordedPod): PodSpec {
  const spec = (container: RecordedContainer) => {
    const { name, limits, restartPolicy } = container;
    return {
      name,
      requests: quantities(requestsOf(container)),
      limits: quantities(limits),
      ...(restartPolicy !== undefined && { restartPolicy }),
    };
  };
  return { uid, initContainers: initContainers.map(spec), containers: containers.map(spec) };
}
