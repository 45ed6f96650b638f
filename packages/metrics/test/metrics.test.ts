// needs: process
// The metrics of a manager's actions in collectMetrics, read like Prometheus reads them.
import { type ContainerSpec, type ManagerOptions, openManager } from 'numalign';
import { DIAGNOSTICS_CHANNELS } from 'numalign/diagnostics';
import { describe, expect, it, onTestFinished } from 'vitest';
import { publish, type Source, traced } from '../../../lib/admission/diagnostics.js';
import { Agent } from '../../../test/support/agent.js';
import { collect, collected, MACHINE, openReal } from '../../../test/support/collected.js';
import { read } from '../../../test/support/documents.js';
import { errorOf, thrownBy } from '../../../test/support/error-of.js';
import { GI, machineOf } from '../../../test/support/memory-machine.js';
import { abandonMove, hostOf } from '../../../test/support/moves.mjs';
import { makeNewer } from '../../../test/support/newer-state.js';
import type { Scrape } from '../../../test/support/scrape.js';
import { guaranteed, simulate } from '../../../test/support/simulated.js';
import { makeStateDir } from '../../../test/support/state-dir.js';
import { until } from '../../cli/test/numalign.js';
import { collectMetrics } from '../lib/index.js';

const ALIGNED = 'kubelet_container_aligned_compute_resources_count';
const UNALIGNED = 'kubelet_container_aligned_compute_resources_failure_count';
const CONTAINER = { scope: 'container', boundary: 'numa_node' };
const PHYSICAL = { scope: 'container', boundary: 'physical_cpu' };

/** Requests and errors of the CPU Manager, then of the Memory Manager. */
function pinnings(page: Scrape): (number | undefined)[] {
  return ['cpu', 'memory'].flatMap((what) =>
    ['requests', 'errors'].map((which) => page.value(`kubelet_${what}_manager_pinning_${which}_total`)),
  );
}

