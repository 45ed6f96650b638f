// RuntimeTeller: tells a runtime of cpusets that it does not know, outside of any answer.
import { NodeError } from '../base/errors.js';
import { hasSafeUpdates } from '../nri/abilities.js';
import type { ContainerUpdate, Runtime } from '../nri/messages.js';
import { RuntimeClient } from './runtime-client.js';
import { findRuntimeSocket } from './runtime-sockets.js';

export interface RuntimeTellerOptions {
  /** The runtime's CRI socket; null: none is used. Default: see findRuntimeSocket. */
  readonly socket?: string | null | undefined;
  /** The runtime of the NRI session; undefined if there is none. */
  readonly runtime: () => Runtime | undefined;
  /** See NriPlugin.updateContainers. */
  readonly updateContainers: (updates: readonly ContainerUpdate[]) => Promise<unknown>;
}

export class RuntimeTeller {
  readonly #options: RuntimeTellerOptions;
  #client: RuntimeClient | undefined;

  constructor(options: RuntimeTellerOptions) {
    this.#options = options;
  }

  /**
   * Over CRI, the runtime is asked to update the container with nothing: it asks its plugins, and the
   * answer of this one has the CPUs of that moment. A runtime that can be told over NRI is told so.
   * @throws ERR_RUNTIME_UNREACHABLE if there is no CRI socket, and the runtime's NRI is older; like
   *   RuntimeClient.call; like NriPlugin.updateContainers
   */
  async tell(update: ContainerUpdate): Promise<void> {
    const { runtime, updateContainers } = this.#options;
    const current = runtime();
    // Without a session no plugin is asked, and the next one begins with all containers.
    if (!current) return;
    if (hasSafeUpdates(current)) return void (await updateContainers([update]));
    try {
      const request = { container_id: update.container_id, linux: {} };
      await this.#connected().call('UpdateContainerResources', request);
    } catch (error) {
      // The container has ended, or the socket is another runtime's.
      if (!(error instanceof NodeError) || error.code !== 'ERR_RUNTIME_NOT_FOUND') throw error;
    }
  }

  close(): void {
    this.#client?.close();
  }

  #connected(): RuntimeClient {
    const { socket } = this.#options;
    if (socket === null)
      throw new NodeError('ERR_RUNTIME_UNREACHABLE', 'the CRI socket is not to be used', {
        value: null,
        valid: 'the socket of a runtime, or NRI 0.12.2 or newer',
      });
    this.#client ??= new RuntimeClient({ socketPath: socket ?? findRuntimeSocket() });
    return this.#client;
  }
}
