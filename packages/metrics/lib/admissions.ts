// Metrics of admissions, by the stages at which the kubelet would have failed them.
import { type AdmitMessage, AFFINITY_STAGE } from './admission-stages.js';
import { type Allocations, cpuAllocations, failedAt, isPlaced, memoryAllocations } from './allocations.js';
import type { Handlers } from './handlers.js';
import type { MetricSet } from './sinks/metric-set.js';

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

const SOURCES = ['node', 'pod'];

const ASSIGNMENTS = ['node_exclusive', 'pod_exclusive', 'pod_shared'];

function admissions(metrics: MetricSet): (message: AdmitMessage) => void {
  const requests = metrics.counter(
    'kubelet_topology_manager_admission_requests_total',
    'The number of admission requests where resources have to be aligned. Requests for admitted pods count too.',
  );
  const errors = metrics.counter(
    'kubelet_topology_manager_admission_errors_total',
    'The number of admission request failures where resources could not be aligned. Rejections only, no other failures.',
  );
  const duration = metrics.histogram(
    'kubelet_topology_manager_admission_duration_ms',
    'Duration in milliseconds to serve a pod admission request, with the lock and the write. Requests with wait are left out.',
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
    'The number of memory pages allocations which required pinning. For a pod that is booked as a whole: the pod, its init containers, and containers with their own memory.',
  );
  const memoryErrors = metrics.counter(
    'kubelet_memory_manager_pinning_errors_total',
    'The number of memory pages allocations which required pinning that failed.',
  );
  const aligned = metrics.counter(
    'kubelet_container_aligned_compute_resources_count',
    'Cumulative number of aligned compute resources allocated to containers by alignment type. numa_node: containers (scope pod: pods) under single-numa-node. physical_cpu: containers with whole cores under full-pcpus-only. uncore_cache: containers whose exclusive CPUs are in one L3 group. A pod that is booked as a whole counts once in uncore_cache, never in physical_cpu.',
    ALIGNED,
  );
  const unaligned = metrics.counter(
    'kubelet_container_aligned_compute_resources_failure_count',
    'Cumulative number of failures to allocate aligned compute resources to containers by alignment type. Of numa_node and physical_cpu.',
    ALIGNED,
  );
  const allocations = metrics.counter(
    'resource_manager_allocations_total',
    'Number of exclusive resource allocations performed by a resource manager: CPUs by container, memory by type and container. For a pod that is booked as a whole (source pod), one for each container.',
    ['resource_name', 'source'],
  );
  const allocationErrors = metrics.counter(
    'resource_manager_allocation_errors_total',
    'Number of errors encountered during exclusive resource allocation.',
    ['resource_name', 'source'],
  );
  const assignments = metrics.counter(
    'resource_manager_container_assignments',
    'Number of containers with a specific type of resource assignment: their own from the machine (node_exclusive), their own from the pod (pod_exclusive), or the shared rest of the pod (pod_shared).',
    ['assignment_type', 'resource_name'],
  );
  const outcomes = metrics.counter(
    'admissions_total',
    'Admission requests of this manager, by outcome and error code.',
    ['outcome', 'code'],
  );
  const waits = metrics.histogram(
    'admission_wait_duration_seconds',
    'How long requests with wait took.',
    WAIT_BUCKETS_S,
  );
  for (const scope of ['container', 'pod']) {
    for (const counter of [aligned, unaligned]) counter.inc({ scope, boundary: NUMA_NODE }, 0);
  }
  aligned.inc(ONE_L3, 0);
  for (const resource_name of ['cpu', 'memory']) {
    for (const source of SOURCES)
      for (const counter of [allocations, allocationErrors]) counter.inc({ resource_name, source }, 0);
    for (const assignment_type of ASSIGNMENTS) assignments.inc({ resource_name, assignment_type }, 0);
  }
  for (const outcome of ['admitted', 'already']) outcomes.inc({ outcome, code: '' }, 0);

  // A pod that is placed already is allocated nothing.
  const count = (resource_name: string, counts: Allocations, isNew: boolean) => {
    const { source } = counts;
    allocationErrors.inc({ resource_name, source }, counts.errors);
    if (!isNew) return;
    allocations.inc({ resource_name, source }, counts.allocated);
    assignments.inc({ resource_name, assignment_type: `${source}_exclusive` }, counts.exclusive);
    if (source === 'pod') assignments.inc({ resource_name, assignment_type: 'pod_shared' }, counts.shared);
  };

  return (message) => {
    const { outcome, code, durationMs, wait, policy, scope, options, containers, booking } = message;
    outcomes.inc({ outcome, code: code ?? '' });
    requests.inc();
    if (outcome === 'rejected') errors.inc();
    if (wait) waits.observe(durationMs / 1000);
    else duration.observe(durationMs);

    const isNew = outcome !== 'already';
    const cpus = cpuAllocations(message);
    cpuPinnings.inc(cpus.pinnings);
    cpuErrors.inc(cpus.errors);
    count('cpu', cpus, isNew);
    const memory = memoryAllocations(message);
    memoryPinnings.inc(memory.pinnings);
    memoryErrors.inc(memory.errors);
    count('memory', memory, isNew);
    // Whichever options are set.
    if (outcome === 'admitted')
      aligned.inc(ONE_L3, (booking ? [booking] : containers).filter(({ l3Groups }) => l3Groups === 1).length);
    // Of a pod that is booked as a whole the kubelet does not count it.
    if (options['full-pcpus-only'] && !booking) {
      aligned.inc(PHYSICAL_CPUS, cpus.pinnings - cpus.errors);
      unaligned.inc(PHYSICAL_CPUS, cpus.errors);
    }
    // Only this policy guarantees it.
    if (policy !== 'single-numa-node') return;
    const labels = { scope, boundary: NUMA_NODE };
    if (failedAt(message) === AFFINITY_STAGE) unaligned.inc(labels);
    if (isPlaced(message)) aligned.inc(labels, scope === 'pod' ? 1 : containers.length);
  };
}

export function requests(metrics: MetricSet): Handlers {
  const releases = metrics.histogram(
    'release_duration_seconds',
    'How long releases of this manager took, also failed ones.',
    BUCKETS_S,
  );
  const applies = metrics.histogram(
    'apply_duration_seconds',
    'How long it took to move threads onto the CPUs of a grant or off them.',
    BUCKETS_S,
    ['action'],
  );
  const moves = metrics.counter(
    'threads_moved_total',
    'Threads that moved onto the CPUs of a grant or off them.',
  );
  const unmovable = metrics.counter('threads_unmovable_total', 'Threads that could not be moved.');
  return {
    admit: admissions(metrics),
    release: ({ durationMs }) => releases.observe(durationMs / 1000),
    apply: (message) => {
      applies.observe({ action: message.action }, message.durationMs / 1000);
      moves.inc(message.moved ?? 0);
      unmovable.inc(message.unmovable ?? 0);
    },
  };
}
