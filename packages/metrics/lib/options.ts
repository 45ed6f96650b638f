// The options of the metrics.
import { checkOptions, invalidOption } from 'numalign/tools';
import type { Registry } from 'prom-client';
import { KUBELET_PREFIX } from './sinks/metric-sink.js';

/** How `audit` shows grants. */
export interface GrantMetricsOptions {
  /**
   * How many grants have their own series, the first on record; the others are summed under the label
   * `other`. 0 to 10,000.
   * @default 100
   */
  max?: number;
  /**
   * Measures how much memory of the grants' processes is on other NUMA nodes. The kernel walks through
   * all their memory at each scrape, for a millisecond or more a process.
   * @default `false`
   */
  memory?: boolean;
}

/** The options of {@link collectMetrics}. */
export interface MetricsOptions {
  /**
   * The registry, which must not have these names yet.
   * @default prom-client's own
   */
  register?: Registry;
  /**
   * The prefix of numalign's own metrics.
   * @default `numalign_`
   */
  prefix?: string;
  /**
   * The prefix of the kubelet's metrics.
   * @default `kubelet_`, and none for those that the kubelet has without it
   */
  kubeletPrefix?: string;
  /**
   * Counts grants of any process as they come and go. It listens to `change`: it keeps the process alive
   * and takes grants of dead owners back.
   * @default `false`
   */
  watch?: boolean;
  /**
   * Shows each grant of a living owner, of any process. Each scrape looks at every process of the
   * machine in this thread, for milliseconds: see docs/audit.md. A simulated machine has only the
   * enforcement and the flags of grants.
   * @default `false`
   */
  audit?: boolean;
  /**
   * How `audit` shows grants.
   * @default `{ max: 100, memory: false }`
   */
  grants?: GrantMetricsOptions;
  /**
   * Counts the admissions, releases and thread moves of this manager.
   * @default `true`
   */
  requests?: boolean;
}

export type ParsedOptions = Required<Omit<MetricsOptions, 'register' | 'grants'>> &
  Pick<MetricsOptions, 'register'> & { readonly grants: Readonly<Required<GrantMetricsOptions>> };

const OPTIONS = ['register', 'prefix', 'kubeletPrefix', 'watch', 'audit', 'grants', 'requests'] as const;

const MOST_GRANTS = 10_000;

/** @throws ERR_INVALID_OPTION */
export function parseGrants(options: unknown): Required<GrantMetricsOptions> {
  const { max = 100, memory = false } = checkOptions(
    options,
    ['max', 'memory'],
    'grants',
  ) as GrantMetricsOptions;
  if (!Number.isInteger(max) || max < 0 || max > MOST_GRANTS)
    invalidOption('grants.max', max, `a whole number from 0 to ${MOST_GRANTS}`);
  checkFlags({ 'grants.memory': memory });
  return { max, memory };
}

/** @throws ERR_INVALID_OPTION */
export function checkFlags(flags: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(flags)) {
    if (typeof value !== 'boolean') invalidOption(name, value, 'true or false');
  }
}

export function parseOptions(options: MetricsOptions): ParsedOptions {
  const {
    register,
    prefix = 'numalign_',
    kubeletPrefix = KUBELET_PREFIX,
    watch = false,
    audit = false,
    grants = {},
    requests = true,
  } = checkOptions(options, OPTIONS, 'collectMetrics') as MetricsOptions;
  if (register !== undefined && typeof register?.registerMetric !== 'function') {
    invalidOption('register', register, 'a Registry of prom-client');
  }
  for (const [name, value] of Object.entries({ prefix, kubeletPrefix })) {
    if (typeof value === 'string' && /^([a-zA-Z_:][a-zA-Z0-9_:]*)?$/.test(value)) continue;
    invalidOption(name, value, 'letters, digits, _ and :, not a digit first');
  }
  checkFlags({ watch, audit, requests });
  const settings = { prefix, kubeletPrefix, watch, audit, requests, grants: parseGrants(grants) };
  return { ...(register && { register }), ...settings };
}
