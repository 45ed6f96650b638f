// Metrics of admissions, by the stages at which the kubelet would have failed them.
import type { AdmitMessage, DiagnosticsContainer } from '../admission/diagnostics.js';
import { AFFINITY_STAGE, CPU_STAGE, MEMORY_STAGE, stageOf } from './admission-stages.js';
import type { Handlers } from './handlers.js';
import type { MetricSet } from './metric-set.js';

// ---- what the manager does

// 0.05 ms to 0.8 s, as the kubelet's.
const KUBELET_BUCKETS_MS = Array.from({ length: 15 }, (_, i) => 0.05 * 2 ** i);

export const BUCKETS_S = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];

const WAIT_BUCKETS_S = [0.01, 0.1, 1, 5, 15, 60, 300, 900, 3600, 14_400];

const ALIGNED = ['scope', 'boundary'];

const PHYSICAL_CPUS = { scope: 'container', boundary: 'physical_cpu' };

const NUMA_NODE = 'numa_node';

const ONE_L3 = { scope: 'container', boundary: 'uncore_cache' };

// All that is allocated comes from the machine's pools.
const OF_NODE = { source: 'node' };

const EXCLUSIVE = { assignment_type: 'node_exclusive' };

function admissions(metrics: MetricSet): (message: AdmitMessage) => void {
  const requests = metrics.counter(
    'kubelet_topology_manager_admission_requests_total',
    'The number of admission requests where resources have to be aligned.',
  );
  const errors = metrics.counter(
    'kubelet_topology_manager_admission_errors_total',
    'The number of admission request failures where resources could not be aligned.',
  );
  const duration = metrics.histogram(
    'kubelet_topology_manager_admission_duration_ms',
    'Duration in milliseconds to serve a pod admission request. Not of requests that wait for room.',
    KUBELET_BUCKETS_MS,
  );
  const cpuPinnings = metrics.counter(
    'kubelet_cpu_manager_pinning_requests_total',
    'The number of cpu core allocations which required pinning.',
  );
  const cpuErrors = metrics.counter(
    'kubelet_cpu_manager_pinning_errors_total',
    'The number of cpu core allocations which required pinning failed.',
  );
  const memoryPinnings = metrics.counter(
    'kubelet_memory_manager_pinning_requests_total',
    'The number of memory pages allocations which required pinning.',
  );
  const memoryErrors = metrics.counter(
    'kubelet_memory_manager_pinning_errors_total',
    'The number of memory pages allocations which required pinning that failed.',
  );
  const aligned = metrics.counter(
    'kubelet_container_aligned_compute_resources_count',
    'Cumulative number of aligned compute resources allocated to containers by alignment type.',
    ALIGNED,
  );
  const unaligned = metrics.counter(
    'kubelet_container_aligned_compute_resources_failure_count',
    'Cumulative number of failures to allocate aligned compute resources to containers by alignment type.',
    ALIGNED,
  );
  const allocated = metrics.counter(
    'resource_manager_allocations_total',
    'Number of exclusive resource allocations performed by a resource manager.',
    ['resource_name', 'source'],
  );
  const allocationErrors = metrics.counter(
    'resource_manager_allocation_errors_total',
    'Number of errors encountered during exclusive resource allocation.',
    ['resource_name', 'source'],
  );
  const assignments = metrics.counter(
    'resource_manager_container_assignments',
    'Number of containers with a specific type of resource assignment.',
    ['assignment_type', 'resource_name'],
  );
  const outcomes = metrics.counter(
    'admissions_total',
    'Requests of this manager to be admitted, by their outcome.',
    ['outcome', 'code'],
  );
  const waits = metrics.histogram(
    'admission_wait_duration_seconds',
    'How long requests took that were ready to wait for room.',
    WAIT_BUCKETS_S,
  );
  for (const scope of ['container', 'pod']) {
    for (const counter of [aligned, unaligned]) counter.inc({ scope, boundary: NUMA_NODE }, 0);
  }
  aligned.inc(ONE_L3, 0);
  for (const resource_name of ['cpu', 'memory']) {
    allocated.inc({ resource_name, ...OF_NODE }, 0);
    allocationErrors.inc({ resource_name, ...OF_NODE }, 0);
    assignments.inc({ resource_name, ...EXCLUSIVE }, 0);
  }
  for (const outcome of ['admitted', 'already']) outcomes.inc({ outcome, code: '' }, 0);

  return (message) => {
    const { outcome, code, durationMs, wait, policy, scope, options, containers } = message;
    const isRejected = outcome === 'rejected';
    outcomes.inc({ outcome, code: code ?? '' });
    requests.inc();
    if (isRejected) errors.inc();
    if (wait) waits.observe(durationMs / 1000);
    else duration.observe(durationMs);

    const stage = isRejected ? stageOf(code) : undefined;
    const cpus = reached(message, CPU_STAGE).filter(({ exclusiveCpus }) => exclusiveCpus > 0).length;
    const cpuFailures = stage === CPU_STAGE ? 1 : 0;
    cpuPinnings.inc(cpus);
    cpuErrors.inc(cpuFailures);
    const withMemory = reached(message, MEMORY_STAGE).filter(({ booksMemory }) => booksMemory);
    const memoryFailures = stage === MEMORY_STAGE ? 1 : 0;
    memoryPinnings.inc(withMemory.length);
    memoryErrors.inc(memoryFailures);
    allocationErrors.inc({ resource_name: 'cpu', ...OF_NODE }, cpuFailures);
    allocationErrors.inc({ resource_name: 'memory', ...OF_NODE }, memoryFailures);
    // A pod that is placed already is allocated nothing.
    if (outcome !== 'already') {
      const booked = memoryFailures === 0 ? withMemory : withMemory.slice(0, -1);
      const types = booked.reduce((sum, { memoryTypes }) => sum + memoryTypes.length, 0);
      allocated.inc({ resource_name: 'cpu', ...OF_NODE }, cpus - cpuFailures);
      allocated.inc({ resource_name: 'memory', ...OF_NODE }, types);
      assignments.inc({ resource_name: 'cpu', ...EXCLUSIVE }, cpus - cpuFailures);
      assignments.inc({ resource_name: 'memory', ...EXCLUSIVE }, booked.length);
    }
    // Whichever options are set.
    if (outcome === 'admitted')
      aligned.inc(ONE_L3, containers.filter(({ l3Groups }) => l3Groups === 1).length);
    if (options['full-pcpus-only']) {
      aligned.inc(PHYSICAL_CPUS, cpus - cpuFailures);
      unaligned.inc(PHYSICAL_CPUS, cpuFailures);
    }
    // Only this policy guarantees it.
    if (policy !== 'single-numa-node') return;
    const labels = { scope, boundary: NUMA_NODE };
    if (stage === AFFINITY_STAGE) unaligned.inc(labels);
    if (isPlaced(message)) aligned.inc(labels, scope === 'pod' ? 1 : containers.length);
  };
}

