// Metrics: what a manager does and what its state says, for Prometheus, by prom-client. The
// package's `numalign/metrics`.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { createRequire } from 'node:module';
import type { Metric, Registry } from 'prom-client';
import { ENFORCEMENT_LEVELS, presentCpus } from './account/assignments.js';
import {
  type AdmitMessage,
  DIAGNOSTICS_CHANNELS,
  type DiagnosticsContainer,
  type DiagnosticsMessages,
  type DiagnosticsStep,
} from './admission/diagnostics.js';
import type { StateChange } from './admission/manager-watch.js';
import type { AuditTotals } from './audit/account.js';
import { WatchedGrants } from './audit/watched-grants.js';
import { checkOptions, invalidOption } from './base/check-options.js';
import { type ErrorCode, NumalignError } from './base/errors.js';
import { CpuSet } from './machine/cpu-set.js';
import { livingPods, Manager } from './manager.js';

/** What {@link collectMetrics} takes. */
export interface MetricsOptions {
  /** Where the metrics are registered. Default: prom-client's own registry. */
  register?: Registry;
  /** Before the names of numalign's own metrics. Default: `numalign_`. */
  prefix?: string;
  /**
   * Before the names of what the kubelet has too. Default: `kubelet_`, as the kubelet exposes them.
   */
  kubeletPrefix?: string;
  /**
   * Also count the grants that come and go, whichever process makes them. It listens to the
   * manager's `change` for that: this keeps the process alive, and what dead owners had is taken
   * back. Default: false.
   */
  watch?: boolean;
  /**
   * Also show what happens to each grant of a living owner, in whatever process it is: run delay,
   * involuntary switches, interrupts, tasks of others. Each scrape then looks at every process of
   * the machine, in this thread, for milliseconds (docs/audit.md). Not on simulated machines.
   * Default: false.
   */
  audit?: boolean;
  /**
   * Count what is asked of this manager itself: admissions, releases and moves of threads. A
   * process that only watches over the grants of others has nothing to show there. Default: true.
   */
  requests?: boolean;
}

/** Metrics that are being collected. */
export interface MetricsCollection {
  readonly register: Registry;
  /** Ends collecting, and takes the metrics out of the registry. */
  stop(): void;
  [Symbol.dispose](): void;
}

/**
 * Makes metrics of what `manager` does from now on, and of what its state says when they are asked
 * for: counters and durations are of this manager alone, gauges of all who share its state.
 * docs/metrics.md lists them.
 * @throws ERR_OPTIONAL_DEPENDENCY where prom-client is not installed; ERR_INVALID_OPTION, also
 *   where the registry has one of the names already; ERR_MANAGER_CLOSED with `watch`
 */
export function collectMetrics(manager: Manager, options: MetricsOptions = {}): MetricsCollection {
  if (!(manager instanceof Manager)) invalidOption('manager', manager, 'a manager that openManager gave');
  const given = parseOptions(options);
  const client = loadPromClient();
  const metrics = new MetricSet(client, given);
  const { register = client.register } = given;
  const handlers: Handlers = { ...(given.requests && requests(metrics)), ...steps(metrics) };
  state(metrics, manager);
  if (given.audit && !manager.topology.isSimulated) grantActivity(metrics, manager);
  const onChange = given.watch ? changes(metrics) : undefined;
  metrics.checkNew(register);
  if (onChange) manager.on('change', onChange);
  metrics.register(register);
  const unsubscribeAll = subscribeTo(handlers, manager.id);
  const stop = () => {
    unsubscribeAll();
    if (onChange) manager.off('change', onChange);
    metrics.unregister(register);
  };
  return Object.freeze({ register, stop, [Symbol.dispose]: stop });
}

// ---- options

type ParsedOptions = Required<Omit<MetricsOptions, 'register'>> & Pick<MetricsOptions, 'register'>;

const OPTIONS = ['register', 'prefix', 'kubeletPrefix', 'watch', 'audit', 'requests'] as const;

function parseOptions(options: MetricsOptions): ParsedOptions {
  const {
    register,
    prefix = 'numalign_',
    kubeletPrefix = 'kubelet_',
    watch = false,
    audit = false,
    requests = true,
  } = checkOptions(options, OPTIONS, 'collectMetrics') as MetricsOptions;
  if (register !== undefined && typeof register?.registerMetric !== 'function') {
    invalidOption('register', register, 'a Registry of prom-client');
  }
  for (const [name, value] of Object.entries({ prefix, kubeletPrefix })) {
    if (typeof value === 'string' && /^([a-zA-Z_:][a-zA-Z0-9_:]*)?$/.test(value)) continue;
    invalidOption(name, value, 'letters, digits, _ and :, not a digit first');
  }
  for (const [name, value] of Object.entries({ watch, audit, requests })) {
    if (typeof value !== 'boolean') invalidOption(name, value, 'true or false');
  }
  return { ...(register && { register }), prefix, kubeletPrefix, watch, audit, requests };
}

