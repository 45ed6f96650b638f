// Refusals: what happens to pods whose containers have no place here. A kubelet tries for ever: a
// condition of the pod says so, and on request it is evicted, so that its controller replaces it,
// maybe elsewhere.
import { anySignal } from 'numalign/tools';
import type { ApiError } from '../api-server/api-error.js';
import type { ApiServer } from '../api-server/api-server.js';
import type { KubernetesObject, Resource } from '../api-server/resource.js';
import type { Condition } from '../base/condition.js';
import type { Log } from '../base/log.js';
import type { PodSubject, RecordEvent } from '../events/event.js';
import type { Counter, Metrics } from '../metrics/metrics.js';
import type { Container, PodSandbox } from '../nri/messages.js';
import { conditionPatch, refusalIn } from './pod-condition.js';
import { evictable, isOfPlace } from './refusal-rules.js';

export const REFUSAL_MODES = ['keep', 'condition', 'evict'] as const;
/** `keep`: only an Event. `condition`: also a condition of the pod. `evict`: also an eviction. */
export type RefusalMode = (typeof REFUSAL_MODES)[number];

export interface RefusalsOptions {
  readonly mode: Exclude<RefusalMode, 'keep'>;
  readonly apiServer: Pick<ApiServer, 'get' | 'patch' | 'create' | 'watch'>;
  readonly nodeName: string;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly recordEvent: RecordEvent;
  readonly now?: () => number;
}

type NamedPod = Pick<PodSandbox, 'namespace' | 'name'>;

interface RefusedPod {
  /** The containers that have no place. */
  readonly containers: Set<string>;
  times: number;
  readonly since: number;
  /** The message of the last condition that was written. */
  written: string | undefined;
  /** Why it is not evicted, as last logged. */
  stays: string | undefined;
  isBusy: boolean;
}

// A kubelet tries again every 10 to 20 s: what a pod that ends leaves may be enough.
const LEAST_TIMES = 3;
const LEAST_MS = 20_000;
// Between two evictions of this node, and of pods of one controller: the scheduler may choose this
// node again.
const NODE_MS = 30_000;
const OWNER_MS = 300_000;
const MOST = 512;

const PODS: Resource = { group: '', version: 'v1', plural: 'pods' };

const podsOf = (namespace: string, subresource?: string): Resource => ({
  ...{ ...PODS, namespace },
  ...(subresource !== undefined && { subresource }),
});

export class Refusals {
  readonly #options: RefusalsOptions;
  readonly #now: () => number;
  readonly #pods = new Map<string, RefusedPod>();
  readonly #owners = new Map<string, number>();
  readonly #evictions: Counter;
  readonly #end = new AbortController();
  readonly #work = new Set<Promise<unknown>>();
  #failure: string | undefined;
  #earliest = Number.NEGATIVE_INFINITY;

