// NriSession: one connection with a runtime, from its registration to its end.
import type { Socket } from 'node:net';
import { NodeError } from '../base/errors.js';
import { TtrpcClient } from '../ttrpc/client.js';
import { Mux, type MuxLimits } from '../ttrpc/mux.js';
import { TtrpcServer } from '../ttrpc/server.js';
import type { NriHandlers } from './handlers.js';
import type { ContainerUpdate, Runtime } from './messages.js';
import { conflictIn, conflictText } from './plugin-conflict.js';
import { PluginService } from './plugin-service.js';
import {
  decode,
  encode,
  PLUGIN_CONNECTION,
  PLUGIN_SERVICE,
  RUNTIME_CONNECTION,
  RUNTIME_SERVICE,
} from './protocol.js';

export interface NriSessionOptions {
  /** Connected, or about to be; the session owns it. */
  readonly socket: Socket;
  readonly name: string;
  /** Two digits: runtimes call plugins in this order. */
  readonly index: string;
  readonly handlers: NriHandlers;
  readonly limits?: Partial<MuxLimits>;
}

// In milliseconds.
const REGISTER_TIMEOUT = 10_000;
// A starting runtime synchronizes once it knows what it runs.
const SYNCHRONIZE_TIMEOUT = 60_000;
const UPDATE_TIMEOUT = 10_000;

export class NriSession {
  /**
   * See Mux.closed; also ERR_NRI_REGISTER, ERR_NRI_SYNCHRONIZE, ERR_NRI_HANDLER, ERR_NRI_SHUTDOWN.
   */
  readonly closed: Promise<NodeError | undefined>;
  private readonly mux: Mux;
  private readonly client: TtrpcClient;
  private readonly synchronized: Promise<void>;
  private configuredBy: Runtime | undefined;

  constructor(private readonly options: NriSessionOptions) {
    this.mux = new Mux(options.socket, options.limits);
    this.closed = this.mux.closed;
    this.client = new TtrpcClient(this.mux, RUNTIME_CONNECTION);
    this.synchronized = new Promise((resolve) => {
      const service = new PluginService(options.handlers, {
        configured: (runtime) => {
          this.configuredBy = runtime;
        },
        synchronized: resolve,
        failed: (method, cause) => this.closeLater(failure(method, cause)),
        shutdown: () => this.closeLater(new NodeError('ERR_NRI_SHUTDOWN', 'NRI: the runtime shuts down')),
      });
      new TtrpcServer(this.mux, PLUGIN_CONNECTION, { [PLUGIN_SERVICE]: service.methods });
    });
  }

  /** What the runtime reports about itself; undefined until it has configured the plugin. */
  get runtime(): Runtime | undefined {
    return this.configuredBy;
  }

  /**
   * Registers. Resolves once the runtime has been configured with the handlers' events and the
   * first Synchronize has been handled, whatever the order of the answers.
   * @throws NodeError ERR_NRI_REGISTER (the runtime refuses or does not answer, see `cause`),
   *   ERR_NRI_SYNCHRONIZE (it does not synchronize within 60 s), or why the session is closed
   */
  async start(): Promise<void> {
    const timer = setTimeout(() => {
      const valid = `within ${SYNCHRONIZE_TIMEOUT} ms`;
      this.mux.close(
        new NodeError('ERR_NRI_SYNCHRONIZE', `NRI: the runtime does not synchronize ${valid}`, { valid }),
      );
    }, SYNCHRONIZE_TIMEOUT);
    try {
      await Promise.race([
        Promise.all([this.register(), this.synchronized]),
        this.closed.then((reason) => {
          throw reason ?? new NodeError('ERR_TTRPC_CLOSED', 'NRI: the session is closed');
        }),
      ]);
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * Updates containers outside of any call of the runtime. A handler must not wait for it:
   * containerd makes no update before the handler has answered.
   * @returns those that the runtime could not update
   * @throws NodeError ERR_NRI_CONFLICT if another plugin sets the same; see TtrpcClient.call
   */
  async updateContainers(updates: readonly ContainerUpdate[]): Promise<readonly ContainerUpdate[]> {
    const request = encode('UpdateContainersRequest', { update: updates });
    try {
      const answer = await this.call('UpdateContainers', request, UPDATE_TIMEOUT);
      return decode('UpdateContainersResponse', answer).failed;
    } catch (cause) {
      throw this.conflictOf(cause as Error) ?? cause;
    }
  }

  private conflictOf(cause: Error): NodeError | undefined {
    const conflict = conflictIn(cause.message);
    if (!conflict) return undefined;
    const { name, index } = this.options;
    const message = `NRI: ${conflictText(conflict, `${index}-${name}`)}`;
    return new NodeError('ERR_NRI_CONFLICT', message, {
      value: conflict.plugins,
      valid: 'one plugin that sets it',
      cause,
    });
  }

  /** Ends the connection at once: the runtime continues without the plugin. */
  async close(): Promise<void> {
    this.mux.close();
  }

  private async register(): Promise<void> {
    const { name, index } = this.options;
    const request = encode('RegisterPluginRequest', { plugin_name: name, plugin_idx: index });
    try {
      await this.call('RegisterPlugin', request, REGISTER_TIMEOUT);
    } catch (cause) {
      const message = `NRI: the runtime does not register ${index}-${name}: ${(cause as Error).message}`;
      const error = new NodeError('ERR_NRI_REGISTER', message, { value: `${index}-${name}`, cause });
      this.mux.close(error);
      throw error;
    }
  }

  private call(method: string, request: Uint8Array, timeout: number): Promise<Uint8Array> {
    return this.client.call(RUNTIME_SERVICE, method, request, { timeout });
  }

  // The runtime must get its answer first.
  private closeLater(reason: NodeError): void {
    setImmediate(() => this.mux.close(reason));
  }
}

function failure(method: string, cause: unknown): NodeError {
  const text = cause instanceof Error ? cause.message : String(cause);
  return new NodeError('ERR_NRI_HANDLER', `NRI: ${method} failed here: ${text}`, { value: method, cause });
}
