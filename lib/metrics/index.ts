// Metrics: what a manager does and what its state says, for Prometheus, by prom-client. The
// package's `numalign/metrics`.

import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Registry } from 'prom-client';
import {
  DIAGNOSTICS_CHANNELS,
  type DiagnosticsMessages,
  type DiagnosticsStep,
} from '../admission/diagnostics.js';
import type { StateChange } from '../admission/manager-watch.js';
import { checkOptions, invalidOption } from '../base/check-options.js';
import { Manager } from '../manager.js';
import { BUCKETS_S, requests } from './admissions.js';
import { grantActivity } from './grant-activity.js';
import { loadPromClient, MetricSet } from './metric-set.js';
import { state } from './state.js';

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

export type ParsedOptions = Required<Omit<MetricsOptions, 'register'>> & Pick<MetricsOptions, 'register'>;

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

export type Handlers = { readonly [S in DiagnosticsStep]?: (message: DiagnosticsMessages[S]) => void };

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
