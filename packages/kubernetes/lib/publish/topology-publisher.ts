// TopologyPublisher: keeps a node's NodeResourceTopology at the API server up to date.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { isDeepStrictEqual } from 'node:util';
import type { ManagerView } from 'numalign';
import { DIAGNOSTICS_CHANNELS, type DiagnosticsMessages } from 'numalign/diagnostics';
import { ApiError } from '../api-server/api-error.js';
import type { ApiServer } from '../api-server/api-server.js';
import { Publication } from '../api-server/publication.js';
import type { KubernetesObject, Resource } from '../api-server/resource.js';
import type { Condition } from '../base/condition.js';
import type { Log } from '../base/log.js';
import { reported } from '../base/reported.js';
import { NO_EVENTS, type RecordEvent, THIS_NODE } from '../events/event.js';
import { NodePods } from './node-pods.js';
import {
  GROUP,
  type NodeResourceTopology,
  nodeResourceTopology,
  type OwnerReference,
  PLURAL,
  type Policy,
  type Scope,
  VERSION,
} from './node-resource-topology.js';
import { FINGERPRINT_ANNOTATION } from './pod-fingerprint.js';
import { isSame, PublishedVersions } from './published-versions.js';
import { zonesOf } from './zones.js';

export interface TopologyPublisherOptions {
  readonly manager: ManagerView;
  readonly apiServer: ApiServer;
  /** The name of the Node object, and so of the NodeResourceTopology. */
  readonly nodeName: string;
  /** Default: the manager's. */
  readonly policy?: Policy;
  /** Default: the manager's. */
  readonly scope?: Scope;
  /** The options in effect. Default: the manager's. */
  readonly placement?: () => ManagerView['placement'];
  readonly log: Log;
  readonly recordEvent?: RecordEvent;
  /** Deletes the object at {@link TopologyPublisher.close}. Default: false, it stays as it is. */
  readonly deletesAtClose?: boolean;
}

const TOPOLOGIES: Resource = { group: GROUP, version: VERSION, plural: PLURAL };
const NODES: Resource = { group: '', version: 'v1', plural: 'nodes' };

type Work = 'published' | 'watched' | 'fingerprinted';

// Publishes at most twice a second.
const LEAST_MS = 500;
// Publishes less often while others write the same object: the cluster's scheduler has to read each
// version.
const LONGEST_CONTESTED_MS = 10_000;
const CONTEST_MS = 60_000;

/**
 * Publishes the machine's state within milliseconds of any commit, at most twice a second, and only
 * if something has changed. Changes without a commit, such as CPUs that go offline, follow after
 * the manager's next round ({@link Manager.reconcile}). It also publishes after the API server was
 * away, and if others have deleted or changed the object. It only owns zones, attributes and
 * policies: other metadata of the object stays. Each kind of error is logged once until it is over,
 * and retried.
 */
export class TopologyPublisher {
  readonly #options: TopologyPublisherOptions;
  readonly #end = new AbortController();
  readonly #publication: Publication;
  readonly #versions = new PublishedVersions();
  readonly #pods: NodePods;
  #watching: Promise<unknown> | undefined;
  // The last published object; stale if the server may have another one by now.
  #lastObject: NodeResourceTopology | undefined;
  #isStale = false;
  // Null if the Node cannot be read, or does not exist.
  #owner: OwnerReference | null | undefined;
  readonly #unsettled = new Set(['topology', 'pods']);
  // How often others have written the object, and when they last did.
  #contested = { times: 0, at: Number.NEGATIVE_INFINITY };
  // The logged error codes, until it works again.
  readonly #failures = new Map<Work, string>();

