// Metrics of the state: pools, grants, members.
import { ENFORCEMENT_LEVELS } from '../account/pod-assignment.js';
import { unlessRefused } from '../base/errors.js';
import { CpuSet } from '../machine/cpu-set.js';
import type { ManagerView } from '../managers/manager-view.js';
import { type Labels, type MetricSink, oncePerScrape } from './sinks/metric-sink.js';

export type StateLook = () => Snapshot | undefined;

/** What the state says, once for all metrics of a scrape. Undefined where it cannot be read. */
export function stateLook(manager: ManagerView): StateLook {
  return oncePerScrape(() => unlessRefused(() => readSnapshot(manager)));
}

export function state(metrics: MetricSink, manager: ManagerView, look: StateLook): void {
  const number = (name: string, help: string, value: (now: Snapshot) => number) => {
    metrics.gauge(name, help, [], () => {
      const now = look();
      return now && [[{}, value(now)]];
    });
  };
  const byLabels = (
    name: string,
    help: string,
    labelNames: readonly string[],
    values: (now: Snapshot) => readonly (readonly [Labels, number])[],
  ) =>
    metrics.gauge(name, help, labelNames, () => {
      const now = look();
      return now && values(now);
    });

  number(
    'kubelet_cpu_manager_shared_pool_size_millicores',
    'The size of the shared CPU pool for non-guaranteed QoS pods, in millicores.',
    ({ freeCpus }) => freeCpus.size * 1000,
  );
  number(
    'kubelet_cpu_manager_exclusive_cpu_allocation_count',
    'The total number of CPUs exclusively allocated to containers running on this node',
    ({ exclusiveCpus }) => exclusiveCpus.size,
  );
  byLabels(
    'kubelet_cpu_manager_allocation_per_numa',
    'Number of CPUs allocated per NUMA node',
    ['numa_node'],
    ({ exclusiveCpus }) =>
      manager.topology.nodes
        .filter(({ cpus }) => !cpus.isEmpty)
        .map(({ id, cpus }) => [{ numa_node: String(id) }, cpus.intersection(exclusiveCpus).size]),
  );
  metrics.gauge('state_usable', 'Whether the state can be read and changed: 1 or 0.', [], () => [
    [{}, look()?.isUsable ? 1 : 0],
  ]);
  number(
    'state_generation',
    'The generation of the state: how often it has been changed.',
    (now) => now.generation,
  );
  number(
    'shared_pool_cpus',
    'CPUs for everything without exclusive ones.',
    ({ sharedPool }) => sharedPool.size,
  );
  number('free_cpus', 'CPUs that nobody holds and that are not reserved.', ({ freeCpus }) => freeCpus.size);
  number('managed_cpus', 'CPUs that are handed out or shared.', ({ settings }) => settings.managedCPUs.size);
  number(
    'reserved_cpus',
    'CPUs that are never exclusive.',
    ({ settings }) => settings.reservedSystemCPUs.intersection(settings.managedCPUs).size,
  );
  byLabels('grants', 'Grants by how strongly others are kept off.', ['enforcement'], ({ grants }) =>
    ENFORCEMENT_LEVELS.map((level) => [
      { enforcement: level },
      grants.filter(({ enforcement }) => enforcement === level).length,
    ]),
  );
  number('dead_grants', 'Grants of dead owners that have not been taken back yet.', ({ grants }) => {
    return grants.filter(({ alive }) => !alive).length;
  });
  number('flagged_grants', 'Grants of which something does not hold any more.', ({ grants }) => {
    return grants.filter(({ flags }) => flags.length > 0).length;
  });
  number('cpus_of_kubelet', "Exclusive CPUs of the kubelet's pods that are on record.", ({ kubelet }) => {
    return kubelet?.cpus.size ?? 0;
  });
  number(
    'record_of_kubelet_kept',
    'Whether a process that lives keeps on record what the kubelet has given out: 1 or 0.',
    ({ kubelet }) => (kubelet?.keeper.alive ? 1 : 0),
  );
  const memory = (name: string, help: string, bytes: 'allocatable' | 'free') =>
    byLabels(name, help, ['numa_node', 'type'], (now) =>
      now.memory.map((table) => [{ numa_node: String(table.node), type: table.type }, table[bytes]]),
    );
  memory('memory_allocatable_bytes', 'Memory that can be granted, granted or not.', 'allocatable');
  memory('memory_free_bytes', 'Memory that is not granted, whoever uses it.', 'free');
}

type Snapshot = ReturnType<typeof readSnapshot>;

function readSnapshot(manager: ManagerView) {
  const generation = manager.generation();
  const sharedPool = manager.sharedPool();
  const freeCpus = manager.freeCpus();
  const settings = manager.settings();
  const memory = manager.memory();
  const refusal = manager.refusal();
  const grants = manager.grants();
  const kubelet = manager.kubelet();
  const exclusiveCpus = grants.reduce(
    (cpus, { cpus: own, upcoming }) => cpus.union(own).union(upcoming ?? CpuSet.EMPTY),
    CpuSet.EMPTY,
  );
  return {
    generation,
    sharedPool,
    freeCpus,
    settings,
    memory,
    grants,
    kubelet,
    exclusiveCpus,
    isUsable: refusal === null,
  };
}
