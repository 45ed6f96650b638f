// NriPlugin: keeps a session with the runtime, through restarts and timeouts.
import { setTimeout as sleep } from 'node:timers/promises';
import { anySignal, Backoff } from 'numalign/tools';
import { NodeError } from '../base/errors.js';
import type { Log } from '../base/log.js';
import type { MuxLimits } from '../ttrpc/mux.js';
import { connectTo } from './connect.js';
import type { NriHandlers } from './handlers.js';
import type { ContainerUpdate, Runtime } from './messages.js';
import { changeOf, identityOf } from './path-watch.js';
import { prepareMessages } from './protocol.js';
import { NriSession } from './session.js';

/** Where container runtimes listen for plugins. */
export const NRI_SOCKET = '/var/run/nri/nri.sock';

export interface NriPluginOptions {
  /** For example {@link NRI_SOCKET}. */
  readonly socketPath: string;
  readonly name: string;
  /** Two digits: runtimes call plugins in this order. */
  readonly index: string;
  readonly handlers: NriHandlers;
  readonly log: Log;
  readonly limits?: Partial<MuxLimits>;
  /** A session has begun: the runtime, and what it runs, is known. */
  readonly connected?: (runtime: Runtime | undefined) => void;
  /** A session that had begun has ended; undefined: the runtime has closed the connection. */
  readonly disconnected?: (flaw: NodeError | undefined) => void;
}

// sun_path of unix(7) without its final 0.
const PATH_LIMIT = 107;

// In milliseconds. A session that lasted this long is resumed at once, another one after a while.
const LASTING = 1000;
const LAST_DELAY = 5000;

export class NriPlugin {
  private readonly ending = new AbortController();
  private current: NriSession | undefined;
  private started: Promise<void> | undefined;
  private running: Promise<void> | undefined;
  private lastFlaw: string | undefined;
  // The first failure is followed at once.
  private readonly backoff = new Backoff({ firstMs: 100, longestMs: LAST_DELAY, free: 1 });

  constructor(private readonly options: NriPluginOptions) {}

  /** The synchronized session; undefined if there is none. */
  get session(): NriSession | undefined {
    return this.current;
  }

  /** Why there is no session; undefined if that is not known yet, or there is one. */
  get flaw(): string | undefined {
    return this.lastFlaw;
  }

  /**
   * Resolves at the first Synchronize that is handled. Waits while there is no socket. Afterwards
   * it registers again whenever a session ends.
   * @throws NodeError ERR_NRI_INDEX, ERR_NRI_NAME, ERR_NRI_SOCKET_PATH for what can never work;
   *   ERR_NRI_CLOSED if `close` comes first
   */
  async start(): Promise<void> {
    checkOptions(this.options);
    prepareMessages();
    this.started ??= new Promise((resolve, reject) => {
      this.running = this.run(resolve).then(() => reject(closedError()), reject);
    });
    await this.started;
  }

  /**
   * Updates containers outside of any call of the runtime: see NriSession.updateContainers.
   * @returns those that the runtime could not update
   * @throws NodeError ERR_NRI_NO_SESSION without a session; see TtrpcClient.call
   */
  async updateContainers(updates: readonly ContainerUpdate[]): Promise<readonly ContainerUpdate[]> {
    if (!this.current) throw new NodeError('ERR_NRI_NO_SESSION', 'NRI: there is no session with the runtime');
    return this.current.updateContainers(updates);
  }

  async close(): Promise<void> {
    this.ending.abort(closedError());
    await this.running;
  }

  private async run(synchronized: () => void): Promise<void> {
    const { signal } = this.ending;
    while (!signal.aborted) {
      const { socketPath } = this.options;
      const identity = identityOf(socketPath);
      const flaw = await this.runSession(synchronized).catch((error: NodeError) => error);
      if (signal.aborted) return;
      this.report(flaw);
      await this.wait(identity, flaw).catch(() => {});
    }
  }

  /** Returns why the session ended. */
  private async runSession(synchronized: () => void): Promise<NodeError | undefined> {
    const { signal } = this.ending;
    const socket = await connectTo(this.options.socketPath, signal);
    const session = new NriSession({ ...this.options, socket });
    const close = () => void session.close();
    signal.addEventListener('abort', close);
    // It may have been aborted during the connection.
    if (signal.aborted) close();
    try {
      await session.start();
      const start = performance.now();
      this.current = session;
      this.lastFlaw = undefined;
      this.options.log('info', 'NRI: synchronized with the runtime', {
        socket: this.options.socketPath,
        ...session.runtime,
      });
      this.options.connected?.(session.runtime);
      synchronized();
      const reason = await session.closed;
      this.current = undefined;
      if (!signal.aborted) this.options.disconnected?.(reason);
      if (performance.now() - start >= LASTING) this.backoff.reset();
      return reason;
    } finally {
      this.current = undefined;
      signal.removeEventListener('abort', close);
      await session.close();
    }
  }

  private report(flaw: NodeError | undefined): void {
    if (!flaw || flaw.message === this.lastFlaw) return;
    this.lastFlaw = flaw.message;
    const { socketPath } = this.options;
    const next = isMissing(flaw) ? 'waiting for the socket' : 'registering again';
    this.options.log('warn', `${flaw.message}; ${next}`, { code: flaw.code, socket: socketPath });
  }

  /** Waits until another try is worthwhile: for a new socket, or a while if there is one. */
  private async wait(identity: string, flaw: NodeError | undefined): Promise<void> {
    const over = new AbortController();
    const signal = anySignal(over.signal, this.ending.signal);
    // If the kernel has no watch left, retries less often.
    const change = changeOf(this.options.socketPath, identity, signal).then(
      // A socket that was just made may refuse a moment longer.
      () => this.backoff.reset(),
      () => sleep(LAST_DELAY, undefined, { signal }),
    );
    try {
      if (flaw && isMissing(flaw)) await change;
      else await Promise.race([change, sleep(this.backoff.next(), undefined, { signal })]);
    } finally {
      over.abort();
    }
  }
}

function isMissing(flaw: NodeError): boolean {
  if (flaw.code !== 'ERR_NRI_CONNECT') return false;
  return (flaw.details.cause as NodeJS.ErrnoException).code === 'ENOENT';
}

function closedError(): NodeError {
  return new NodeError('ERR_NRI_CLOSED', 'NRI: the plugin is closed');
}

function checkOptions({ socketPath, name, index }: NriPluginOptions): void {
  if (!/^[0-9]{2}$/.test(index)) {
    throw new NodeError('ERR_NRI_INDEX', `NRI: ${JSON.stringify(index)} is not a plugin index`, {
      value: index,
      valid: "two digits, such as '10'",
    });
  }
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name)) {
    const valid = 'up to 64 letters, digits, dots, hyphens and underscores';
    throw new NodeError('ERR_NRI_NAME', `NRI: ${JSON.stringify(name)} is not a plugin name`, {
      value: name,
      valid,
    });
  }
  const length = Buffer.byteLength(socketPath);
  if (length === 0 || length > PATH_LIMIT || socketPath.includes('\0')) {
    const valid = `a path of 1 to ${PATH_LIMIT} bytes`;
    throw new NodeError('ERR_NRI_SOCKET_PATH', `NRI: a socket's path cannot have ${length} bytes`, {
      value: socketPath,
      valid,
    });
  }
}
