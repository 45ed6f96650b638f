// @numalign/metrics/opentelemetry: the metrics of the state and of each grant, for a meter of
// OpenTelemetry.
import { createRequire } from 'node:module';
import type { BatchObservableCallback, Meter, Observable } from '@opentelemetry/api';
import { ManagerView } from 'numalign';
import { checkOptions, invalidOption } from 'numalign/tools';
import { grantActivity } from './grants/grant-activity.js';
import { GrantLook } from './grants/grant-look.js';
import { checkFlags, type GrantMetricsOptions, parseGrants } from './options.js';
import { MeterSink } from './sinks/meter-sink.js';
import { loadOptional } from './sinks/optional-package.js';
import { state, stateLook } from './state.js';

export type { GrantMetricsOptions } from './options.js';

/** The options of {@link registerMetrics}. */
export interface MeterOptions {
  /**
   * The meter that makes the instruments.
   * @default the meter `numalign` of the global provider, in the version of this package
   */
  meter?: Meter;
  /**
   * As {@link MetricsOptions.audit}.
   * @default `false`
   */
  audit?: boolean;
  /**
   * How `audit` shows grants.
   * @default `{ max: 100, memory: false }`
   */
  grants?: GrantMetricsOptions;
}

/** The registered instruments. `using` stops them. */
export interface MeterRegistration {
  /** Stops observing. */
  stop(): void;
  /** As {@link stop}. */
  [Symbol.dispose](): void;
}

/**
 * Registers observable instruments of what the state of `manager` says and, with `audit`, of each
 * grant. One callback reads everything when a reader collects; without an SDK nothing is read. See
 * docs/metrics.md.
 * @throws ERR_OPTIONAL_DEPENDENCY without a `meter` and `@opentelemetry/api`; ERR_INVALID_OPTION
 */
export function registerMetrics(manager: ManagerView, options: MeterOptions = {}): MeterRegistration {
  if (!(manager instanceof ManagerView)) invalidOption('manager', manager, 'a manager that openManager gave');
  const fields = checkOptions(options, ['meter', 'audit', 'grants'], 'registerMetrics') as MeterOptions;
  const { audit = false, grants = {} } = fields;
  checkFlags({ audit });
  const grantOptions = parseGrants(grants);
  const meter = meterOf(fields);
  const sink = new MeterSink(meter);
  const look = stateLook(manager);
  state(sink, manager, look);
  if (audit) grantActivity(sink, new GrantLook(manager, look, grantOptions));
  const callback: BatchObservableCallback = (result) => sink.observe(result);
  const instruments: Observable[] = [...sink.instruments];
  meter.addBatchObservableCallback(callback, instruments);
  const stop = () => meter.removeBatchObservableCallback(callback, instruments);
  return Object.freeze({ stop, [Symbol.dispose]: stop });
}

const version = () => (createRequire(import.meta.url)('../package.json') as { version: string }).version;

function meterOf({ meter }: MeterOptions): Meter {
  if (meter === undefined) return loadApi().metrics.getMeter('numalign', version());
  if (typeof meter?.addBatchObservableCallback !== 'function')
    invalidOption('meter', meter, 'a Meter of OpenTelemetry');
  return meter;
}

/** @throws ERR_OPTIONAL_DEPENDENCY */
function loadApi(): typeof import('@opentelemetry/api') {
  return loadOptional(
    '@opentelemetry/api',
    'without a meter registerMetrics needs the package @opentelemetry/api beside @numalign/metrics: npm install @opentelemetry/api',
  );
}
