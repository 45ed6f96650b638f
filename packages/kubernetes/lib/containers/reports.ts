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

  /** What still disturbs the CPUs of a container that is to be quiet: it runs all the same. */
  disturbed(pod: PodSandbox, container: Container, disturbances: readonly string[]): void {
    if (disturbances.length === 0) return;
    const { prefix, log } = this.#options;
    const [subject, what] = [subjectOf(pod, container), `is not fully quiet: ${disturbances.join('; ')}`];
    log('warn', `${grantName(prefix, pod, container)} ${what}`, { ...fieldsOf(subject), id: container.id });
    this.#event(subject, 'Warning', 'NotQuiet', `container ${container.name} ${what}`);
  }

  /** A container asks for CPUs of its own beside those of its claim, which are all that it has. */
  doubled(pod: PodSandbox, container: Container, cpus: number): void {
    const what = `asks for ${cpus} CPUs of its own, and has those of its claim instead`;
    const { prefix, log } = this.#options;
    const subject = subjectOf(pod, container);
    log('warn', `${grantName(prefix, pod, container)} ${what}`, { ...fieldsOf(subject), id: container.id });
    this.#event(subject, 'Warning', 'CPUsOfClaim', `container ${container.name} ${what}`);
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

  /** Grants of containers have ended, here or elsewhere, or do not hold any more. */
  readonly changed = ({ removed, flagged }: StateChange): void => {
    for (const grant of removed) if (this.#isOwn(grant)) this.#released(grant);
    for (const grant of flagged) if (this.#isOwn(grant)) this.#flagged(grant);
  };

  #isOwn({ name }: GrantInfo): boolean {
    return name.startsWith(`${this.#options.prefix}:`);
  }

  /** `NAMESPACE/POD` and the container, as {@link grantName} has them. */
  #namesIn({ name }: GrantInfo): LogFields {
    const [namespace, pod, container] = name.slice(this.#options.prefix.length + 1).split('/');
    return { pod: `${namespace}/${pod}`, container };
  }

  // For example, a CPU is offline.
  #flagged(grant: GrantInfo): void {
    for (const { code, message } of grant.flags)
      this.#options.log('warn', `${grant.name}: ${message}`, { ...this.#namesIn(grant), code });
  }

  #released(grant: GrantInfo): void {
    const { name, uid, cpus } = grant;
    this.#releases.add();
    const what = cpus.isEmpty ? 'what was booked' : `CPUs ${cpus}`;
    this.#options.log('info', `${name} has ended: ${what} can be granted again`, {
      ...this.#namesIn(grant),
      ...{ decision: 'release', cpus: `${cpus}`, grant: uid },
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
