// @numalign/metrics: Prometheus metrics of what a manager does and what its state says. It needs the
// package prom-client beside it.
import { ManagerView, type StateChange } from 'numalign';
import { invalidOption } from 'numalign/tools';
import type { Registry } from 'prom-client';
import { BUCKETS_S, requests } from './admissions.js';
import { grantActivity } from './grants/grant-activity.js';
import { GrantLook } from './grants/grant-look.js';
import { type Handlers, subscribeTo } from './handlers.js';
import { type MetricsOptions, parseOptions } from './options.js';
import { loadPromClient, MetricSet } from './sinks/metric-set.js';
import { state, stateLook } from './state.js';

export type { GrantMetricsOptions, MetricsOptions } from './options.js';

/** The metrics that are being collected. `using` stops it. */
export interface MetricsCollection {
  /** The registry of prom-client that has the metrics; `await register.metrics()` is a scrape. */
  readonly register: Registry;
  /** Stops collecting and removes the metrics from the registry. */
  stop(): void;
  /** As {@link stop}. */
  [Symbol.dispose](): void;
}

/**
 * Collects Prometheus metrics of what `manager` does from now on, and of what its state says at
 * each scrape. docs/reference/metrics.md lists them, docs/metrics.md explains them.
 * @throws ERR_OPTIONAL_DEPENDENCY without prom-client; ERR_INVALID_OPTION, also if the registry has
 *   one of the names; ERR_MANAGER_CLOSED with `watch`
 */
export function collectMetrics(manager: ManagerView, options: MetricsOptions = {}): MetricsCollection {
  if (!(manager instanceof ManagerView)) invalidOption('manager', manager, 'a manager that openManager gave');
  const settings = parseOptions(options);
  const client = loadPromClient();
  const metrics = new MetricSet(client, settings);
  const { register = client.register } = settings;
  const handlers: Handlers = { ...(settings.requests && requests(metrics)), ...steps(metrics) };
  const look = stateLook(manager);
  state(metrics, manager, look);
  if (settings.audit) grantActivity(metrics, new GrantLook(manager, look, settings.grants));
  const onChange = settings.watch ? changes(metrics) : undefined;
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

function steps(metrics: MetricSet): Handlers {
  const reconciles = metrics.histogram(
    'reconcile_duration_seconds',
    'How long rounds of reconciling took.',
    BUCKETS_S,
  );
  const checks = metrics.counter('reconcile_checks_total', 'Items that reconciling compared.');
  const repairs = metrics.counter('reconcile_repairs_total', 'Items that reconciling repaired.');
  const writes = metrics.counter(
    'reconcile_writes_total',
    'Writes of reconciling to the kernel and to the state.',
  );
  const contested = metrics.gauge(
    'contested',
    'Items that the last round did not repair, because another program always changes them back.',
  );
  const drifts = metrics.counter('drift_total', 'Differences that reconciling found, by kind.', [
    'kind',
    'repaired',
  ]);
  const errors = metrics.counter(
    'errors_total',
    'Failed steps of this manager. A rejection is not an error.',
    ['step', 'code'],
  );
  return {
    reconcile: (message) => {
      reconciles.observe(message.durationMs / 1000);
      if (message.error !== null) return;
      checks.inc(message.checked);
      repairs.inc(message.repaired);
      writes.inc(message.writes);
      contested.set(message.contested);
    },
    drift: ({ kind, repaired }) => drifts.inc({ kind, repaired: String(repaired) }),
    error: ({ step, code }) => errors.inc({ step, code }),
  };
}

function changes(metrics: MetricSet): (change: StateChange) => void {
  const addedCount = metrics.counter(
    'grants_added_total',
    'New grants of any process, with watch. A grant of a few milliseconds can be missed.',
  );
  const removedCount = metrics.counter('grants_removed_total', 'Ended grants of any process, with watch.');
  return (change) => {
    addedCount.inc(change.added.length);
    removedCount.inc(change.removed.length);
  };
}
