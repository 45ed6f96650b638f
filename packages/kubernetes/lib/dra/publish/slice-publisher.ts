// SlicePublisher: keeps a node's ResourceSlices at the API server up to date.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { isDeepStrictEqual } from 'node:util';
import type { ManagerView } from 'numalign';
import { DIAGNOSTICS_CHANNELS, type DiagnosticsMessages } from 'numalign/diagnostics';
import { anySignal } from 'numalign/tools';
import { ApiError } from '../../api-server/api-error.js';
import type { ApiServer } from '../../api-server/api-server.js';
import { newBackoff, pause } from '../../api-server/backoff.js';
import { Publication } from '../../api-server/publication.js';
import type { KubernetesObject, Resource } from '../../api-server/resource.js';
import type { Condition } from '../../base/condition.js';
import type { Log } from '../../base/log.js';
import { reported } from '../../base/reported.js';
import { NO_EVENTS, type RecordEvent, THIS_NODE } from '../../events/event.js';
import { type Counter, type Metrics, NO_METRICS } from '../../metrics/metrics.js';
import { KnownSlices } from './known-slices.js';
import {
  GROUP,
  PLURAL,
  type ResourceVersion,
  type SliceSpec,
  sliceObject,
  slicesOf,
  type TaintedDevice,
  VERSIONS,
} from './resource-slices.js';

export interface SlicePublisherOptions {
  readonly manager: Pick<ManagerView, 'on' | 'off' | 'stateDir'>;
  readonly apiServer: ApiServer;
  readonly driver: string;
  /** The name of the Node object, and of the pool. */
  readonly nodeName: string;
  /** The devices as they are now. */
  readonly devices: () => readonly TaintedDevice[];
  readonly log: Log;
  readonly metrics?: Metrics;
  readonly recordEvent?: RecordEvent;
  /** Deletes the slices at {@link SlicePublisher.close}. Default: false, claims stay possible. */
  readonly deletesAtClose?: boolean;
  /** The least time between two publications, in milliseconds. Default: 500. */
  readonly leastMs?: number;
}

const NODES: Resource = { group: '', version: 'v1', plural: 'nodes' };

const LEAST_MS = 500;

/**
 * Publishes the devices of a node after each commit that changes them, at most twice a second. All
 * slices of the pool have one generation, which grows with each change. Slices that others change or
 * delete are published again. Each kind of error is logged once until it is over, and retried.
 */
export class SlicePublisher {
  readonly #options: SlicePublisherOptions;
  readonly #end = new AbortController();
  readonly #publication: Publication;
  readonly #known: KnownSlices;
  readonly #writes: Counter;
  #version: ResourceVersion | undefined;
  // Null if the Node cannot be read, or does not exist.
  #owner: object | null | undefined;
  #watching: Promise<void> | undefined;
  #isPublished = false;
  #flaw: { readonly code: string; readonly text: string } | undefined;
  #isDropping = false;

