// The options of the metrics.
import type { Registry } from 'prom-client';
import { checkOptions, invalidOption } from '../base/check-options.js';

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

// ---- options

export const KUBELET_PREFIX = 'kubelet_';

export type ParsedOptions = Required<Omit<MetricsOptions, 'register'>> & Pick<MetricsOptions, 'register'>;

const OPTIONS = ['register', 'prefix', 'kubeletPrefix', 'watch', 'audit', 'requests'] as const;

export function parseOptions(options: MetricsOptions): ParsedOptions {
  const {
    register,
    prefix = 'numalign_',
    kubeletPrefix = KUBELET_PREFIX,
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
