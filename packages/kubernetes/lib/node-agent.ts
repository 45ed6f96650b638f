// NodeAgent: everything that numalign-node does on a node, as separate parts.
import type { Manager, ManagerView } from 'numalign';
import { ApiServer, type ApiServerOptions } from './api-server/api-server.js';
import { PodManifests } from './api-server/pod-manifests.js';
import type { Condition } from './base/condition.js';
import { NodeError } from './base/errors.js';
import type { Log } from './base/log.js';
import type { PreparedClaim } from './claims/claimed-holdings.js';
import { DevicePlugin, type DevicePluginOptions } from './device-plugin/device-plugin.js';
import { DraDriver, type DraDriverOptions } from './dra/driver/dra-driver.js';
import type { ClaimedContainers } from './dra/preparation/preparation.js';
import { type NodeSlicesOptions, nodeSlices, type SlicesOfNode } from './dra/publish/node-slices.js';
import type { SlicePublisher } from './dra/publish/slice-publisher.js';
import { NO_EVENTS, type RecordEvent } from './events/event.js';
import { EventRecorder } from './events/event-recorder.js';
import { KubeletFollower, type KubeletFollowerOptions } from './kubelet/kubelet-follower.js';
import { refuseStaticKubelet } from './kubelet/kubelet-policy.js';
import { recordOf } from './kubelet/kubelet-record.js';
import { logManager } from './manager-log.js';
import { type Metrics, NO_METRICS } from './metrics/metrics.js';
import { NumalignNode, type NumalignNodeOptions } from './node.js';
import type { ContainerPolicy } from './placement/container-policy.js';
import { TopologyPublisher, type TopologyPublisherOptions } from './publish/topology-publisher.js';
import { Refusals, type RefusalsOptions } from './refusals/refusals.js';

/** Options of the parts; null leaves a part out, and omitted options have the part's defaults. */
export interface NodeAgentOptions {
  /** The caller closes it. */
  readonly manager: Manager;
  readonly log: Log;
  /** The plugin for the container runtime. */
  readonly nri: Omit<
    NumalignNodeOptions,
    | 'manager'
    | 'restoreAllocation'
    | 'findClaim'
    | 'conditionChanged'
    | 'findManifest'
    | 'policy'
    | 'log'
    | 'metrics'
    | 'recordEvent'
    | 'refusals'
  > | null;
  /** Has pods placed with all their containers, by their manifests at the API server. */
  readonly wholePods?: Omit<OnNode, 'nodeName'> | null;
  /** Devices for the kubelet. */
  readonly devicePlugin: Omit<DevicePluginOptions, 'manager' | 'log'> | null;
  /** Grants what schedulers allocate to ResourceClaims; it needs {@link nri}. */
  readonly dra?: (DraPart & Pick<OnNode, 'apiServer'>) | null;
  /** Records what the kubelet has assigned. */
  readonly kubelet: Omit<KubeletFollowerOptions, 'record' | 'ownResources' | 'log'> | null;
  /** Publishes the node's NodeResourceTopology. */
  readonly publish: OnNode | null;
  /** Writes Events of pods and of the node. */
  readonly events?: OnNode | null;
  /** What becomes of pods whose containers have no place here. */
  readonly refusals?: (OnNode & Pick<RefusalsOptions, 'mode'>) | null;
  /** Where the parts count what they do. */
  readonly metrics?: Metrics;
  /** What is in effect now, see {@link NodeAgent.changed}. Default: as the manager was opened. */
  readonly live?: () => ContainerPolicy & { readonly effective: ManagerView['placement'] };
}

/** The node, and where the API server is; default: as the kubelet tells a process in a pod. */
interface OnNode {
  readonly nodeName: string;
  readonly apiServer?: ApiServerOptions;
}

type DraPart = Pick<DraDriverOptions, 'kubeletFolder' | 'cdiFolder' | 'instance'> & {
  /** The devices that claims may have of the node; undefined: others publish them. */
  readonly slices?: SlicesOfNode;
};

interface Part {
  readonly condition: Condition;
  start(): Promise<void>;
  close(): Promise<void>;
}

// A runtime waits 2 s for an answer, and then goes on without the plugin.
const STUCK_MS = 60_000;

// The scope of the runtime's plugin without whole pods, see NumalignNode.
const CONTAINER_SCOPE = { scope: 'container' } as const;

export class NodeAgent {
  readonly #options: NodeAgentOptions;
  readonly #parts: Part[];
  readonly #publisher: (Part & { readonly publish: () => void }) | null;
  /** Records Events; without an API server it does nothing. */
  readonly recordEvent: RecordEvent;
  readonly #node: NumalignNode | null;
  readonly #slices: SlicePublisher | undefined;
  readonly #endLog: () => void;
  #hasStarted = false;
  #starting: Promise<void> | undefined;
  #isClosed = false;

