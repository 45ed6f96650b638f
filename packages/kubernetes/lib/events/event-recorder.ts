// EventRecorder: writes Events to the API server, one object for each subject and reason.
import type { ApiError } from '../api-server/api-error.js';
import type { ApiServer } from '../api-server/api-server.js';
import { pause } from '../api-server/backoff.js';
import type { KubernetesObject, Resource } from '../api-server/resource.js';
import type { Condition } from '../base/condition.js';
import type { Log } from '../base/log.js';
import { type Counter, type Metrics, NO_METRICS } from '../metrics/metrics.js';
import type { NodeEvent, RecordEvent } from './event.js';
import { eventObject, keyOf, namespaceOf, type Occurrence, repetition } from './event-object.js';

export interface EventRecorderOptions {
  /** Its `patienceMs` is how long an Event is tried. */
  readonly apiServer: Pick<ApiServer, 'create' | 'patch'>;
  readonly nodeName: string;
  readonly log: Log;
  readonly metrics?: Metrics;
  /** The least time between two writes of an object, in milliseconds. Default: 10,000. */
  readonly repeatMs?: number;
}

interface Entry extends Occurrence {
  isWaiting: boolean;
  /** When it may be written again. */
  earliest: number;
}

// Objects that are remembered, and those that wait to be written. Beyond that, Events are dropped.
const MOST_KEPT = 512;
const MOST_WAITING = 128;

/**
 * Writes one Event after the other, and never makes a caller wait. What happens again only raises
 * the count of its object, with its latest message. An Event that cannot be written is dropped; each
 * kind of error is logged once until it is over.
 */
export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #repeatMs: number;
  readonly #end = new AbortController();
  // The one that happened last comes last.
  readonly #entries = new Map<string, Entry>();
  readonly #waiting = new Set<Entry>();
  readonly #results: Counter;
  #writing: Promise<void> | undefined;
  #wake = new AbortController();
  // Its code.
  #failure: string | undefined;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    const { metrics = NO_METRICS, repeatMs = 10_000 } = options;
    this.#repeatMs = repeatMs;
    this.#results = metrics.counter('events_total', 'Kubernetes Events, by what became of them.', ['result']);
    for (const result of ['written', 'failed', 'dropped']) this.#results.add({ result }, 0);
  }

  /** Whether the last Event could be written. */
  get condition(): Condition {
    const isMet = this.#failure === undefined;
    const text = isMet ? 'Events are written' : `Events cannot be written: ${this.#failure}`;
    return { part: 'events', isMet, isVital: false, text };
  }

  readonly record: RecordEvent = (event) => {
    if (this.#end.signal.aborted) return;
    const entry = this.#entryOf(event);
    if (entry.isWaiting) return;
    if (this.#waiting.size >= MOST_WAITING) {
      this.#results.add({ result: 'dropped' });
      return;
    }
    entry.isWaiting = true;
    this.#waiting.add(entry);
    this.#wake.abort();
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined;
    });
  };

  /** Drops what waits. */
  async close(): Promise<void> {
    this.#end.abort();
    this.#wake.abort();
    await this.#writing;
  }

  #entryOf(event: NodeEvent): Entry {
    const key = keyOf(event);
    const now = new Date();
    const found = this.#entries.get(key);
    const entry = found ?? {
      event,
      count: 0,
      first: now,
      last: now,
      name: '',
      isWaiting: false,
      earliest: 0,
    };
    Object.assign(entry, { event, last: now, count: entry.count + 1 });
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    if (this.#entries.size > MOST_KEPT) this.#entries.delete(this.#entries.keys().next().value!);
    return entry;
  }

  async #writeAll(): Promise<void> {
    const { signal } = this.#end;
    // Those that are recorded together are written after the caller's turn.
    await null;
    while (this.#waiting.size > 0 && !signal.aborted) {
      const [next] = [...this.#waiting].sort((a, b) => a.earliest - b.earliest);
      const early = next!.earliest - performance.now();
      if (early > 0) {
        this.#wake = new AbortController();
        await pause(early, this.#wake.signal);
      } else await this.#write(next!);
    }
  }

  async #write(entry: Entry): Promise<void> {
    this.#waiting.delete(entry);
    entry.isWaiting = false;
    try {
      await this.#send(entry);
      this.#results.add({ result: 'written' });
      this.#failure = undefined;
    } catch (error) {
      if (this.#end.signal.aborted) return;
      this.#results.add({ result: 'failed' });
      this.#report(error as ApiError);
    }
    entry.earliest = performance.now() + this.#repeatMs;
  }

  async #send(entry: Entry): Promise<void> {
    const { apiServer, nodeName } = this.#options;
    const { signal } = this.#end;
    const events: Resource = {
      group: '',
      version: 'v1',
      plural: 'events',
      namespace: namespaceOf(entry.event),
    };
    if (entry.name !== '') {
      try {
        await apiServer.patch(events, entry.name, repetition(entry), { signal });
        return;
      } catch (error) {
        // An API server forgets an Event after an hour.
        if ((error as ApiError).code !== 'ERR_API_NOT_FOUND') throw error;
      }
    }
    const object: KubernetesObject = eventObject(entry, nodeName);
    await apiServer.create(events, object, { signal });
    entry.name = object.metadata.name;
  }

  #report({ code, message }: ApiError): void {
    if (code === this.#failure) return;
    this.#failure = code;
    this.#options.log('warn', `Events cannot be written: ${message}`, { code });
  }
}
