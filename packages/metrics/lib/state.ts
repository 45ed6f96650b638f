// Metrics of the state: pools, grants, members.
import type { ManagerView } from 'numalign';
import type { KubeletStatus } from 'numalign/kubelet';
import { cpusOfGrants, ENFORCEMENT_LEVELS, unlessRefused } from 'numalign/tools';
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
    'The size of the shared CPU pool for non-guaranteed QoS pods, in millicores. 1000 times numalign_free_cpus.',
    ({ freeCpus }) => freeCpus.size * 1000,
  );
  number(
    'kubelet_cpu_manager_exclusive_cpu_allocation_count',
    'The total number of CPUs exclusively allocated to containers running on this node. CPUs of announced resizes count too.',
    ({ exclusiveCpus }) => exclusiveCpus.size,
  );
  byLabels(
    'kubelet_cpu_manager_allocation_per_numa',
    'Number of CPUs allocated per NUMA node. Every node with CPUs has a value.',
    ['numa_node'],
    ({ exclusiveCpus }) =>
      manager.topology.nodes
        .filter(({ cpus }) => !cpus.isEmpty)
        .map(({ id, cpus }) => [{ numa_node: String(id) }, cpus.intersection(exclusiveCpus).size]),
  );
  metrics.gauge('state_usable', '1 if the state can be read and changed, else 0.', [], () => [
    [{}, look()?.isUsable ? 1 : 0],
  ]);
  number(
    'state_generation',
    'The generation of the state. Its rate is that of commits.',
    (now) => now.generation,
  );
  number(
    'shared_pool_cpus',
    'CPUs of the shared pool, with the reserved CPUs unless strictCPUReservation is set.',
    ({ sharedPool }) => sharedPool.size,
  );
  number('free_cpus', 'CPUs that no grant holds and that are not reserved.', ({ freeCpus }) => freeCpus.size);
  number('managed_cpus', 'CPUs that numalign grants or shares.', ({ settings }) => settings.managedCPUs.size);
  number(
    'reserved_cpus',
    'Managed CPUs that are never exclusive.',
    ({ settings }) => settings.reservedSystemCPUs.intersection(settings.managedCPUs).size,
  );
  byLabels('grants', 'Grants by enforcement level.', ['enforcement'], ({ grants }) =>
    ENFORCEMENT_LEVELS.map((level) => [
      { enforcement: level },
      grants.filter(({ enforcement }) => enforcement === level).length,
    ]),
  );
  number('dead_grants', 'Grants of dead owners that are not taken back yet.', ({ grants }) => {
    return grants.filter(({ alive }) => !alive).length;
  });
  number('flagged_grants', 'Grants with flags.', ({ grants }) => {
    return grants.filter(({ flags }) => flags.length > 0).length;
  });
  number('cpus_of_kubelet', "Exclusive CPUs of the kubelet's pods on record.", ({ kubelet }) => {
    return kubelet?.cpus.size ?? 0;
  });
  number(
    'record_of_kubelet_kept',
    '1 if a living process records what the kubelet gives out, else 0.',
    ({ kubelet }) => (kubelet?.keeper.alive ? 1 : 0),
  );
  const memory = (name: string, help: string, bytes: 'allocatable' | 'free') =>
    byLabels(name, help, ['numa_node', 'type'], (now) =>
      now.memory.map((table) => [{ numa_node: String(table.node), type: table.type }, table[bytes]]),
    );
  memory(
    'memory_allocatable_bytes',
    'Memory and hugepages that can be granted, granted or not.',
    'allocatable',
  );
  memory('memory_free_bytes', 'Memory and hugepages that are not granted, used or not.', 'free');
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
  const kubelet: KubeletStatus | null = manager.kubelet();
  return {
    generation,
    sharedPool,
    freeCpus,
    settings,
    memory,
    grants,
    kubelet,
    exclusiveCpus: cpusOfGrants(grants),
    isUsable: refusal === null,
  };
}
