// NodeAgent: all that numalign-node does on a node, each part where it is asked for.
import type { Manager } from 'numalign';
import { ApiServer, type ApiServerOptions } from './api-server/api-server.js';
import { NodeError } from './base/errors.js';
import type { Log } from './base/log.js';
import { DevicePlugin, type DevicePluginOptions } from './device-plugin/device-plugin.js';
import { KubeletFollower, type KubeletFollowerOptions } from './kubelet/kubelet-follower.js';
import { refuseStaticKubelet } from './kubelet/kubelet-policy.js';
import { recordOf } from './kubelet/kubelet-record.js';
import { NumalignNode, type NumalignNodeOptions } from './node.js';
import { TopologyPublisher, type TopologyPublisherOptions } from './publish/topology-publisher.js';

/** What is left out of a part has that part's default; a part that is null is not there. */
export interface NodeAgentOptions {
  /** It stays the caller's. */
  readonly manager: Manager;
  readonly log: Log;
  /** The plugin of the container runtime. */
  readonly nri: Omit<NumalignNodeOptions, 'manager' | 'restoreAllocation' | 'log'> | null;
  /** Devices of the kubelet. */
  readonly devicePlugin: Omit<DevicePluginOptions, 'manager' | 'log'> | null;
  /** What the kubelet has given out is kept on record. */
  readonly kubelet: Omit<KubeletFollowerOptions, 'record' | 'ownResources' | 'log'> | null;
  /** The node's NodeResourceTopology. */
  readonly publish: { readonly nodeName: string; readonly apiServer?: ApiServerOptions } | null;
}

interface Part {
  start(): Promise<void>;
  close(): Promise<void>;
}

// What the plugin of a runtime does, whatever the manager's is: see NumalignNode.
const CONTAINER_SCOPE = { scope: 'container' } as const;

export class NodeAgent {
  readonly #options: NodeAgentOptions;
  readonly #parts: Part[];
  #starting: Promise<void> | undefined;
  #isClosed = false;

  /** @throws as the parts, of their options */
  constructor(options: NodeAgentOptions) {
    const { manager, log, nri, devicePlugin, kubelet, publish } = options;
    this.#options = options;
    const devices = devicePlugin && new DevicePlugin({ ...devicePlugin, manager, log });
    const parts: (Part | null)[] = [
      // What the kubelet has given out is known before anything is granted.
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
          ...{ manager, log },
        }),
    ];
    this.#parts = parts.filter((part) => part !== null);
  }

  /**
   * Starts one part after the other. Resolves once all that run have their place; it waits for a
   * container runtime that is not there yet. Once only.
   * @throws ERR_KUBELET_STATIC beside a kubelet that places containers itself; ERR_AGENT_CLOSED where
   *   {@link close} comes first; as the parts
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

  /** Containers stay where they are, and what is on record stays there. */
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

/** The publisher, with the connection that it alone uses. */
function publisher(
  options: Pick<TopologyPublisherOptions, 'manager' | 'log' | 'scope'>,
  { nodeName, apiServer: ofServer }: NonNullable<NodeAgentOptions['publish']>,
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
