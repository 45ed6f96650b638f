// A session and the runtime it talks to.
import { connectTo } from '../../lib/nri/connect.js';
import type { NriHandlers } from '../../lib/nri/handlers.js';
import { NriSession } from '../../lib/nri/session.js';
import { type FakePlugin, FakeRuntime, type FakeRuntimeOptions } from './fake-runtime.js';
import { type SocketFolder, socketFolder } from './socket-folder.js';

/** One at a time; `close` takes away what was made. */
export class SessionPair {
  private place: SocketFolder | undefined;
  private runtime: FakeRuntime | undefined;
  private session: NriSession | undefined;

  /** A session, about to register. */
  async connect(handlers: NriHandlers, options: FakeRuntimeOptions = {}) {
    this.place = socketFolder();
    this.runtime = await FakeRuntime.listen(this.place.socketPath, options);
    const socket = await connectTo(this.place.socketPath, new AbortController().signal);
    this.session = new NriSession({ socket, name: 'numalign', index: '10', handlers });
    const started = this.session.start();
    started.catch(() => {});
    return { session: this.session, started, runtime: this.runtime };
  }

  /** The same, configured and synchronized. */
  async synchronize(handlers: NriHandlers): Promise<{ session: NriSession; peer: FakePlugin }> {
    const { session, started, runtime } = await this.connect(handlers);
    const peer = await runtime.synchronizedPlugin();
    await started;
    return { session, peer };
  }

  async close(): Promise<void> {
    await this.session?.close();
    await this.runtime?.close();
    this.place?.remove();
  }
}
