// ObservedHandlers: handlers of a runtime's calls that report what they answer, and how long that took.
import type { Log } from '../base/log.js';
import type { Kind, Reports } from '../containers/reports.js';
import type { Histogram, Metrics } from '../metrics/metrics.js';
import { HANDLER_NAMES, type NriHandlers } from '../nri/handlers.js';
import type { Container, ContainerAdjustment, ContainerUpdate, PodSandbox } from '../nri/messages.js';
import { CPUS_VARIABLE, GRANT_VARIABLE } from '../placement/allocation.js';

type CallName = (typeof HANDLER_NAMES)[number];

// A runtime waits 2 s.
const BUCKETS_S = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5];

export interface Observer {
  readonly reports: Reports;
  readonly metrics: Metrics;
  readonly log: Log;
}

/** Calls of a runtime, the oldest first. */
export class CallsInProgress {
  readonly #starts = new Set<{ readonly name: string; readonly since: number }>();

  /** The call that has not been answered for the longest time; undefined if there is none. */
  get oldest(): { readonly name: string; readonly ms: number } | undefined {
    const [first] = this.#starts;
    return first && { name: first.name, ms: performance.now() - first.since };
  }

  /** Returns what ends the call, and answers how many milliseconds it took. */
  begin(name: string): () => number {
    const start = { name, since: performance.now() };
    this.#starts.add(start);
    return () => {
      this.#starts.delete(start);
      return performance.now() - start.since;
    };
  }
}

/** The same handlers; each call is counted among `calls` until its answer. */
export function observedHandlers(
  handlers: NriHandlers,
  calls: CallsInProgress,
  { reports, metrics, log }: Observer,
): NriHandlers {
  const durations = metrics.histogram(
    'call_duration_seconds',
    'How long the calls of the runtime took: what a container has to wait for its CPUs is in createContainer.',
    BUCKETS_S,
    ['call'],
  );
  const observe = (name: CallName) => {
    const handle = (...args: unknown[]) => (handlers[name] as (...args: unknown[]) => unknown)(...args);
    return async (...args: unknown[]): Promise<unknown> => {
      const end = calls.begin(name);
      try {
        const answer = await handle(...args);
        const ms = finish(durations, name, end());
        log('debug', `${name} is answered`, { call: name, ms });
        report(reports, name, args, answer, ms);
        return answer;
      } catch (error) {
        const ms = finish(durations, name, end());
        if (name === 'createContainer' || name === 'updateContainer')
          reports.refused(args[0] as PodSandbox, args[1] as Container, name, error, ms);
        throw error;
      }
    };
  };
  const names = HANDLER_NAMES.filter((name) => handlers[name]);
  return Object.fromEntries(names.map((name) => [name, observe(name)])) as unknown as NriHandlers;
}

/** Returns the milliseconds as people read them. */
function finish(durations: Histogram, call: CallName, ms: number): number {
  durations.observe(ms / 1000, { call });
  return Math.round(ms * 1000) / 1000;
}

function report(reports: Reports, name: CallName, args: unknown[], answer: unknown, ms: number): void {
  const [pod, container] = args as [PodSandbox, Container];
  if (name === 'createContainer') {
    const { adjust = {} } = answer as { adjust?: ContainerAdjustment };
    const { cpus = '', mems = '' } = adjust.linux?.resources?.cpu ?? {};
    reports.admitted(pod, container, { kind: kindOf(adjust), cpus: cpus ?? '', mems: mems ?? '', ms });
  } else if (name === 'updateContainer') {
    const own = (answer as ContainerUpdate[]).find(({ container_id: id }) => id === container.id);
    const cpus = own?.linux.resources.cpu?.cpus;
    if (cpus) reports.updated(pod, container, cpus, ms);
  }
}

function kindOf({ env = [] }: ContainerAdjustment): Kind {
  const has = (name: string) => env.some(({ key }) => key === name);
  return has(CPUS_VARIABLE) ? 'exclusive' : has(GRANT_VARIABLE) ? 'booked' : 'shared';
}