type PromClient = typeof import('prom-client');

// Only here, so that numalign can be used without it. @throws ERR_OPTIONAL_DEPENDENCY
function loadPromClient(): PromClient {
  try {
    return createRequire(import.meta.url)('prom-client') as PromClient;
  } catch (cause) {
    throw new NumalignError(
      'ERR_OPTIONAL_DEPENDENCY',
      'metrics need the package prom-client beside numalign: npm install prom-client, with --global where numalign is',
      {
        value: 'prom-client',
        cause,
      },
    );
  }
}

// ---- making and registering

type Labels = Readonly<Record<string, string>>;
/** What a gauge shows: its values by labels; undefined: nothing at present. */
type Values = Iterable<readonly [labels: Labels, value: number]> | undefined;

class MetricSet {
  readonly #client: PromClient;
  readonly #prefixes: Pick<ParsedOptions, 'prefix' | 'kubeletPrefix'>;
  readonly #metrics: Metric[] = [];
  readonly #names: string[] = [];

  constructor(client: PromClient, prefixes: Pick<ParsedOptions, 'prefix' | 'kubeletPrefix'>) {
    this.#client = client;
    this.#prefixes = prefixes;
  }

  #common(name: string, help: string, labelNames: readonly string[]) {
    const { prefix, kubeletPrefix } = this.#prefixes;
    const isKubelets = name.startsWith('kubelet_');
    const full = isKubelets ? kubeletPrefix + name.slice('kubelet_'.length) : prefix + name;
    this.#names.push(full);
    return { name: full, help, labelNames: [...labelNames], registers: [] };
  }

  #add<M extends Metric>(metric: M): M {
    this.#metrics.push(metric);
    return metric;
  }

  /** With `values`, they are asked for at every scrape, and what has none is left out. */
  counter(name: string, help: string, labelNames: readonly string[] = [], values?: () => Values) {
    const collect =
      values &&
      (() => {
        counter.reset();
        for (const [labels, value] of values() ?? []) counter.inc(labels, value);
      });
    const counter = this.#add(
      new this.#client.Counter({ ...this.#common(name, help, labelNames), ...(collect && { collect }) }),
    );
    return counter;
  }

  histogram(name: string, help: string, buckets: number[], labelNames: readonly string[] = []) {
    return this.#add(new this.#client.Histogram({ ...this.#common(name, help, labelNames), buckets }));
  }

  /** With `values`, they are asked for at every scrape. */
  gauge(name: string, help: string, labelNames: readonly string[] = [], values?: () => Values) {
    const collect =
      values &&
      (() => {
        gauge.reset();
        const now = values();
        // Without labels it would show 0.
        if (now === undefined && labelNames.length === 0) gauge.remove();
        for (const [labels, value] of now ?? []) gauge.set(labels, value);
      });
    const gauge = this.#add(
      new this.#client.Gauge({ ...this.#common(name, help, labelNames), ...(collect && { collect }) }),
    );
    return gauge;
  }

  /** @throws ERR_INVALID_OPTION where the registry has one of the names */
  checkNew(register: Registry): void {
    const taken = this.#names.find((name) => register.getSingleMetric(name));
    if (taken !== undefined)
      invalidOption('register', taken, `a registry that has no ${taken} yet, or another prefix`);
  }

  register(register: Registry): void {
    for (const metric of this.#metrics) register.registerMetric(metric);
  }

  unregister(register: Registry): void {
    for (const [i, name] of this.#names.entries()) {
      // Somebody may have cleared the registry, and others come in under the name.
      if (register.getSingleMetric(name) === this.#metrics[i]) register.removeSingleMetric(name);
    }
  }
}

type Handlers = { readonly [S in DiagnosticsStep]?: (message: DiagnosticsMessages[S]) => void };

/** Answers how to end it. */
function subscribeTo(handlers: Handlers, managerId: number): () => void {
  const ends = (Object.keys(handlers) as DiagnosticsStep[]).map((step) => {
    const handle = handlers[step] as (message: unknown) => void;
    const onMessage = (message: unknown) => {
      if ((message as DiagnosticsMessages[typeof step]).managerId === managerId) handle(message);
    };
    subscribe(DIAGNOSTICS_CHANNELS[step], onMessage);
    return () => unsubscribe(DIAGNOSTICS_CHANNELS[step], onMessage);
  });
  return () => {
    for (const end of ends) end();
  };
}

// ---- what the manager does

// 0.05 ms to 0.8 s, as the kubelet's.
const KUBELET_BUCKETS_MS = Array.from({ length: 15 }, (_, i) => 0.05 * 2 ** i);
const BUCKETS_S = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];
const WAIT_BUCKETS_S = [0.01, 0.1, 1, 5, 15, 60, 300, 900, 3600, 14_400];

