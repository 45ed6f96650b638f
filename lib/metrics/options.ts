// The options of the metrics.
import type { Registry } from 'prom-client';
import { checkOptions, invalidOption } from '../base/check-options.js';
import { KUBELET_PREFIX } from './sinks/metric-sink.js';

/** How the metrics of each grant are made. */
export interface GrantMetricsOptions {
  /**
   * How many grants have series of their own, the first ones on record: all others are summed under
   * the label `other`. 0 to 10,000, default 100.
   */
  max?: number;
  /**
   * Also how much of their processes' memory is on other NUMA nodes. A scrape then has the kernel
   * walk through all their memory, for a millisecond and more a process. Default: false.
   */
  memory?: boolean;
}

/** What {@link collectMetrics} takes. */
export interface MetricsOptions {
  /** Where the metrics are registered. Default: prom-client's own registry. */
  register?: Registry;
  /** Before the names of numalign's own metrics. Default: `numalign_`. */
  prefix?: string;
  /**
   * Before the names of what the kubelet has too. Default: `kubelet_`, as the kubelet exposes them;
   * but for those that it exposes without: these have none by default.
   */
  kubeletPrefix?: string;
  /**
   * Also count the grants that come and go, whichever process makes them. It listens to the
   * manager's `change` for that: this keeps the process alive, and what dead owners had is taken
   * back. Default: false.
   */
  watch?: boolean;
  /**
   * Also show each grant of a living owner, in whatever process it is: how it stands, and what
   * happens on its CPUs: run delay, involuntary switches, interrupts, tasks of others. Each scrape
   * then looks at every process of the machine, in this thread, for milliseconds (docs/audit.md). On
   * a simulated machine only how they stand. Default: false.
   */
  audit?: boolean;
  /** How grants are shown, with `audit`. */
  grants?: GrantMetricsOptions;
  /**
   * Count what is asked of this manager itself: admissions, releases and moves of threads. A
   * process that only watches over the grants of others has nothing to show there. Default: true.
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
  const parsed = { prefix, kubeletPrefix, watch, audit, requests, grants: parseGrants(grants) };
  return { ...(register && { register }), ...parsed };
}