describe('collectMetrics', () => {
  it('shows the state for a read-only manager', async () => {
    const stateDir = makeStateDir();
    const manager = await simulate(MACHINE, { stateDir });
    await manager.acquire({ cpu: 4 });
    const { topology } = manager;
    const view = await openManager({ stateDir, topology, readOnly: true });
    onTestFinished(() => view.close());
    const page = await collect(view).scrape();
    const gauges = ['numalign_state_usable', 'numalign_state_generation', 'numalign_free_cpus'];
    expect(gauges.map((name) => page.value(name))).toEqual([1, view.generation(), 12]);
  });

  it('has the kubelet’s names, types and buckets for metrics that the kubelet has too', async () => {
    const { scrape } = await collected();
    const page = await scrape();
    const kubelets = Object.entries(page.types).filter(([name]) => !name.startsWith('numalign_'));
    expect(Object.fromEntries(kubelets)).toEqual({
      kubelet_cpu_manager_pinning_requests_total: 'COUNTER',
      kubelet_cpu_manager_pinning_errors_total: 'COUNTER',
      kubelet_memory_manager_pinning_requests_total: 'COUNTER',
      kubelet_memory_manager_pinning_errors_total: 'COUNTER',
      kubelet_topology_manager_admission_requests_total: 'COUNTER',
      kubelet_topology_manager_admission_errors_total: 'COUNTER',
      kubelet_topology_manager_admission_duration_ms: 'HISTOGRAM',
      kubelet_container_aligned_compute_resources_count: 'COUNTER',
      kubelet_container_aligned_compute_resources_failure_count: 'COUNTER',
      kubelet_cpu_manager_shared_pool_size_millicores: 'GAUGE',
      kubelet_cpu_manager_exclusive_cpu_allocation_count: 'GAUGE',
      kubelet_cpu_manager_allocation_per_numa: 'GAUGE',
      resource_manager_allocations_total: 'COUNTER',
      resource_manager_allocation_errors_total: 'COUNTER',
      resource_manager_container_assignments: 'COUNTER',
    });
    const counts = [0.05, 0.1, 409.6, 819.2, '+Inf'].map((le) =>
      page.value('kubelet_topology_manager_admission_duration_ms_bucket', { le: String(le) }),
    );
    expect(counts).toEqual([0, 0, 0, 0, 0]);
  });

  it('has exactly the metrics of docs/reference/metrics.md', async () => {
    const { scrape } = collect(await openReal(), { watch: true, audit: true, grants: { memory: true } });
    const listed = [...read('docs/reference/metrics.md').matchAll(/^\| (`[^|]*`) \|/gm)].flatMap(([, cell]) =>
      [...cell!.matchAll(/`((?:kubelet|numalign|resource_manager)_\w+)`/g)].map(([, name]) => name!),
    );
    const metrics = Object.keys((await scrape()).types).sort();
    expect(listed.sort(), 'the page is generated: npm run docs').toEqual(metrics);
  });

  it('publishes on the channels that docs/metrics.md names, and on no others', () => {
    const named = [...read('docs/metrics.md').matchAll(/['`](numalign:\w+)['`]/g)].map(([, name]) => name!);
    expect([...new Set(named)].sort()).toEqual(Object.values(DIAGNOSTICS_CHANNELS).sort());
  });

  it('counts admissions, rejections and how long they took', async () => {
    const { manager, scrape } = await collected();
    const pod = { uid: 'pod-1', containers: [guaranteed('main', { cpu: 2 })] };
    await manager.acquire({ cpu: 2 });
    await manager.admit(pod);
    await manager.admit(pod);
    await errorOf(() => manager.acquire({ cpu: 20 }));
    const page = await scrape();
    expect(page.value('kubelet_topology_manager_admission_requests_total')).toBe(4);
    expect(page.value('kubelet_topology_manager_admission_errors_total')).toBe(1);
    expect(page.value('kubelet_topology_manager_admission_duration_ms_count')).toBe(4);
    const outcomes = ['admitted', 'already'].map((outcome) =>
      page.value('numalign_admissions_total', { outcome }),
    );
    expect(outcomes).toEqual([2, 1]);
    const rejected = { outcome: 'rejected', code: 'ERR_INSUFFICIENT_CPUS' };
    expect(page.value('numalign_admissions_total', rejected)).toBe(1);
  });

  it('keeps requests that wait for room out of the kubelet’s durations', async () => {
    const { manager, scrape } = await collected();
    await manager.acquire({ cpu: 2, wait: true });
    const page = await scrape();
    expect(page.value('kubelet_topology_manager_admission_duration_ms_count')).toBe(0);
    expect(page.value('numalign_admission_wait_duration_seconds_count')).toBe(1);
  });

  // The kubelet goes from container to container, and in each from devices to CPUs to memory.
  it.each([
    ['all of an admitted pod', [{ cpu: 2 }, { cpu: 2 }], {}, [2, 0, 2, 0]],
    ['no shared containers', [{ cpu: 2 }, { cpu: '500m' }], {}, [1, 0, 2, 0]],
    ['up to the one without CPUs', [{ cpu: 2 }, { cpu: 20 }, { cpu: 2 }], {}, [2, 1, 1, 0]],
    ['up to the one without memory', [{ cpu: 2 }, { cpu: 2, memory: '1Ti' }, { cpu: 2 }], {}, [2, 0, 2, 1]],
    ['none of a pod that cannot be aligned', [{ cpu: 6 }, { cpu: 6 }], { scope: 'pod' }, [0, 0, 0, 0]],
    [
      'those before one that cannot be aligned',
      [{ cpu: 2 }, { cpu: 10 }],
      { scope: 'container' },
      [1, 0, 1, 0],
    ],
    ['all where the pool would be empty', [{ cpu: 8 }, { cpu: 8 }], {}, [2, 1, 2, 0]],
  ] as const)(
    'counts the containers that the kubelet would have come to: %s',
    async (_title, amounts, options, counts) => {
      const { manager, scrape } = await collected();
      const containers = amounts.map((amount, i) => guaranteed(`c${i}`, amount));
      const policy = 'scope' in options ? 'single-numa-node' : 'none';
      await manager.admit({ containers }, { ...options, policy }).catch(() => {});
      expect(pinnings(await scrape())).toEqual(counts);
    },
  );

  it('counts aligned containers only if alignment is guaranteed', async () => {
    const { manager, scrape } = await collected();
    const pair = [guaranteed('a', { cpu: 2 }), guaranteed('b', { cpu: 2 })];
    await manager.admit({ containers: pair }, { policy: 'best-effort' });
    expect((await scrape()).value(ALIGNED, CONTAINER)).toBe(0);
    await manager.admit({ containers: pair }, { policy: 'single-numa-node' });
    await manager.admit(
      { containers: [guaranteed('a', { cpu: 2 })] },
      { policy: 'single-numa-node', scope: 'pod' },
    );
    await errorOf(() => manager.acquire({ cpu: 7, policy: 'single-numa-node' }));
    const page = await scrape();
    expect([page.value(ALIGNED, CONTAINER), page.value(UNALIGNED, CONTAINER)]).toEqual([2, 1]);
    expect(page.value(ALIGNED, { scope: 'pod', boundary: 'numa_node' })).toBe(1);
    expect(page.value(ALIGNED, PHYSICAL)).toBe(undefined);
  });

  it('counts containers whose CPUs are in one L3 group, whatever the options', async () => {
    // Two L3 groups of four CPUs a node.
    const manager = await simulate('numa:2 l3:2 core:2 pu:2');
    const { scrape } = collect(manager);
    const ONE_L3 = { scope: 'container', boundary: 'uncore_cache' };
    expect((await scrape()).value(ALIGNED, ONE_L3)).toBe(0);
    const containers = [4, 6].map((cpu, i) => guaranteed(`c${i}`, { cpu }));
    const pod = { uid: 'pod', containers: [...containers, guaranteed('shared', { cpu: '500m' })] };
    await manager.admit(pod);
    await manager.admit(pod);
    await errorOf(() =>
      manager.admit({ containers: [guaranteed('a', { cpu: 1 }), guaranteed('b', { cpu: 9 })] }),
    );
    const page = await scrape();
    expect([page.value(ALIGNED, ONE_L3), page.value(UNALIGNED, ONE_L3)]).toEqual([1, undefined]);
  });

  it('counts the allocations of the managers, by resource', async () => {
    const { manager, scrape } = await collected();
    const counts = async () => {
      const page = await scrape();
      return ['cpu', 'memory'].map((resource_name) => [
        page.value('resource_manager_allocations_total', { resource_name, source: 'node' }),
        page.value('resource_manager_allocation_errors_total', { resource_name, source: 'node' }),
        page.value('resource_manager_container_assignments', {
          assignment_type: 'node_exclusive',
          resource_name,
        }),
      ]);
    };
    const none = [0, 0, 0];
    expect(await counts()).toEqual([none, none]);
    const main = guaranteed('main', { cpu: 2 });
    const pod = { uid: 'pod', containers: [main, guaranteed('shared', { cpu: '500m' })] };
    await manager.admit(pod);
    // It is placed already.
    await manager.admit(pod);
    const admitted = [
      [1, 0, 1],
      [2, 0, 2],
    ];
    expect(await counts()).toEqual(admitted);
    // Of the first container all, of the second none.
    await errorOf(() => manager.admit({ containers: [main, guaranteed('large', { cpu: 20 })] }));
    expect(await counts()).toEqual([
      [2, 1, 2],
      [3, 0, 3],
    ]);
    // Of the second container the CPUs.
    const wide = guaranteed('wide', { cpu: 1, memory: '1Ti' });
    await errorOf(() => manager.admit({ containers: [main, wide] }, { policy: 'none' }));
    expect(await counts()).toEqual([
      [4, 1, 4],
      [4, 1, 4],
    ]);
  });

  describe('of pods that are booked as a whole', () => {
    const own = guaranteed('own', { cpu: 2, memory: '512Mi' });
    const init = { ...guaranteed('init', { cpu: 1, memory: '128Mi' }) };
    const pod = (cpu: number | string, containers: ContainerSpec[], memory = '2Gi') => ({
      resources: { requests: { cpu, memory }, limits: { cpu, memory } },
      initContainers: [init, { name: 'setup' }],
      containers,
    });
    const managed = (options: ManagerOptions = {}) =>
      collected({
        scope: 'pod',
        featureGates: { PodLevelResourceManagers: true },
        ...options,
      });
    const resources = ['cpu', 'memory'];
    // Allocations and errors, exclusive containers, and those that share.
    const ofPods = (page: Scrape) =>
      resources.map((resource_name) => [
        page.value('resource_manager_allocations_total', { resource_name, source: 'pod' }),
        page.value('resource_manager_allocation_errors_total', { resource_name, source: 'pod' }),
        ...['pod_exclusive', 'pod_shared'].map((assignment_type) =>
          page.value('resource_manager_container_assignments', { resource_name, assignment_type }),
        ),
      ]);
    const ofNode = (page: Scrape) =>
      resources.flatMap((resource_name) => [
        page.value('resource_manager_allocations_total', { resource_name, source: 'node' }),
        page.value('resource_manager_allocation_errors_total', { resource_name, source: 'node' }),
        page.value('resource_manager_container_assignments', {
          resource_name,
          assignment_type: 'node_exclusive',
        }),
      ]);
    const NONE = [0, 0, 0, 0];

    it('counts dealt-out resources: each container once, exclusive or shared', async () => {
      const { manager, scrape } = await managed();
      expect(ofPods(await scrape())).toEqual([NONE, NONE]);
      const spec = { uid: 'pod', ...pod(4, [own, { name: 'logs' }, { name: 'proxy' }]) };
      await manager.admit(spec);
      const page = await scrape();
      expect(ofPods(page)).toEqual([
        [5, 0, 2, 3],
        [5, 0, 2, 3],
      ]);
      expect(ofNode(page)).toEqual([0, 0, 0, 0, 0, 0]);
      // Of memory: the pod, both init containers and `own`.
      expect(pinnings(page)).toEqual([2, 0, 4, 0]);
      expect(page.value(ALIGNED, { scope: 'container', boundary: 'uncore_cache' })).toBe(1);
      await manager.admit(spec);
      expect(ofPods(await scrape())).toEqual(ofPods(page));
    });

    it('counts no whole cores of them, like the kubelet', async () => {
      const { manager, scrape } = await managed({ cpuManagerPolicyOptions: { 'full-pcpus-only': true } });
      const limits = { cpu: 4, memory: '2Gi' };
      await manager.admit({ resources: { requests: limits, limits }, containers: [own, { name: 'logs' }] });
      expect((await scrape()).value(ALIGNED, PHYSICAL)).toBe(undefined);
      await manager.acquire({ cpu: 2 });
      expect((await scrape()).value(ALIGNED, PHYSICAL)).toBe(1);
    });

    it('counts none of its CPUs if these are no whole number', async () => {
      const { manager, scrape } = await managed();
      await manager.admit(pod('3500m', [own, { name: 'logs' }]));
      expect(ofPods(await scrape())).toEqual([NONE, [4, 0, 2, 2]]);
      expect(pinnings(await scrape())).toEqual([0, 0, 4, 0]);
    });

    it.each([
      ['CPUs that are not there', pod(20, [own]), {}, [[0, 1, 0, 0], NONE], [0, 1, 0, 0]],
      [
        'memory that is not there',
        pod(4, [own], '1Ti'),
        {},
        [
          [3, 0, 2, 1],
          [0, 1, 0, 0],
        ],
        [2, 0, 1, 1],
      ],
      ['an empty pool of CPUs', pod(2, [own, { name: 'logs' }]), {}, [[0, 1, 0, 0], NONE], [0, 1, 0, 0]],
      [
        'an empty pool of memory',
        pod(4, [own, { name: 'logs' }], '512Mi'),
        {},
        [
          [4, 0, 2, 2],
          [0, 1, 0, 0],
        ],
        [2, 0, 1, 1],
      ],
      [
        'an empty pool under a policy that finds it by hints',
        pod(2, [own, { name: 'logs' }]),
        { policy: 'restricted' },
        [NONE, NONE],
        [0, 0, 0, 0],
      ],
    ] as const)('counts what fails where the kubelet would have failed: %s', async (...row) => {
      const [, spec, options, counts, pinned] = row;
      const { manager, scrape } = await managed({ policy: 'best-effort', ...options });
      await errorOf(() => manager.admit(spec));
      const page = await scrape();
      expect(ofPods(page)).toEqual(counts);
      expect(pinnings(page)).toEqual(pinned);
      expect(ofNode(page)).toEqual([0, 0, 0, 0, 0, 0]);
    });

    it('counts exclusive containers one by one if nothing is booked for the pod', async () => {
      const { manager, scrape } = await managed({ scope: 'container' });
      await manager.admit(pod(4, [own, { name: 'logs' }]));
      const page = await scrape();
      expect(ofPods(page)).toEqual([NONE, NONE]);
      expect(ofNode(page)).toEqual([2, 0, 2, 2, 0, 2]);
    });
  });

  it('counts each type of memory that a container books as an allocation of its own', async () => {
    const manager = await simulate(await machineOf([{ cpus: 4, memory: GI, hugepages: { 2048: 8 } }]));
    const { scrape } = collect(manager);
    await manager.acquire({ cpu: 1, memory: '64Mi', resources: { 'hugepages-2Mi': '4Mi' } });
    const page = await scrape();
    const memory = { resource_name: 'memory' };
    expect([
      page.value('resource_manager_allocations_total', { ...memory, source: 'node' }),
      page.value('resource_manager_container_assignments', { ...memory, assignment_type: 'node_exclusive' }),
    ]).toEqual([2, 1]);
  });

  it('shows the exclusive CPUs of each NUMA node that has CPUs', async () => {
    const { manager, scrape } = await collected();
    const perNuma = async () => {
      const page = await scrape();
      return ['0', '1'].map((numa_node) =>
        page.value('kubelet_cpu_manager_allocation_per_numa', { numa_node }),
      );
    };
    expect(await perNuma()).toEqual([0, 0]);
    const grant = await manager.acquire({ cpu: 10 });
    expect(await perNuma()).toEqual([8, 2]);
    await grant.release();
    expect(await perNuma()).toEqual([0, 0]);
  });

  it('counts the CPUs that a grant has not left yet in a move', async () => {
    const { manager, scrape } = await collected();
    const { uid } = await manager.acquire({ cpu: 2 });
    await abandonMove(hostOf(manager), uid, '14-15', true);
    const page = await scrape();
    expect(page.value('kubelet_cpu_manager_exclusive_cpu_allocation_count')).toBe(4);
  });

  it('counts whole cores if only they are granted', async () => {
    const { manager, scrape } = await collected({ cpuManagerPolicyOptions: { 'full-pcpus-only': true } });
    await manager.acquire({ cpu: 2 });
    await errorOf(() => manager.acquire({ cpu: 3 }));
    const page = await scrape();
    expect([page.value(ALIGNED, PHYSICAL), page.value(UNALIGNED, PHYSICAL)]).toEqual([1, 1]);
  });

  it('shows the current state at each scrape, whichever process has changed it', async () => {
    const { manager, scrape } = await collected({
      reservedSystemCPUs: '0',
      reservedMemory: [{ numaNode: 1, limits: { memory: '1Gi' } }],
    });
    const other = await openManager({ topology: manager.topology, stateDir: manager.stateDir });
    onTestFinished(() => other.close());
    const grant = await other.acquire({ cpu: 3, memory: '2Gi' });
    const page = await scrape();
    const node = { numa_node: String([...grant.memoryNodes][0]), type: 'memory' };
    const gib = 2 ** 30;
    expect(
      Object.fromEntries(
        [
          'state_usable',
          'state_generation',
          'shared_pool_cpus',
          'free_cpus',
          'managed_cpus',
          'reserved_cpus',
          'dead_grants',
          'flagged_grants',
        ].map((name) => [name, page.value(`numalign_${name}`)]),
      ),
    ).toEqual({
      state_usable: 1,
      state_generation: manager.generation(),
      shared_pool_cpus: 13,
      free_cpus: 12,
      managed_cpus: 16,
      reserved_cpus: 1,
      dead_grants: 0,
      flagged_grants: 0,
    });
    // As the kubelet: without the reserved CPUs, which the shared pool has.
    expect(page.value('kubelet_cpu_manager_shared_pool_size_millicores')).toBe(12_000);
    expect(page.value('kubelet_cpu_manager_exclusive_cpu_allocation_count')).toBe(3);
    expect(page.value('numalign_grants', { enforcement: 'recorded' })).toBe(1);
    expect(page.value('numalign_grants', { enforcement: 'partition' })).toBe(0);
    expect(page.value('numalign_memory_allocatable_bytes', { numa_node: '1', type: 'memory' })).toBe(7 * gib);
    const { allocatable } = manager
      .memory()
      .find((table) => String(table.node) === node.numa_node && table.type === 'memory')!;
    expect(page.value('numalign_memory_free_bytes', node)).toBe(allocatable - 2 * gib);
    // Nothing of that was this manager's doing.
    expect(page.value('kubelet_cpu_manager_pinning_requests_total')).toBe(0);
    await grant.release();
    expect((await scrape()).value('kubelet_cpu_manager_exclusive_cpu_allocation_count')).toBe(0);
  });

  it('shows the kubelet’s allocation, and if its record has a keeper', async () => {
    const { manager, scrape } = await collected({});
    const names = ['cpus_of_kubelet', 'record_of_kubelet_kept'];
    const values = async () => {
      const page = await scrape();
      return names.map((name) => page.value(`numalign_${name}`));
    };
    expect(await values()).toEqual([0, 0]);
    const containers = [{ name: 'main', cpus: '1-3' }];
    await manager.recordKubelet([{ namespace: 'default', name: 'web', containers }]);
    expect(await values()).toEqual([3, 1]);
  });

  it('counts the actions of each manager once if two share a state', async () => {
    const { manager, scrape } = await collected();
    const other = await openManager({ topology: manager.topology, stateDir: manager.stateDir });
    onTestFinished(() => other.close());
    const { scrape: scrapeOther } = collect(other);
    await manager.acquire({ cpu: 1 });
    await other.acquire({ cpu: 1 });
    await other.acquire({ cpu: 1 });
    const counts = [await scrape(), await scrapeOther()].map((page) =>
      page.value('kubelet_cpu_manager_pinning_requests_total'),
    );
    expect(counts).toEqual([1, 2]);
  });

  it('counts grants of all processes that come and go if it watches', async () => {
    const { manager, scrape } = await collected({ reservedSystemCPUs: '0' }, { watch: true });
    const agent = new Agent();
    await agent.tell('open', { stateDir: manager.stateDir, simulate: MACHINE });
    const { uid } = await agent.tell('acquire', { cpu: 2 });
    await agent.tell('acquire', { cpu: 2 });
    await agent.tell('release', { uid });
    const both = async (added: number, removed: number) => {
      const page = await scrape();
      return (
        page.value('numalign_grants_added_total') === added &&
        page.value('numalign_grants_removed_total') === removed
      );
    };
    await until(() => both(2, 1), 'two grants, and the end of one');
    await agent.kill();
    await until(() => both(2, 2), 'the end of the dead process’s');
    expect(manager.freeCpus().size).toBe(15);
  });

  it('counts threads, releases, and failures by their step and code', async () => {
    const manager = await openManager({ stateDir: makeStateDir() });
    onTestFinished(() => manager.close());
    const { scrape } = collect(manager);
    const grant = await manager.acquire({ cpu: 1 });
    const { moved } = grant.pin();
    const undone = await grant.unpin();
    const error = await errorOf(() => grant.pin({ threads: 0x3fffffff }));
    await grant.release();
    const page = await scrape();
    expect(page.value('numalign_threads_moved_total')).toBe(moved.length + undone.moved.length);
    expect(page.value('numalign_apply_duration_seconds_count', { action: 'pin' })).toBe(2);
    expect(page.value('numalign_errors_total', { step: 'apply', code: error.code })).toBe(1);
    expect(page.value('numalign_release_duration_seconds_count')).toBe(1);
  });

  it('omits the manager’s own actions if the options say so', async () => {
    const { manager, scrape } = await collected({}, { requests: false });
    await manager.acquire({ cpu: 1 });
    const names = Object.keys((await scrape()).types);
    expect(names.filter((name) => /admission|pinning|aligned|release|apply|threads_/.test(name))).toEqual([]);
    expect(names).toContain('kubelet_cpu_manager_exclusive_cpu_allocation_count');
    expect(names).toContain('numalign_errors_total');
  });

  it('counts the results of reconciliation', async () => {
    const { manager, scrape } = await collected();
    const source: Source = {
      managerId: manager.id,
      ledger: { scope: 'memory', path: '' } as Source['ledger'],
    };
    const round = { checked: 5, repaired: 2, contested: 1, writes: 3 };
    traced(
      'reconcile',
      source,
      () => round,
      () => round,
    );
    const drift = { kind: 'mask', uid: null, what: 'thread 7' };
    publish('drift', source, () => ({ ...drift, repaired: true }));
    publish('drift', source, () => ({ ...drift, repaired: false }));
    const page = await scrape();
    const names = [
      'reconcile_checks_total',
      'reconcile_repairs_total',
      'reconcile_writes_total',
      'contested',
      'reconcile_duration_seconds_count',
    ];
    expect(names.map((name) => page.value(`numalign_${name}`))).toEqual([5, 2, 3, 1, 1]);
    expect(page.value('numalign_drift_total', { kind: 'mask', repaired: 'false' })).toBe(1);
  });

  it('leaves gauges out while the state cannot be read, and keeps the counters', async () => {
    const { manager, scrape } = await collected();
    await manager.acquire({ cpu: 1 });
    makeNewer(manager.stateDir);
    const page = await scrape();
    expect(page.value('numalign_state_usable')).toBe(0);
    expect(page.value('numalign_free_cpus')).toBe(undefined);
    expect(page.value('numalign_grants', { enforcement: 'recorded' })).toBe(undefined);
    expect(page.value('kubelet_cpu_manager_pinning_requests_total')).toBe(1);
  });

  it('shows a read-only state, and marks it as such', async () => {
    const { manager, scrape } = await collected();
    await manager.acquire({ cpu: 1 });
    makeNewer(manager.stateDir, true);
    expect(manager.refusal()).toMatchObject({ code: 'ERR_STATE_VERSION' });
    const page = await scrape();
    expect(page.value('numalign_state_usable')).toBe(0);
    expect(page.value('kubelet_cpu_manager_exclusive_cpu_allocation_count')).toBe(1);
  });

  it('ends at once, and leaves nothing in the registry', async () => {
    const { manager, register, stop, scrape } = await collected({}, { watch: true });
    expect(manager.listenerCount('change')).toBe(1);
    stop();
    stop();
    expect(await register.metrics()).toBe('\n');
    expect(manager.listenerCount('change')).toBe(0);
    // The same registry again.
    const again = collect(manager, { register });
    await manager.acquire({ cpu: 1 });
    expect((await scrape()).value('kubelet_cpu_manager_pinning_requests_total')).toBe(1);
    again.stop();
  });

  it('takes other prefixes', async () => {
    const { scrape } = await collected({}, { prefix: 'cell_', kubeletPrefix: '' });
    const { types } = await scrape();
    expect(types).toHaveProperty('cell_free_cpus');
    expect(types).toHaveProperty('cpu_manager_pinning_requests_total');
    expect(Object.keys(types).filter((name) => /^(kubelet|numalign)_/.test(name))).toEqual([]);
  });

  it('puts another prefix before the kubelet’s metrics, too', async () => {
    const { scrape } = await collected({}, { kubeletPrefix: 'cell_' });
    const { types } = await scrape();
    const own = Object.keys(types).filter((name) => !name.startsWith('numalign_'));
    expect(own).toContain('cell_resource_manager_allocations_total');
    expect(own.filter((name) => !name.startsWith('cell_'))).toEqual([]);
  });

  it('refuses a registry that has one of the names, and registers nothing then', async () => {
    const { manager, register } = await collected();
    expect(thrownBy(() => collectMetrics(manager, { register }))).toMatchObject({
      code: 'ERR_INVALID_OPTION',
    });
    const before = register.getMetricsAsArray().length;
    const options = { register, prefix: 'other_', watch: true };
    expect(thrownBy(() => collectMetrics(manager, options))?.message).toContain('kubelet_');
    expect(register.getMetricsAsArray().length).toBe(before);
    expect(manager.listenerCount('change')).toBe(0);
  });

  it.each([
    [{ prefix: '1_' }, 'prefix'],
    [{ kubeletPrefix: 'a b' }, 'kubeletPrefix'],
    [{ register: {} }, 'register'],
    [{ watch: 'yes' }, 'watch'],
    [{ grants: 100 }, 'grants'],
    [{ grants: { max: -1 } }, 'grants.max'],
    [{ grants: { max: 1e6 } }, 'grants.max'],
    [{ grants: { memory: 1 } }, 'grants.memory'],
    [{ grants: { memry: true } }, 'did you mean "memory"'],
    [{ prefx: 'a_' }, 'did you mean "prefix"'],
  ])('refuses %j', async (options, message) => {
    const manager = await simulate(MACHINE);
    const error = thrownBy(() => collectMetrics(manager, options as never));
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', message: expect.stringContaining(message) });
    expect(thrownBy(() => collectMetrics({} as never))).toMatchObject({ code: 'ERR_INVALID_OPTION' });
  });
});
