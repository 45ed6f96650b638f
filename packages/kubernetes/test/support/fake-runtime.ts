// A container runtime's side of NRI, over a real Unix socket: for tests of plugins.
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { decode, encode } from '../../lib/nri/protocol.js';
import type { Message } from '../../lib/protobuf/schema.js';
import { TtrpcClient } from '../../lib/ttrpc/client.js';
import { Mux } from '../../lib/ttrpc/mux.js';
import { TtrpcServer } from '../../lib/ttrpc/server.js';

const PLUGIN = 'nri.pkg.api.v1alpha1.Plugin';
const RUNTIME = 'nri.pkg.api.v1alpha1.Runtime';

/** As containerd's default. */
const REQUEST_TIMEOUT = 60_000;

/** Numbers of events, as StateChange has them. */
const EVENTS: Record<string, number> = {
  RunPodSandbox: 1,
  StopPodSandbox: 2,
  RemovePodSandbox: 3,
  PostCreateContainer: 5,
  StartContainer: 6,
  PostStartContainer: 7,
  PostUpdateContainer: 9,
  RemoveContainer: 11,
};

export type EventStyle = 'StateChange' | 'call';

export interface FakeRuntimeOptions {
  readonly name?: string;
  readonly version?: string;
  /** How it answers a registration: after Configure, before it, or with this error. */
  readonly registration?: 'early' | 'late' | { readonly error: string };
  /** At each registration, also at one that is refused. */
  readonly onRegister?: (request: Message) => void;
}

/** Listens on a socket and takes plugins; the test decides what happens with each. */
export class FakeRuntime {
  private readonly server: Server;
  private readonly plugins: FakePlugin[] = [];
  private readonly waiting: ((plugin: FakePlugin) => void)[] = [];
  private readonly sockets = new Set<Socket>();

  private constructor(private readonly options: FakeRuntimeOptions) {
    this.server = createServer((socket) => this.accept(socket));
  }

  static async listen(path: string, options: FakeRuntimeOptions = {}): Promise<FakeRuntime> {
    const runtime = new FakeRuntime(options);
    runtime.server.listen(path);
    await once(runtime.server, 'listening');
    return runtime;
  }

  /** The next plugin that has registered. */
  plugin(): Promise<FakePlugin> {
    const plugin = this.plugins.shift();
    if (plugin) return Promise.resolve(plugin);
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  /** The next plugin, configured and synchronized with this state. */
  async synchronizedPlugin(pods: Message[] = [], containers: Message[] = []): Promise<FakePlugin> {
    const plugin = await this.plugin();
    await plugin.configure();
    await plugin.synchronize(pods, containers);
    return plugin;
  }

  /** Removes the socket and every connection, like a runtime that ends. */
  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private accept(socket: Socket): void {
    this.sockets.add(socket);
    socket.on('close', () => this.sockets.delete(socket));
    new FakePlugin(socket, this.options, (plugin) => {
      const next = this.waiting.shift();
      if (next) next(plugin);
      else this.plugins.push(plugin);
    });
  }
}

/** A plugin, from the runtime's side. */
export class FakePlugin {
  /** Resolves when the plugin, or the test, has ended the connection. */
  readonly closed: Promise<unknown>;
  /** `plugin_name` and `plugin_idx`. */
  registration: Message = {};
  /** The mask of events that the plugin asked for. */
  events = 0;
  /** Requests for updates without a call, in order; `onUpdate` says which of them fail. */
  readonly updates: Message[] = [];
  onUpdate: (request: Message) => Message[] | Promise<Message[]> = () => [];
  private readonly mux: Mux;
  private readonly client: TtrpcClient;
  private readonly configured: Promise<void>;
  private endConfiguration!: () => void;

