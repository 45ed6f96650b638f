// The kubelet's side of the device plugin API, for tests.
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import {
  type Client,
  type ClientReadableStream,
  credentials,
  makeClientConstructor,
  type Server,
  type ServerUnaryCall,
  type ServiceError,
  type sendUnaryData,
} from '@grpc/grpc-js';
import { serviceDefinition } from '../../lib/grpc/service.js';
import { type Message, Schema } from '../../lib/protobuf/schema.js';
import { serve } from '../support/grpc-server.js';

const SCHEMA = new Schema('deviceplugin');
const Plugin = makeClientConstructor(serviceDefinition(SCHEMA, 'v1beta1.DevicePlugin'), 'DevicePlugin');

export class FakeKubelet {
  readonly folder: string;
  readonly registrations: Message[] = [];
  /** Answers a registration before anything else: throws to refuse it. */
  admit: (request: Message) => void | Promise<void> = () => {};
  /** True if it reads the devices of registered plugins. */
  isReading = true;
  /** Devices by id, and their health, from the last list; undefined: there was none. */
  devices: ReadonlyMap<string, { health: string; nodes: number[] }> | undefined;
  /** The number of lists. */
  lists = 0;
  #server: Server | undefined;
  #client: (Client & Record<string, any>) | undefined;
  #stream: ClientReadableStream<Message> | undefined;

  constructor(folder: string) {
    this.folder = folder;
  }

  /** Empties the folder, like a starting kubelet, and takes registrations. */
  async start(): Promise<void> {
    mkdirSync(this.folder, { recursive: true });
    for (const name of readdirSync(this.folder)) rmSync(join(this.folder, name));
    this.#server = await serve(join(this.folder, 'kubelet.sock'), SCHEMA, 'v1beta1.Registration', {
      Register: ({ request }: ServerUnaryCall<Message, Message>, reply: sendUnaryData<Message>) => {
        Promise.resolve(request)
          .then(this.admit)
          .then(
            () => {
              this.registrations.push(request);
              reply(null, {});
              this.#connect(request.endpoint);
            },
            (error) => reply(error),
          );
      },
    });
  }

  #connect(endpoint: string): void {
    this.forget();
    this.#client = new Plugin(`unix://${join(this.folder, endpoint)}`, credentials.createInsecure());
    if (!this.isReading) return;
    this.#stream = this.#client.ListAndWatch!({}) as ClientReadableStream<Message>;
    this.#stream.on('data', ({ devices }: Message) => {
      this.lists++;
      this.devices = new Map(
        devices.map(({ ID, health, topology }: Message) => [
          ID,
          { health, nodes: topology.nodes.map((node: Message) => node.ID) },
        ]),
      );
    });
    this.#stream.on('error', () => {});
  }

  get healthy(): string[] | undefined {
    return (
      this.devices && [...this.devices].filter(([, { health }]) => health === 'Healthy').map(([id]) => id)
    );
  }

  call(method: string, request: Message): Promise<Message> {
    return new Promise((resolve, reject) =>
      this.#client![method]!(request, (error: ServiceError | null, reply: Message) =>
        error ? reject(error) : resolve(reply),
      ),
    );
  }

  /** The environment of one container with these devices. */
  async allocate(...devicesIDs: string[]): Promise<Record<string, string>> {
    const { container_responses } = await this.call('Allocate', { container_requests: [{ devicesIDs }] });
    return container_responses[0].envs;
  }

  async prefer(available: readonly string[], allocation_size: number, mustInclude: readonly string[] = []) {
    const { container_responses } = await this.call('GetPreferredAllocation', {
      container_requests: [
        { available_deviceIDs: available, must_include_deviceIDs: mustInclude, allocation_size },
      ],
    });
    return container_responses[0].deviceIDs as string[];
  }

  /** Ends the stream of devices. */
  forget(): void {
    this.#stream?.cancel();
    this.#client?.close();
    this.#stream = this.#client = undefined;
    this.devices = undefined;
  }

  /** Ends like by a signal. */
  kill(): void {
    this.forget();
    this.#server?.forceShutdown();
    this.#server = undefined;
  }

  get isThere(): boolean {
    return existsSync(join(this.folder, 'kubelet.sock'));
  }
}