  constructor(options: TopologyPublisherOptions) {
    this.#options = { ...options, log: reported(options.log) };
    const { apiServer, nodeName } = options;
    this.#publication = new Publication({
      publish: () => this.#publish(),
      failed: (error) => {
        this.#isStale = true;
        this.#reportFailure('published', error);
      },
      signal: this.#end.signal,
    });
    this.#pods = new NodePods({
      ...{ apiServer, nodeName, signal: this.#end.signal },
      changed: () => {
        if (this.#pods.isKnown) this.#failures.delete('fingerprinted');
        this.#settled('pods');
      },
      failed: (error) => this.#reportFailure('fingerprinted', error),
    });
  }

  /** Publishes, and watches from now on. Does not wait for the API server. */
  async start(): Promise<void> {
    const { manager } = this.#options;
    manager.on('change', this.#onChange);
    subscribe(DIAGNOSTICS_CHANNELS.reconcile, this.#reconciled);
    this.#watching = Promise.all([this.#watch(), this.#pods.watch()]);
  }

  /** Whether the API server has the present topology, and reports changes. */
  get condition(): Condition {
    const [failure] = this.#failures;
    const text = failure ? `it cannot be ${failure[0]}: ${failure[1]}` : 'the topology is published';
    return {
      ...{ part: 'publisher', isMet: !failure && this.#lastObject !== undefined, isVital: false },
      text: failure || this.#lastObject ? text : 'it was not published yet',
    };
  }

  async close(): Promise<void> {
    const { manager, apiServer, nodeName, deletesAtClose } = this.#options;
    manager.off('change', this.#onChange);
    unsubscribe(DIAGNOSTICS_CHANNELS.reconcile, this.#reconciled);
    this.#end.abort();
    await Promise.all([this.#watching, this.#publication.end()]);
    if (deletesAtClose) {
      await apiServer.delete(TOPOLOGIES, nodeName).catch((error: ApiError) => {
        if (error.code !== 'ERR_API_NOT_FOUND') this.#reportFailure('published', error);
      });
    }
  }

  /** The options in effect have changed. */
  readonly publish = (): void => {
    if (this.#lastObject) this.#onChange();
  };

  readonly #onChange = (): void => this.#publication.ask();

  // The first publication waits until it is known what exists, or that this cannot be known: a list
  // that is still on its way would otherwise look like a deletion.
  #settled(what: 'topology' | 'pods'): void {
    this.#unsettled.delete(what);
    if (this.#unsettled.size === 0 && (what === 'pods' || !this.#lastObject)) this.#onChange();
  }

  // No commit shows CPUs that went offline or devices that were registered again.
  readonly #reconciled = (message: unknown): void => {
    const { stateDir } = message as DiagnosticsMessages['reconcile'];
    if (stateDir === this.#options.manager.stateDir) this.#onChange();
  };

  get #isContested(): boolean {
    return performance.now() - this.#contested.at < CONTEST_MS;
  }

  async #publish(): Promise<void> {
    const { nodeName } = this.#options;
    const target = this.#target();
    if (!this.#isStale && isDeepStrictEqual(target, this.#lastObject)) return;
    this.#isStale = false;
    const times = this.#isContested ? this.#contested.times : 0;
    this.#publication.rest(Math.min(LEAST_MS * 2 ** times, LONGEST_CONTESTED_MS));
    if (this.#owner === undefined) this.#owner = await this.#findOwner();
    const answer = await this.#versions.during(target, () => this.#write(target));
    this.#versions.add(answer);
    this.#lastObject = target;
    if (this.#failures.delete('published'))
      this.#options.log('info', `the topology of ${nodeName} is published again`);
  }

  // The zones are read after the pods have been seen, and so include what these have.
  #target(): NodeResourceTopology {
    const { manager, nodeName, policy, scope } = this.#options;
    const placement = this.#options.placement?.() ?? manager.placement;
    const zones = zonesOf(manager, placement);
    const resources = zones.flatMap((zone) => zone.resources.map(({ name }) => name));
    const settings = {
      policy: policy ?? placement.policy,
      scope: scope ?? placement.scope,
      maxNodes: Number(placement.topologyManagerPolicyOptions['max-allowable-numa-nodes']),
    };
    return nodeResourceTopology(nodeName, settings, zones, this.#pods.fingerprint(new Set(resources)));
  }

  // A merge patch keeps what others have added. Without an object, one is created.
  async #write(target: NodeResourceTopology): Promise<KubernetesObject> {
    const { apiServer, nodeName } = this.#options;
    const { signal } = this.#end;
    const owners = this.#owner && { ownerReferences: [this.#owner] };
    const object = { ...target, metadata: { ...target.metadata, ...owners } };
    const { annotations = WITHOUT_FINGERPRINT } = target.metadata;
    const change = { ...object, metadata: { ...object.metadata, annotations } };
    const patch = () => apiServer.patch(TOPOLOGIES, nodeName, change, { signal });
    try {
      return await patch();
    } catch (error) {
      if ((error as ApiError).code !== 'ERR_API_NOT_FOUND') throw error;
    }
    try {
      return await apiServer.create(TOPOLOGIES, object, { signal });
    } catch (error) {
      if ((error as ApiError).code !== 'ERR_API_CONFLICT') throw error;
      return patch();
    }
  }

  // The owner makes the object end with its Node. If the Node cannot be read, the object stays.
  async #findOwner(): Promise<OwnerReference | null> {
    const { apiServer, nodeName, log } = this.#options;
    try {
      const { metadata } = await apiServer.get(NODES, nodeName, { signal: this.#end.signal });
      return metadata.uid === undefined
        ? null
        : { apiVersion: 'v1', kind: 'Node', name: nodeName, uid: metadata.uid };
    } catch (error) {
      if (!(error instanceof ApiError) || !WITHOUT_OWNER.has(error.code)) throw error;
      if (this.#lastObject === undefined)
        log('info', `the topology of ${nodeName} has no owner: ${error.message}`, { code: error.code });
      return null;
    }
  }

  async #watch(): Promise<void> {
    const { apiServer, nodeName } = this.#options;
    const onError = (error: ApiError) => {
      this.#reportFailure('watched', error);
      this.#settled('topology');
    };
    const options = { name: nodeName, signal: this.#end.signal, failed: onError };
    for await (const event of apiServer.watch(TOPOLOGIES, options)) {
      if (event.type === 'LISTED') {
        this.#react(event.objects.find(({ metadata }) => metadata.name === nodeName));
        // The server is reachable: failed work need not wait any longer, and a Node may have been
        // added.
        this.#owner ??= undefined;
        this.#publication.retry();
        this.#failures.delete('watched');
        this.#settled('topology');
      } else if (event.object.metadata.name === nodeName) {
        this.#react(event.type === 'DELETED' ? undefined : event.object);
      }
    }
  }

  // Handles a version written by others, or possibly by this publisher.
  #react(object: KubernetesObject | undefined): void {
    const { nodeName, log } = this.#options;
    const lastObject = this.#lastObject;
    if (!lastObject && !this.#versions.isWriting) return;
    if (object && (this.#versions.has(object) || (lastObject && isSame(object, lastObject)))) return;
    this.#isStale = true;
    if (object) {
      this.#contested = { times: this.#isContested ? this.#contested.times + 1 : 1, at: performance.now() };
    } else this.#owner = undefined;
    log(
      'warn',
      `the topology of ${nodeName} was ${object ? 'changed' : 'deleted'} by others: published again`,
    );
    this.#onChange();
  }

  #reportFailure(what: Work, error: Error): void {
    const { nodeName, log, recordEvent = NO_EVENTS } = this.#options;
    const code = (error as { code?: string }).code ?? 'ERR_INTERNAL';
    if (this.#failures.get(what) === code || this.#end.signal.aborted) return;
    this.#failures.set(what, code);
    const message = `the topology of ${nodeName} cannot be ${what}: ${error.message}`;
    log('error', message, { code });
    recordEvent({ about: THIS_NODE, type: 'Warning', reason: 'TopologyNotPublished', message });
  }
}

const WITHOUT_FINGERPRINT = { [FINGERPRINT_ANNOTATION]: null };
const WITHOUT_OWNER: ReadonlySet<string> = new Set(['ERR_API_FORBIDDEN', 'ERR_API_NOT_FOUND']);
