// Reports: what is decided for containers, as lines of the log, metrics and Events.
import type { GrantInfo, StateChange } from 'numalign';
import type { Log, LogFields } from '../base/log.js';
import type { PodSubject, RecordEvent } from '../events/event.js';
import type { Counter, Metrics } from '../metrics/metrics.js';
import type { Container, PodSandbox } from '../nri/messages.js';
import { grantName } from '../placement/container-request.js';
import type { KnownContainer } from './inventory.js';

export interface ReportsOptions {
  /** The prefix of grants' names. */
  readonly prefix: string;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly recordEvent: RecordEvent;
}

/** The calls of a runtime in which a container can be refused. */
export type DecidingCall = 'createContainer' | 'updateContainer' | 'synchronize';

/** What a container has: CPUs of its own, only something else of its own, or nothing. */
export const KINDS = ['exclusive', 'booked', 'shared'] as const;
export type Kind = (typeof KINDS)[number];

export interface Admission {
  readonly kind: Kind;
  readonly cpus: string;
  /** Empty: all. */
  readonly mems: string;
  readonly ms?: number;
}

/** A container, as its runtime reports it. */
export const subjectOf = (
  { namespace, name, uid }: PodSandbox,
  container: Pick<Container, 'name'>,
): PodSubject => ({ kind: 'Pod', namespace: namespace || 'default', name, uid, container: container.name });

/** How the log names a container. */
export const fieldsOf = ({ namespace, name, container }: PodSubject): LogFields => ({
  pod: `${namespace}/${name}`,
  container,
});

export class Reports {
  readonly #options: ReportsOptions;
  readonly #admissions: Counter;
  readonly #refusals: Counter;
  readonly #releases: Counter;
  readonly #repairs: Counter;
  readonly #failedRepairs: Counter;

  constructor(options: ReportsOptions) {
    this.#options = options;
    const { metrics } = options;
    this.#admissions = metrics.counter(
      'admissions_total',
      'Containers that a runtime has asked to create, by what they got, and the code of the error.',
      ['result', 'reason'],
    );
    this.#refusals = metrics.counter(
      'refusals_total',
      'Containers that did not get what they asked for, by the call of the runtime and the code of the error.',
      ['call', 'reason'],
    );
    this.#releases = metrics.counter('releases_total', 'Grants of containers that have ended.');
    this.#repairs = metrics.counter(
      'repairs_total',
      'Containers that were put back after another program had moved them.',
      ['kind'],
    );
    this.#failedRepairs = metrics.counter(
      'failed_repairs_total',
      'Containers that could not be put back after another program had moved them.',
    );
    for (const result of KINDS) this.#admissions.add({ result, reason: '' }, 0);
    for (const kind of ['exclusive', 'shared']) this.#repairs.add({ kind }, 0);
  }

  /** A container was created, or was placed while it ran. */
  admitted(pod: PodSandbox, container: Container, { kind, cpus, mems, ms }: Admission): void {
    if (ms !== undefined) this.#admissions.add({ result: kind, reason: '' });
    const place = placeText({ kind, cpus, mems });
    this.#tell(pod, container, place, { decision: 'admit', kind, cpus, mems, ms });
    if (kind !== 'exclusive') return;
    this.#event(subjectOf(pod, container), 'Normal', 'CPUsAssigned', `container ${container.name} ${place}`);
  }

  /** Another client has changed a container. */
  updated(pod: PodSandbox, container: Container, cpus: string, ms: number): void {
    this.#tell(pod, container, `is updated: it has CPUs ${cpus}`, { decision: 'update', cpus, ms });
  }

  /** A container did not get what it asked for. */
  refused(pod: PodSandbox, container: Container, call: DecidingCall, error: unknown, ms?: number): void {
    const { message, code = 'ERR_INTERNAL' } = error as Error & { code?: string };
    this.#refusals.add({ call, reason: code });
    if (call === 'createContainer') this.#admissions.add({ result: 'refused', reason: code });
    const [level, what, reason] = REFUSALS[call];
    const text = `${grantName(this.#options.prefix, pod, container)} ${what}: ${message}`;
    const subject = subjectOf(pod, container);
    const facts = { decision: 'refuse', id: container.id, call, code, ms } as const;
    this.#options.log(level, text, { ...fieldsOf(subject), ...facts });
    this.#event(subject, 'Warning', reason, `container ${container.name} ${what}: ${message}`);
  }

  /** Grants of containers have ended, whoever released them. */
  readonly changed = ({ removed }: StateChange): void => {
    for (const grant of removed) if (grant.name.startsWith(`${this.#options.prefix}:`)) this.#released(grant);
  };

  #released({ name, uid, cpus }: GrantInfo): void {
    this.#releases.add();
    const [namespace, pod, container] = name.slice(this.#options.prefix.length + 1).split('/');
    const what = cpus.isEmpty ? 'what was booked' : `CPUs ${cpus}`;
    this.#options.log('info', `${name} has ended: ${what} can be granted again`, {
      ...{ pod: `${namespace}/${pod}`, container, decision: 'release', cpus: `${cpus}`, grant: uid },
    });
  }

  /** Another program has moved a container, which was put back; `what`: from where to where. */
  repaired(container: KnownContainer, what: string): void {
    this.#repairs.add({ kind: container.placement?.cpus ? 'exclusive' : 'shared' });
    this.#moved(container, what, 'CPUsRestored');
  }

  /** A container could not be put back. */
  notRepaired(container: KnownContainer, what: string): void {
    this.#failedRepairs.add();
    this.#moved(container, what, 'CPUsNotRestored');
  }

  #moved({ id, title, subject }: KnownContainer, what: string, reason: string): void {
    const fields = { ...fieldsOf(subject), id, decision: 'repair' } as const;
    this.#options.log('warn', `another program has put ${title} ${what}`, fields);
    const message = `another program has put container ${subject.container} ${what}`;
    this.#event(subject, 'Warning', reason, message);
  }

  #tell(pod: PodSandbox, container: Container, what: string, facts: LogFields): void {
    const { prefix, log } = this.#options;
    const fields = { ...fieldsOf(subjectOf(pod, container)), id: container.id, ...facts };
    log('info', `${grantName(prefix, pod, container)} ${what}`, fields);
  }

  // Without a uid, the pod is not one of an API server.
  #event(about: PodSubject, type: 'Normal' | 'Warning', reason: string, message: string): void {
    if (about.uid !== '') this.#options.recordEvent({ about, type, reason, message });
  }
}

function placeText({ kind, cpus, mems }: Admission): string {
  const pool = cpus === '' ? 'is in the shared pool' : `shares CPUs ${cpus}`;
  return `${kind === 'exclusive' ? `has CPUs ${cpus}` : pool}${mems === '' ? '' : `, memory of NUMA nodes ${mems}`}`;
}

/** By the call: the level, what becomes of the container, and the Event's reason. */
const REFUSALS = {
  createContainer: ['warn', 'is refused', 'PlacementRefused'],
  updateContainer: ['warn', 'is not updated', 'ResizeRefused'],
  synchronize: ['error', 'stays in the shared pool', 'NotPlaced'],
} as const satisfies Record<DecidingCall, readonly ['warn' | 'error', string, string]>;