const ALIGNED = ['scope', 'boundary'];
const PHYSICAL_CPUS = { scope: 'container', boundary: 'physical_cpu' };
const NUMA_NODE = 'numa_node';

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
    const cpus = allocations(message, CPU_STAGE, ({ exclusiveCpus }) => exclusiveCpus > 0);
    const cpuFailures = stage === CPU_STAGE ? 1 : 0;
    cpuPinnings.inc(cpus);
    cpuErrors.inc(cpuFailures);
    memoryPinnings.inc(allocations(message, MEMORY_STAGE, ({ booksMemory }) => booksMemory));
    memoryErrors.inc(stage === MEMORY_STAGE ? 1 : 0);
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

// The kubelet goes from container to container: it aligns, and then has its managers allocate in
// this order. Where one fails it stops.
const AFFINITY_STAGE = 0;
const CPU_STAGE = 2;
const MEMORY_STAGE = 3;
const STAGES: { readonly [C in ErrorCode]?: number } = {
  ERR_TOPOLOGY_AFFINITY: AFFINITY_STAGE,
  ERR_INSUFFICIENT_DEVICES: 1,
  ERR_PREFERRED_ALLOCATION: 1,
  ERR_SMT_ALIGNMENT: CPU_STAGE,
  ERR_INSUFFICIENT_CPUS: CPU_STAGE,
  ERR_SHARED_POOL_EMPTY: CPU_STAGE,
  ERR_INSUFFICIENT_MEMORY: MEMORY_STAGE,
};
const LAST_STAGE = 4;

function stageOf(code: string | null): number {
  return STAGES[code as ErrorCode] ?? LAST_STAGE;
}

/**
 * For how many containers that ask for it the kubelet would have come to the manager of this stage.
 */
function allocations(
  message: AdmitMessage,
  stage: number,
  asks: (container: DiagnosticsContainer) => boolean,
): number {
  const { outcome, code, container, containers } = message;
  if (isPlaced(message)) return containers.filter(asks).length;
  if (outcome !== 'rejected') return 0;
  const failedAt = stageOf(code);
  const failing = containers.findIndex(({ name }) => name === container);
  // None of them: the pod could not be aligned, or, once all had what they need, it would have left
  // nothing to share.
  if (failing < 0) return failedAt === AFFINITY_STAGE ? 0 : containers.filter(asks).length;
  return containers.slice(0, failedAt >= stage ? failing + 1 : failing).filter(asks).length;
}

function requests(metrics: MetricSet): Handlers {
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

function steps(metrics: MetricSet): Handlers {
  const reconciles = metrics.histogram(
    'reconcile_duration_seconds',
    'How long it took to compare what is with what should be, and to repair it.',
    BUCKETS_S,
  );
  const checked = metrics.counter('reconcile_checks_total', 'What was compared.');
  const repaired = metrics.counter(
    'reconcile_repairs_total',
    'What was not as it should be, and was repaired.',
  );
  const writes = metrics.counter('reconcile_writes_total', 'Writes to the kernel and to the state for that.');
  const contested = metrics.gauge(
    'contested',
    'What is not repaired any more, since somebody always changes it back.',
  );
  const drifts = metrics.counter('drift_total', 'What was not as it should be, by its kind.', [
    'kind',
    'repaired',
  ]);
  const errors = metrics.counter(
    'errors_total',
    'Steps of this manager that failed. A rejection is no error.',
    ['step', 'code'],
  );
  return {
    reconcile: (message) => {
      reconciles.observe(message.durationMs / 1000);
      if (message.error !== null) return;
      checked.inc(message.checked);
      repaired.inc(message.repaired);
      writes.inc(message.writes);
      contested.set(message.contested);
    },
    drift: ({ kind, repaired }) => drifts.inc({ kind, repaired: String(repaired) }),
    error: ({ step, code }) => errors.inc({ step, code }),
  };
}

function changes(metrics: MetricSet): (change: StateChange) => void {
  const added = metrics.counter('grants_added_total', 'Grants that have come, whichever process made them.');
  const removed = metrics.counter(
    'grants_removed_total',
    'Grants that have ended, whichever process made them.',
  );
  return (change) => {
    added.inc(change.added.length);
    removed.inc(change.removed.length);
  };
}

// ---- what the state says

/**
 * One look for all metrics of a scrape, which are asked one after the other, at once. Undefined
 * where the state cannot be read.
 */
function oncePerScrape<T>(read: () => T): () => T | undefined {
  let seen: { readonly value: T | undefined } | undefined;
  return () => {
    if (seen === undefined) {
      seen = { value: unlessUnreadable(read) };
      queueMicrotask(() => {
        seen = undefined;
      });
    }
    return seen.value;
  };
}

function state(metrics: MetricSet, manager: Manager): void {
  const look = oncePerScrape(() => readSnapshot(manager));
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
  const memory = (name: string, help: string, bytes: 'allocatable' | 'free') =>
    byLabels(name, help, ['numa_node', 'type'], (now) =>
      now.memory.map((table) => [{ numa_node: String(table.node), type: table.type }, table[bytes]]),
    );
  memory('memory_allocatable_bytes', 'Memory that can be granted, granted or not.', 'allocatable');
  memory('memory_free_bytes', 'Memory that is not granted, whoever uses it.', 'free');
}

type Snapshot = ReturnType<typeof readSnapshot>;

/** Undefined where the state cannot be read, or nobody can tell from it what is free. */
function unlessUnreadable<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof NumalignError) return undefined;
    throw error;
  }
}