  /** @throws like the parts, for their options */
  constructor(options: NodeAgentOptions) {
    const { manager, log, nri, devicePlugin, kubelet, publish, events, refusals, live } = options;
    const { metrics = NO_METRICS } = options;
    const { wholePods, dra } = options;
    if (dra && !nri) throw withoutNri();
    const manifests = nri && wholePods ? new PodManifests(wholePods.apiServer) : undefined;
    this.#options = options;
    const devices = devicePlugin && new DevicePlugin({ ...devicePlugin, manager, log });
    const recorder = events ? eventsPart({ log, metrics }, events) : undefined;
    const recordEvent = recorder?.record ?? NO_EVENTS;
    this.recordEvent = recordEvent;
    const placement = live && { placement: () => live().effective };
    this.#publisher =
      publish &&
      publisher(
        { manager, log, recordEvent, ...placement, ...(nri && !manifests && CONTAINER_SCOPE) },
        publish,
      );
    this.#endLog = logManager(manager, log, recordEvent);
    const refused = nri && refusals ? refusalsPart({ log, metrics, recordEvent }, refusals) : undefined;
    const node: NumalignNode | null =
      nri &&
      new NumalignNode({
        ...nri,
        ...(devices && { restoreAllocation: (...found) => devices.restore(...found) }),
        ...(live && { policy: live }),
        ...(dra && { findClaim: (uid): PreparedClaim | undefined => driver?.findClaim(uid) }),
        ...(manifests && { findManifest: manifests.find }),
        ...{ manager, log, metrics, recordEvent, refusals: refused?.refusals },
        conditionChanged: () => driver?.slices?.publish(),
      });
    const driver: DraParts | null =
      dra && node
        ? draParts(
            {
              manager,
              containers: containersOf(node),
              log,
              metrics,
              recordEvent,
              ...(live && { policy: live }),
            },
            { ...dra, placement: () => live?.().effective ?? manager.placement },
          )
        : null;
    this.#slices = driver?.slices;
    const parts: (Part | null)[] = [
      recorder ?? null,
      refused ?? null,
      // The kubelet's assignments must be known before anything is granted.
      kubelet &&
        new KubeletFollower({
          ...kubelet,
          record: (holdings) => manager.recordKubelet(holdings.map(recordOf)),
          // It may have been started again with another policy.
          ...(node && { check: () => refuseStaticKubelet(kubelet.stateFolder, kubelet.deviceFolder) }),
          ownResources: devices ? [devices.resource] : [],
          ...{ log, recordEvent },
        }),
      devices,
      this.#publisher,
      manifests ?? null,
      node,
      // A kubelet that knows it has pods prepared, whose containers must have their places.
      ...(driver?.parts ?? []),
    ];
    this.#node = node;
    this.#parts = parts.filter((part) => part !== null);
    this.#show(metrics);
  }

  /**
   * Starts one part after the other. Resolves once all running containers have their places; waits
   * for a container runtime that has not started. Has an effect only once.
   * @throws ERR_KUBELET_STATIC beside a kubelet that places containers itself; ERR_AGENT_CLOSED if
   *   {@link close} comes first; like the parts
   */
  start(): Promise<void> {
    this.#starting ??= this.#start();
    return this.#starting;
  }