  constructor(options: RefusalsOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#evictions = options.metrics.counter(
      'evictions_total',
      'Pods that were to be evicted because they have no place here, by what became of it.',
      ['result'],
    );
    for (const result of ['evicted', 'blocked', 'failed']) this.#evictions.add({ result }, 0);
  }

  /** Whether the API server did what it was last asked to. */
  get condition(): Condition {
    const text = this.#failure ?? 'pods without a place are told to the API server';
    return { part: 'refusals', isMet: this.#failure === undefined, isVital: false, text };
  }

  /** Finds the pods that an agent before this one has marked. Does not wait for the API server. */
  async start(): Promise<void> {
    this.#follow(this.#adoptMarked());
  }

  async close(): Promise<void> {
    this.#end.abort();
    await this.settled;
  }

  /** Resolves once the API server knows everything until now. */
  get settled(): Promise<unknown> {
    return Promise.all(this.#work);
  }

  /** Never waits, and never throws. */
  refused(pod: PodSandbox, { name }: Pick<Container, 'name'>, error: unknown): void {
    if (pod.uid === '' || !isOfPlace(error)) return;
    const entry = this.#pods.get(pod.uid) ?? this.#newEntry();
    entry.containers.add(name);
    entry.times++;
    putLast(this.#pods, pod.uid, entry);
    this.#follow(this.#answer(pod, name, entry, error));
  }

  /** A container that was refused has a place now. */
  admitted(pod: PodSandbox, { name }: Pick<Container, 'name'>): void {
    const entry = this.#pods.get(pod.uid);
    entry?.containers.delete(name);
    if (!entry || entry.containers.size > 0) return;
    this.#pods.delete(pod.uid);
    if (entry.written !== undefined) this.#follow(this.#write(pod, 'True', 'Placed', ''));
  }

  #newEntry(written?: string): RefusedPod {
    return { containers: new Set(), times: 0, since: this.#now(), written, stays: undefined, isBusy: false };
  }

  // Which containers they were is unknown: the next one that has a place ends it.
  async #adoptMarked(): Promise<void> {
    const { apiServer, nodeName } = this.#options;
    const over = new AbortController();
    const signal = anySignal(over.signal, this.#end.signal);
    const options = { fieldSelector: `spec.nodeName=${nodeName}`, signal, failed: () => over.abort() };
    for await (const event of apiServer.watch(PODS, options)) {
      if (event.type === 'LISTED') for (const object of event.objects) this.#adopt(object);
      over.abort();
    }
  }

  #adopt(object: KubernetesObject): void {
    const {
      namespace = '',
      name,
      uid = '',
    } = object.metadata as { namespace?: string; name: string; uid?: string };
    const message = refusalIn(object);
    if (message === undefined || this.#pods.has(uid)) return;
    const { phase } = object.status as { phase?: string };
    if (phase === 'Running') this.#follow(this.#write({ namespace, name }, 'True', 'Placed', ''));
    else putLast(this.#pods, uid, this.#newEntry(message));
  }

  #follow(work: Promise<unknown>): void {
    const followed: Promise<unknown> = work.catch(() => {}).finally(() => this.#work.delete(followed));
    this.#work.add(followed);
  }

  async #answer(pod: PodSandbox, container: string, entry: RefusedPod, { message }: Error): Promise<void> {
    if (entry.isBusy) return;
    entry.isBusy = true;
    try {
      const text = `container ${container}: ${message}`;
      // Who holds what changes all the time.
      if (entry.written === undefined && (await this.#write(pod, 'False', 'PlacementRefused', text)))
        entry.written = text;
      if (this.#options.mode === 'evict' && this.#isOften(entry)) await this.#evict(pod, text, entry);
    } finally {
      entry.isBusy = false;
    }
  }

  #isOften({ times, since }: RefusedPod): boolean {
    const now = this.#now();
    return times >= LEAST_TIMES && now - since >= LEAST_MS && now >= this.#earliest;
  }

  async #write(pod: NamedPod, status: 'True' | 'False', reason: string, message: string): Promise<boolean> {
    const { apiServer } = this.#options;
    try {
      const change = conditionPatch(status, reason, message);
      const options = { signal: this.#end.signal, isStrategic: true };
      await apiServer.patch(podsOf(pod.namespace, 'status'), pod.name, change, options);
      this.#failure = undefined;
      return true;
    } catch (error) {
      this.#report(pod, 'the condition cannot be written', error as ApiError);
      return false;
    }
  }

  async #evict(pod: PodSandbox, message: string, entry: RefusedPod): Promise<void> {
    const { apiServer } = this.#options;
    try {
      const object = await apiServer.get(podsOf(pod.namespace), pod.name, { signal: this.#end.signal });
      const found = evictable(object, pod.uid);
      if (typeof found === 'string') return this.#stay(pod, found, entry);
      const now = this.#now();
      if (now < (this.#owners.get(found.owner) ?? Number.NEGATIVE_INFINITY))
        return this.#stay(pod, 'another one of its controller was evicted in the last minutes', entry);
      this.#earliest = now + NODE_MS;
      await this.#sendEviction(pod);
      this.#failure = undefined;
      putLast(this.#owners, found.owner, now + OWNER_MS);
      this.#pods.delete(pod.uid);
      this.#tellEvicted(pod, message);
    } catch (error) {
      const { code } = error as ApiError;
      if (code === 'ERR_API_NOT_FOUND') return void this.#pods.delete(pod.uid);
      this.#evictions.add({ result: code === 'ERR_API_BUSY' ? 'blocked' : 'failed' });
      this.#report(pod, 'it cannot be evicted', error as ApiError);
    }
  }

  // Kubernetes 1.22 has the first, and 1.24 is the last with the other.
  async #sendEviction({ namespace, name, uid }: PodSandbox): Promise<void> {
    const { apiServer } = this.#options;
    const send = (apiVersion: string) => {
      const deleteOptions = { preconditions: { uid } };
      const eviction: KubernetesObject = {
        ...{ apiVersion, kind: 'Eviction', metadata: { name, namespace }, deleteOptions },
      };
      return apiServer.create(podsOf(namespace, 'eviction'), eviction, { signal: this.#end.signal });
    };
    try {
      await send('policy/v1');
    } catch (error) {
      if ((error as ApiError).code !== 'ERR_API_INVALID') throw error;
      await send('policy/v1beta1');
    }
  }

  #tellEvicted(pod: PodSandbox, message: string): void {
    const { log, recordEvent } = this.#options;
    this.#evictions.add({ result: 'evicted' });
    log('warn', `${titleOf(pod)} is evicted: ${message}`, { pod: titleOf(pod) });
    const text = `it has no place on this node, and is evicted: ${message}`;
    recordEvent({ about: subjectOf(pod), type: 'Warning', reason: 'PlacementEviction', message: text });
  }

  #stay(pod: PodSandbox, why: string, entry: RefusedPod): void {
    if (why !== entry.stays)
      this.#options.log('info', `${titleOf(pod)} is not evicted: ${why}`, { pod: titleOf(pod) });
    entry.stays = why;
  }

  #report(pod: NamedPod, what: string, { code, message }: ApiError): void {
    if (this.#end.signal.aborted) return;
    this.#failure = `${what}: ${message}`;
    this.#options.log('warn', `${titleOf(pod)}: ${what}: ${message}`, { pod: titleOf(pod), code });
  }
}

const titleOf = ({ namespace, name }: NamedPod) => `${namespace}/${name}`;

const subjectOf = ({ namespace, name, uid }: PodSandbox): PodSubject => ({
  kind: 'Pod',
  namespace,
  name,
  uid,
});

function putLast<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > MOST) map.delete(map.keys().next().value!);
}