function readSnapshot(manager: Manager) {
  const { generation, sharedPool, freeCpus, settings, memory, refusal } = manager;
  const grants = manager.grants();
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
    exclusiveCpus,
    isUsable: refusal === null,
  };
}

// ---- what happens to the grants

const OF_GRANT = ['grant', 'name'];

function grantActivity(metrics: MetricSet, manager: Manager): void {
  const watched = new WatchedGrants('first look');
  const look = oncePerScrape(() => {
    const { topology } = manager;
    const pods = livingPods(manager);
    const audits = watched.look(topology, pods);
    return pods.map((pod, i) => {
      const cpus = presentCpus(pod);
      const numaNodes = topology.nodesOf(cpus);
      return { pod, cpus, numaNodes, totals: audits[i]!.totals, throttling: audits[i]!.throttling };
    });
  });
  type Seen = NonNullable<ReturnType<typeof look>>[number];
  const labelsOf = ({ pod }: Seen) => ({ grant: pod.uid, name: pod.name });
  metrics.gauge(
    'grant_info',
    'A grant of a living owner: 1, and its CPUs, their NUMA nodes, and how strongly others are kept off.',
    [...OF_GRANT, 'cpus', 'numa_nodes', 'enforcement'],
    () =>
      look()?.map((seen) => {
        const { pod, cpus, numaNodes } = seen;
        const more = { cpus: `${cpus}`, numa_nodes: `${numaNodes}`, enforcement: pod.enforcement.level };
        return [{ ...labelsOf(seen), ...more }, 1] as const;
      }),
  );
  const counter = (name: string, help: string, amountOf: (seen: Seen) => number | null) =>
    metrics.counter(name, help, OF_GRANT, () =>
      look()?.flatMap((seen) => {
        const value = amountOf(seen);
        return value === null ? [] : [[labelsOf(seen), value] as const];
      }),
    );
  const seconds = (ns: number | null) => ns && ns / 1e9;
  // Nobody knows who runs on a persistent grant.
  const ofThreads = ({ pod, totals }: Seen, name: keyof AuditTotals) =>
    pod.owner.kind === 'persistent' ? null : totals[name];

  counter('grant_run_seconds_total', 'How long threads of the grant have run on its CPUs.', (seen) =>
    seconds(ofThreads(seen, 'runTimeNs')),
  );
  counter(
    'grant_run_delay_seconds_total',
    'How long threads of the grant could have run and had to wait.',
    (seen) => seconds(ofThreads(seen, 'runDelayNs')),
  );
  counter(
    'grant_involuntary_switches_total',
    'How many times a thread of the grant had to leave its CPU to another.',
    (seen) => ofThreads(seen, 'involuntarySwitches'),
  );
  counter(
    'grant_foreign_tasks_total',
    'How many times a task of another process was found on CPUs of the grant that was not there at the scrape before.',
    ({ totals }) => totals.foreignTasks,
  );
  counter('grant_interrupts_total', 'Interrupts on CPUs of the grant.', ({ totals }) => totals.interrupts);
  counter(
    'grant_steal_seconds_total',
    'How long the hypervisor ran somebody else on CPUs of the grant.',
    ({ totals }) => seconds(totals.stealNs),
  );
  counter(
    'grant_throttled_seconds_total',
    'How long a quota has stopped the cgroups of the grant’s processes.',
    ({ throttling }) => seconds(throttling?.throttledNs ?? null),
  );
}