  async #start(): Promise<void> {
    const { nri, kubelet } = this.#options;
    if (nri) await refuseStaticKubelet(kubelet?.stateFolder, kubelet?.deviceFolder);
    try {
      for (const part of this.#parts) {
        this.#checkOpen();
        await part.start();
      }
      this.#checkOpen();
      this.#hasStarted = true;
    } catch (error) {
      await this.#closeParts();
      throw error;
    }
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new NodeError('ERR_AGENT_CLOSED', 'the agent was closed before it had started');
  }

  /** What is in effect has changed: see {@link NodeAgentOptions.live}. */
  changed(): void {
    this.#publisher?.publish();
    this.#slices?.publish();
  }

  /** Whether the agent and its parts do their work: it does if all that are vital are met. */
  get conditions(): readonly Condition[] {
    const start = this.#hasStarted ? 'containers have their places' : 'containers have no places yet';
    return [
      { part: 'start', isMet: this.#hasStarted, isVital: true, text: start },
      stateCondition(this.#options.manager),
      ...this.#parts.map(({ condition }) => condition),
    ];
  }

  /** Why the process should be started again; undefined: nothing but a restart is of no use. */
  get ailment(): string | undefined {
    const { name, ms } = this.#node?.oldestCall ?? {};
    if (ms === undefined || ms < STUCK_MS) return undefined;
    return `${name} of the runtime has not been answered for ${Math.round(ms / 1000)} s`;
  }

  #show(metrics: Metrics): void {
    metrics.gauge('part_up', 'Whether a part of the agent does its work.', ['part'], () =>
      this.conditions.map(({ part, isMet }) => [{ part }, isMet ? 1 : 0]),
    );
    metrics.gauge('ready', 'Whether the agent does its work.', [], () => [
      [{}, this.conditions.every(({ isMet, isVital }) => isMet || !isVital) ? 1 : 0],
    ]);
  }

  /** Containers and records stay as they are. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#endLog();
    await this.#closeParts();
    // What was about to start is closed by then, too.
    await this.#starting?.catch(() => {});
  }

  async #closeParts(): Promise<void> {
    for (const part of [...this.#parts].reverse()) await part.close();
  }
}

const withoutNri = () =>
  new NodeError('ERR_CLAIM_WITHOUT_NRI', 'the DRA driver needs NRI, which places the containers of claims', {
    value: null,
    valid: 'a runtime with NRI: containerd from 1.7 on, CRI-O from 1.26 on',
  });

const containersOf = (node: NumalignNode): ClaimedContainers => ({
  userOf: (grants) => node.claimUser(grants),
  get condition() {
    return node.condition;
  },
});

// What cannot be read, or grants nothing, is wrong for all programs of the machine.
function stateCondition(manager: Manager): Condition {
  const condition = (flaw: string | undefined) =>
    ({ part: 'state', isMet: flaw === undefined, isVital: true, text: flaw ?? 'it grants' }) as const;
  try {
    const refusal = manager.refusal();
    return condition(refusal ? `nothing is granted: ${refusal.message}` : undefined);
  } catch (error) {
    return condition(`it cannot be read: ${(error as Error).message}`);
  }
}

/** The publisher, with its own connection. */
function publisher(
  options: Pick<TopologyPublisherOptions, 'manager' | 'log' | 'recordEvent' | 'scope' | 'placement'>,
  { nodeName, apiServer: ofServer }: OnNode,
): Part & { readonly publish: () => void } {
  const apiServer = new ApiServer(ofServer);
  const publisher = new TopologyPublisher({ ...options, apiServer, nodeName });
  return {
    publish: publisher.publish,
    get condition() {
      return publisher.condition;
    },
    start: () => publisher.start(),
    close: async () => {
      await publisher.close();
      apiServer.close();
    },
  };
}

// How long an Event is tried: a starting API server is away for a while.
const EVENT_PATIENCE_MS = 60_000;

/** The recorder of Events, with its own connection, which waits longer than others. */
function eventsPart(
  options: { readonly log: Log; readonly metrics: Metrics },
  { nodeName, apiServer: ofServer }: OnNode,
): Part & { readonly record: RecordEvent } {
  const apiServer = new ApiServer({ patienceMs: EVENT_PATIENCE_MS, ...ofServer });
  const recorder = new EventRecorder({ ...options, apiServer, nodeName });
  return {
    record: recorder.record,
    get condition() {
      return recorder.condition;
    },
    start: async () => {},
    close: async () => {
      await recorder.close();
      apiServer.close();
    },
  };
}

interface DraParts extends Pick<DraDriver, 'findClaim'> {
  readonly slices: SlicePublisher | undefined;
  readonly parts: readonly Part[];
}

/** The DRA driver and the slices of its devices, with a connection of their own. */
function draParts(
  options: Omit<DraDriverOptions, keyof DraPart | 'apiServer'> & Pick<NodeSlicesOptions, 'manager'>,
  {
    apiServer: ofServer,
    slices: ofSlices,
    placement,
    ...ofDriver
  }: NonNullable<NodeAgentOptions['dra']> & Pick<NodeSlicesOptions, 'placement'>,
): DraParts {
  const apiServer = new ApiServer(ofServer);
  const driver = new DraDriver({ ...options, ...ofDriver, apiServer });
  const slices =
    ofSlices && nodeSlices({ ...options, ...ofSlices, ...{ apiServer, placement }, driver: driver.driver });
  const ofKubelet: Part = {
    get condition() {
      return driver.condition;
    },
    start: () => driver.start(),
    close: async () => {
      await driver.close();
      apiServer.close();
    },
  };
  return { findClaim: driver.findClaim, slices, parts: slices ? [ofKubelet, slices] : [ofKubelet] };
}

/** What follows refusals, with its own connection. */
function refusalsPart(
  options: Pick<RefusalsOptions, 'log' | 'metrics' | 'recordEvent'>,
  { nodeName, apiServer: ofServer, mode }: OnNode & Pick<RefusalsOptions, 'mode'>,
): Part & { readonly refusals: Refusals } {
  const apiServer = new ApiServer(ofServer);
  const refusals = new Refusals({ ...options, apiServer, nodeName, mode });
  return {
    refusals,
    get condition() {
      return refusals.condition;
    },
    start: () => refusals.start(),
    close: async () => {
      await refusals.close();
      apiServer.close();
    },
  };
}