  constructor(options: SlicePublisherOptions) {
    this.#options = { ...options, log: reported(options.log) };
    this.#publication = new Publication({
      publish: () => this.#publish(),
      // What has lost a race is tried again, with the new version.
      failed: (error) => {
        if (!STALE.has(error.code)) this.#fail(error);
      },
      signal: this.#end.signal,
    });
    const { metrics = NO_METRICS, driver, nodeName } = options;
    this.#known = new KnownSlices(driver, nodeName);
    this.#writes = metrics.counter('slice_writes_total', 'Writes of ResourceSlices, by their result.', [
      'result',
    ]);
    for (const result of ['written', 'failed']) this.#writes.add({ result }, 0);
    metrics.gauge('slices', 'ResourceSlices of this node at the API server.', [], () => [
      [{}, this.#known.size],
    ]);
  }

  /** Publishes, and watches from now on. Does not wait for the API server. */
  async start(): Promise<void> {
    this.#options.manager.on('change', this.publish);
    subscribe(DIAGNOSTICS_CHANNELS.reconcile, this.#reconciled);
    this.#watching = this.#watch();
  }

  /** Whether the API server has the present devices. */
  get condition(): Condition {
    const text = this.#flaw
      ? `the ResourceSlices cannot be published: ${this.#flaw.text}`
      : this.#isPublished
        ? 'the ResourceSlices are published'
        : 'the ResourceSlices were not published yet';
    return { part: 'slices-of-devices', isMet: this.#isPublished && !this.#flaw, isVital: false, text };
  }

  async close(): Promise<void> {
    const { manager, deletesAtClose } = this.#options;
    manager.off('change', this.publish);
    unsubscribe(DIAGNOSTICS_CHANNELS.reconcile, this.#reconciled);
    this.#end.abort();
    await Promise.all([this.#watching, this.#publication.end()]);
    // A write that was cut off may have come about.
    if (deletesAtClose && this.#version)
      for (const name of this.#known.everWritten) await this.#delete(name).catch(() => {});
  }

  /** The devices, or the options in effect, may have changed. */
  readonly publish = (): void => {
    if (this.#known.isListed) this.#publication.ask();
  };

  // No commit shows CPUs that went offline.
  readonly #reconciled = (message: unknown): void => {
    const { stateDir } = message as DiagnosticsMessages['reconcile'];
    if (stateDir === this.#options.manager.stateDir) this.publish();
  };

  async #publish(): Promise<void> {
    const { devices, driver, nodeName, log } = this.#options;
    const version = this.#version!;
    const target = slicesOf(devices(), { driver, nodeName, version });
    if (!this.#known.isAsWanted(target)) {
      this.#publication.rest(this.#options.leastMs ?? LEAST_MS);
      if (this.#owner === undefined) this.#owner = await this.#findOwner();
      const generation = this.#known.generation + 1;
      for (const [name, spec] of target) await this.#write(name, spec, generation, version);
      for (const name of this.#known.names) if (!target.has(name)) await this.#delete(name);
    }
    this.#isPublished = true;
    if (this.#flaw) log('info', `the ResourceSlices of ${nodeName} are published again`);
    this.#flaw = undefined;
  }

  async #write(name: string, spec: SliceSpec, generation: number, version: ResourceVersion): Promise<void> {
    const { apiServer } = this.#options;
    const { signal } = this.#end;
    const before = this.#known.get(name)?.metadata;
    const metadata = before
      ? { ...before, ...(this.#owner && { ownerReferences: [this.#owner] }) }
      : this.#owner && { ownerReferences: [this.#owner] };
    const object = sliceObject(name, spec, generation, version, metadata ?? {});
    const resource = this.#resource(version);
    try {
      const answer = await this.#known.write(name, spec, () =>
        before
          ? apiServer.replace(resource, object, { signal })
          : apiServer.create(resource, object, { signal }),
      );
      this.#writes.add({ result: 'written' });
      this.#tellDropped(answer, spec);
    } catch (error) {
      this.#writes.add({ result: 'failed' });
      // Another one has written or deleted it: its version is read again.
      if (error instanceof ApiError && STALE.has(error.code)) await this.#readAgain(name, resource);
      throw error;
    }
  }

  async #readAgain(name: string, resource: Resource): Promise<void> {
    const { apiServer } = this.#options;
    try {
      this.#known.put(await apiServer.get(resource, name, { signal: this.#end.signal }));
    } catch (error) {
      if ((error as ApiError).code !== 'ERR_API_NOT_FOUND') throw error;
      this.#known.remove(name);
    }
  }

  // A server leaves out what its feature gates do not allow.
  #tellDropped(answer: KubernetesObject, spec: SliceSpec): void {
    const isComplete = isDeepStrictEqual(KnownSlices.essence(answer), KnownSlices.essenceOf(spec));
    if (isComplete || this.#isDropping) return;
    this.#isDropping = true;
    const { log, nodeName, recordEvent = NO_EVENTS } = this.#options;
    const message = `the API server keeps less of the ResourceSlices of ${nodeName} than it was given: without the gates DRAConsumableCapacity and DRADeviceTaints a device has one claim, and no taints`;
    log('warn', message);
    recordEvent({ about: THIS_NODE, type: 'Warning', reason: 'ResourceSlicesReduced', message });
  }

  async #delete(name: string): Promise<void> {
    const { apiServer } = this.#options;
    try {
      await this.#known.during(name, () => apiServer.delete(this.#resource(this.#version!), name));
    } catch (error) {
      if ((error as ApiError).code !== 'ERR_API_NOT_FOUND') throw error;
    }
    this.#known.remove(name);
  }

  // The owner makes the slices end with their Node.
  async #findOwner(): Promise<object | null> {
    const { apiServer, nodeName, log } = this.#options;
    try {
      const { metadata } = await apiServer.get(NODES, nodeName, { signal: this.#end.signal });
      return { apiVersion: 'v1', kind: 'Node', name: nodeName, uid: metadata.uid };
    } catch (error) {
      if (!(error instanceof ApiError) || !WITHOUT_OWNER.has(error.code)) throw error;
      log('info', `the ResourceSlices of ${nodeName} have no owner: ${error.message}`, { code: error.code });
      return null;
    }
  }

  // Tries the versions in turn: an API server is upgraded, too.
  async #watch(): Promise<void> {
    const { signal } = this.#end;
    const backoff = newBackoff();
    while (!signal.aborted) {
      for (const version of VERSIONS) if (await this.#watchVersion(version)) backoff.reset();
      if (!signal.aborted) await pause(backoff.next(undefined), signal);
    }
  }

  /** Until the server has none of this version; false if it never had. */
  async #watchVersion(version: ResourceVersion): Promise<boolean> {
    const { apiServer, driver, nodeName } = this.#options;
    const missing = new AbortController();
    const signal = anySignal(missing.signal, this.#end.signal);
    const failed = (error: ApiError) => {
      if (error.code === 'ERR_API_NOT_FOUND') missing.abort();
      if (error.code !== 'ERR_API_NOT_FOUND' || version === VERSIONS.at(-1)) this.#fail(error);
    };
    const fieldSelector = `spec.driver=${driver},spec.nodeName=${nodeName}`;
    let isServed = false;
    for await (const event of apiServer.watch(this.#resource(version), { fieldSelector, signal, failed })) {
      isServed = true;
      this.#version = version;
      const isForeign = this.#known.follow(event);
      if (isForeign) this.#options.log('warn', `the ResourceSlices of ${nodeName} were changed by others`);
      if (event.type === 'LISTED' || event.type === 'DELETED') this.#owner ??= undefined;
      if (event.type === 'LISTED') this.#publication.retry();
      this.publish();
    }
    return isServed;
  }

  readonly #resource = (version: ResourceVersion): Resource => ({ group: GROUP, version, plural: PLURAL });

  #fail(error: Error): void {
    const { nodeName, log, recordEvent = NO_EVENTS } = this.#options;
    const code = (error as { code?: string }).code ?? 'ERR_INTERNAL';
    if (this.#end.signal.aborted) return;
    const isNew = this.#flaw?.code !== code;
    this.#flaw = { code, text: error.message };
    if (!isNew) return;
    const message = `the ResourceSlices of ${nodeName} cannot be published: ${error.message}`;
    log('error', message, { code });
    recordEvent({ about: THIS_NODE, type: 'Warning', reason: 'ResourceSlicesNotPublished', message });
  }
}

const STALE: ReadonlySet<string> = new Set(['ERR_API_CONFLICT', 'ERR_API_NOT_FOUND']);
const WITHOUT_OWNER: ReadonlySet<string> = new Set(['ERR_API_FORBIDDEN', 'ERR_API_NOT_FOUND']);
