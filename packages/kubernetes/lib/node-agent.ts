// NodeAgent: everything that numalign-node does on a node, as separate parts.
import type { Manager } from 'numalign';
import { ApiServer, type ApiServerOptions } from './api-server/api-server.js';
import { NodeError } from './base/errors.js';
import type { Log } from './base/log.js';
import { DevicePlugin, type DevicePluginOptions } from './device-plugin/device-plugin.js';
import { NO_EVENTS, type RecordEvent } from './events/event.js';
import { EventRecorder } from './events/event-recorder.js';
import { KubeletFollower, type KubeletFollowerOptions } from './kubelet/kubelet-follower.js';
import { refuseStaticKubelet } from './kubelet/kubelet-policy.js';
import { recordOf } from './kubelet/kubelet-record.js';
import { type Metrics, NO_METRICS } from './metrics/metrics.js';
import { NumalignNode, type NumalignNodeOptions } from './node.js';
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
    'manager' | 'restoreAllocation' | 'log' | 'metrics' | 'recordEvent' | 'refusals'
  > | null;
  /** Devices for the kubelet. */
  readonly devicePlugin: Omit<DevicePluginOptions, 'manager' | 'log'> | null;
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
}

/** The node, and where the API server is; default: as the kubelet tells a process in a pod. */
interface OnNode {
  readonly nodeName: string;
  readonly apiServer?: ApiServerOptions;
}

interface Part {
  start(): Promise<void>;
  close(): Promise<void>;
}

// The runtime's plugin always uses this scope, see NumalignNode.
const CONTAINER_SCOPE = { scope: 'container' } as const;

export class NodeAgent {
  readonly #options: NodeAgentOptions;
  readonly #parts: Part[];
  #starting: Promise<void> | undefined;
  #isClosed = false;

  /** @throws like the parts, for their options */
  constructor(options: NodeAgentOptions) {
    const { manager, log, nri, devicePlugin, kubelet, publish, events, refusals } = options;
    const { metrics = NO_METRICS } = options;
    this.#options = options;
    const devices = devicePlugin && new DevicePlugin({ ...devicePlugin, manager, log });
    const recorder = events ? eventsPart({ log, metrics }, events) : undefined;
    const recordEvent = recorder?.record ?? NO_EVENTS;
    const refused = nri && refusals ? refusalsPart({ log, metrics, recordEvent }, refusals) : undefined;
    const parts: (Part | null)[] = [
      recorder ?? null,
      refused ?? null,
      // The kubelet's assignments must be known before anything is granted.
      kubelet &&
        new KubeletFollower({
          ...kubelet,
          record: (holdings) => manager.recordKubelet(holdings.map(recordOf)),
          ownResources: devices ? [devices.resource] : [],
          log,
        }),
      devices,
      publish && publisher({ manager, log, ...(nri && CONTAINER_SCOPE) }, publish),
      nri &&
        new NumalignNode({
          ...nri,
          ...(devices && { restoreAllocation: (...found) => devices.restore(...found) }),
          ...{ manager, log, metrics, recordEvent, refusals: refused?.refusals },
        }),
    ];
    this.#parts = parts.filter((part) => part !== null);
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
    } catch (error) {
      await this.#closeParts();
      throw error;
    }
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new NodeError('ERR_AGENT_CLOSED', 'the agent was closed before it had started');
  }

  /** Containers and records stay as they are. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#closeParts();
    // What was about to start is closed by then, too.
    await this.#starting?.catch(() => {});
  }

  async #closeParts(): Promise<void> {
    for (const part of [...this.#parts].reverse()) await part.close();
  }
}

/** The publisher, with its own connection. */
function publisher(
  options: Pick<TopologyPublisherOptions, 'manager' | 'log' | 'scope'>,
  { nodeName, apiServer: ofServer }: OnNode,
): Part {
  const apiServer = new ApiServer(ofServer);
  const publisher = new TopologyPublisher({ ...options, apiServer, nodeName });
  return {
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
    start: async () => {},
    close: async () => {
      await recorder.close();
      apiServer.close();
    },
  };
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
    start: () => refusals.start(),
    close: async () => {
      await refusals.close();
      apiServer.close();
    },
  };
}