function isPlaced({ outcome }: AdmitMessage): boolean {
  return outcome === 'admitted' || outcome === 'already';
}

/** The containers with which the kubelet would have come to the manager of this stage. */
function reached(message: AdmitMessage, stage: number): readonly DiagnosticsContainer[] {
  const { outcome, code, container, containers } = message;
  if (isPlaced(message)) return containers;
  if (outcome !== 'rejected') return [];
  const failedAt = stageOf(code);
  const failing = containers.findIndex(({ name }) => name === container);
  // None of them: the pod could not be aligned, or, once all had what they need, it would have left
  // nothing to share.
  if (failing < 0) return failedAt === AFFINITY_STAGE ? [] : containers;
  return containers.slice(0, failedAt >= stage ? failing + 1 : failing);
}

export function requests(metrics: MetricSet): Handlers {
  const releases = metrics.histogram(
    'release_duration_seconds',
    'How long releases of this manager took.',
    BUCKETS_S,
  );
  const applies = metrics.histogram(
    'apply_duration_seconds',
    'How long it took to put threads on CPUs of a grant, or off them.',
    BUCKETS_S,
    ['action'],
  );
  const moved = metrics.counter(
    'threads_moved_total',
    'Threads that were put on CPUs of a grant, or off them.',
  );
  const unmovable = metrics.counter(
    'threads_unmovable_total',
    'Threads that were to be moved and could not be.',
  );
  return {
    admit: admissions(metrics),
    release: ({ durationMs }) => releases.observe(durationMs / 1000),
    apply: (message) => {
      applies.observe({ action: message.action }, message.durationMs / 1000);
      moved.inc(message.moved ?? 0);
      unmovable.inc(message.unmovable ?? 0);
    },
  };
}
