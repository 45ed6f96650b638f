// The kubelet's side of the DRA plugin API, with real messages. The protocol is that of the proto files
// of k8s.io/kubelet: pkg/apis/pluginregistration/v1, pkg/apis/dra/v1 and v1beta1, and
// pkg/apis/dra-health/v1alpha1.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import {
  type Client,
  type ClientReadableStream,
  credentials,
  makeClientConstructor,
  type ServiceError,
} from '@grpc/grpc-js';
import type { ClaimName } from '../../lib/dra/protocol/dra-server.js';
import { serviceDefinition } from '../../lib/grpc/service.js';
import { type Message, Schema } from '../../lib/protobuf/schema.js';

const PACKAGE = 'k8s.io.kubelet.pkg.apis.dra';
const DRA = new Schema('dra');
const Registration = makeClientConstructor(
  serviceDefinition(new Schema('pluginregistration'), 'pluginregistration.Registration'),
  'Registration',
);
const Health = makeClientConstructor(
  serviceDefinition(new Schema('dra-health'), 'v1alpha1.DRAResourceHealth'),
  'DRAResourceHealth',
);
const pluginOf = (version: string) =>
  makeClientConstructor(
    serviceDefinition(DRA, `${PACKAGE}.v1.DRAPlugin`, `${PACKAGE}.${version}.DRAPlugin`),
    'DRAPlugin',
  );

type AnyClient = Client & Record<string, any>;

export const call = (
  client: AnyClient,
  method: string,
  request: Message,
  timeoutMs = 45_000,
): Promise<Message> =>
  new Promise((resolve, reject) =>
    client[method]!(
      request,
      { deadline: Date.now() + timeoutMs },
      (error: ServiceError | null, reply: Message) => (error ? reject(error) : resolve(reply)),
    ),
  );

/** A plugin that is registered. */
export interface Registered {
  /** What it says of itself. */
  readonly info: Message;
  readonly socket: string;
}

export class PlayedKubelet {
  readonly folder: string;
  readonly #clients: Client[] = [];

  constructor(folder: string) {
    this.folder = folder;
  }

  /** The sockets of plugins that announce themselves. */
  get announced(): string[] {
    return readdirSync(join(this.folder, 'plugins_registry')).sort();
  }

  #client(Constructor: ReturnType<typeof makeClientConstructor>, socket: string): AnyClient {
    // As a kubelet dials for each call: another process may listen there by now.
    const options = { 'grpc.use_local_subchannel_pool': 1 };
    const client = new Constructor(`unix://${socket}`, credentials.createInsecure(), options) as AnyClient;
    this.#clients.push(client);
    return client;
  }

  /** Registers the plugin with this socket, or refuses it. */
  async register(name = this.announced.at(-1)!, flaw = ''): Promise<Registered> {
    const socket = join(this.folder, 'plugins_registry', name);
    const client = this.#client(Registration, socket);
    const info = await call(client, 'GetInfo', {});
    await call(client, 'NotifyRegistrationStatus', { plugin_registered: flaw === '', error: flaw });
    return { info, socket };
  }

  /** A connection to the services of a registered plugin. */
  plugin({ info }: Registered, version = 'v1'): PlayedPlugin {
    const endpoint = info.endpoint as string;
    return new PlayedPlugin(this.#client(pluginOf(version), endpoint), this.#client(Health, endpoint));
  }

  close(): void {
    for (const client of this.#clients) client.close();
  }
}

/** A refusal of a claim, as a kubelet has it. */
export class ClaimError extends Error {}

export class PlayedPlugin {
  readonly #plugin: AnyClient;
  readonly #health: AnyClient;

  constructor(plugin: AnyClient, health: AnyClient) {
    this.#plugin = plugin;
    this.#health = health;
  }

  /** By the uid of the claim. */
  async prepareAll(claims: readonly ClaimName[], timeoutMs?: number): Promise<Record<string, Message>> {
    return (await call(this.#plugin, 'NodePrepareResources', { claims }, timeoutMs)).claims;
  }

  async unprepareAll(claims: readonly ClaimName[], timeoutMs?: number): Promise<Record<string, Message>> {
    return (await call(this.#plugin, 'NodeUnprepareResources', { claims }, timeoutMs)).claims;
  }

  /** The devices. @throws ClaimError */
  async prepare(claim: ClaimName, timeoutMs?: number): Promise<Message[]> {
    const { devices, error } = (await this.prepareAll([claim], timeoutMs))[claim.uid]!;
    if (error !== '') throw new ClaimError(error);
    return devices;
  }

  /** @throws ClaimError */
  async unprepare(claim: ClaimName, timeoutMs?: number): Promise<void> {
    const { error } = (await this.unprepareAll([claim], timeoutMs))[claim.uid]!;
    if (error !== '') throw new ClaimError(error);
  }

  /** Calls `changed` with each list of the health of the devices. */
  watch(changed: (devices: Message[]) => void): ClientReadableStream<Message> {
    const stream = this.#health.NodeWatchResources!({}) as ClientReadableStream<Message>;
    stream.on('data', ({ devices }: Message) => changed(devices));
    stream.on('error', () => {});
    return stream;
  }
}