  constructor(
    readonly socket: Socket,
    private readonly options: FakeRuntimeOptions,
    registered: (plugin: FakePlugin) => void,
  ) {
    this.mux = new Mux(socket);
    this.closed = this.mux.closed;
    this.configured = new Promise((resolve) => {
      this.endConfiguration = resolve;
    });
    this.client = new TtrpcClient(this.mux, 1);
    new TtrpcServer(this.mux, 2, {
      [RUNTIME]: {
        RegisterPlugin: (payload) => this.register(decode('RegisterPluginRequest', payload), registered),
        UpdateContainers: (payload) => this.update(decode('UpdateContainersRequest', payload)),
      },
    });
  }

  async configure(fields: Message = {}): Promise<Message> {
    const { name = 'fake', version = '1.0.0' } = this.options;
    const request = { runtime_name: name, runtime_version: version, ...fields };
    const answer = await this.call('Configure', 'ConfigureRequest', request, 'ConfigureResponse');
    this.events = answer.events;
    this.endConfiguration();
    return answer;
  }

  /** In one request, or as many as there are parts. */
  async synchronize(pods: Message[], containers: Message[], parts = 1): Promise<Message> {
    const share = (all: Message[], part: number) =>
      all.slice(Math.floor((all.length * part) / parts), Math.floor((all.length * (part + 1)) / parts));
    let answer: Message = {};
    for (let part = 0; part < parts; part += 1) {
      const more = part < parts - 1;
      const request = { pods: share(pods, part), containers: share(containers, part), more };
      answer = await this.call('Synchronize', 'SynchronizeRequest', request, 'SynchronizeResponse');
      // Like containerd: a plugin that does not collect updates cannot take so many.
      if (answer.more !== more || (more && answer.update.length > 0))
        throw new Error('no split synchronization');
    }
    return answer;
  }

  createContainer(pod: Message, container: Message): Promise<Message> {
    return this.call(
      'CreateContainer',
      'CreateContainerRequest',
      { pod, container },
      'CreateContainerResponse',
    );
  }

  updateContainer(pod: Message, container: Message, linux_resources: Message): Promise<Message> {
    const request = { pod, container, linux_resources };
    return this.call('UpdateContainer', 'UpdateContainerRequest', request, 'UpdateContainerResponse');
  }

  stopContainer(pod: Message, container: Message): Promise<Message> {
    return this.call('StopContainer', 'StopContainerRequest', { pod, container }, 'StopContainerResponse');
  }

  shutdown(): Promise<Message> {
    return this.call('Shutdown', 'Empty', {}, 'Empty');
  }

  /** `name`: such as RunPodSandbox; sent in the style of old runtimes or of new ones. */
  async event(
    name: string,
    pod: Message,
    container?: Message,
    style: EventStyle = 'StateChange',
  ): Promise<void> {
    const subject = container ? { pod, container } : { pod };
    if (style === 'call') await this.call(name, 'EventRequest', subject, 'Empty');
    else await this.call('StateChange', 'StateChangeEvent', { event: EVENTS[name], ...subject }, 'Empty');
  }

  /** Any call, by the names of its messages. */
  async call(
    method: string,
    requestType: string,
    request: Message,
    answerType: string,
    timeout = REQUEST_TIMEOUT,
  ): Promise<Message> {
    return decode(answerType, await this.callBytes(method, encode(requestType, request), timeout));
  }

  callBytes(method: string, payload: Uint8Array, timeout = REQUEST_TIMEOUT): Promise<Uint8Array> {
    return this.client.call(PLUGIN, method, payload, { timeout });
  }

  /** Like a runtime that drops a plugin. */
  disconnect(): void {
    this.mux.close();
  }

  private async register(request: Message, registered: (plugin: FakePlugin) => void): Promise<Uint8Array> {
    const { registration = 'early', onRegister } = this.options;
    onRegister?.(request);
    if (typeof registration === 'object') throw new Error(registration.error);
    this.registration = request;
    registered(this);
    if (registration === 'late') await this.configured;
    return encode('Empty', {});
  }

  private async update(request: Message): Promise<Uint8Array> {
    this.updates.push(request);
    return encode('UpdateContainersResponse', { failed: await this.onUpdate(request) });
  }
}
