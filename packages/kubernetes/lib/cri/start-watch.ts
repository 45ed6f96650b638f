// StartWatch: notices when containers start, if the runtime is containerd. CRI also has events
// (GetContainerEvents), but containerd 1.6 lacks them, and 1.7 sends each to only one listener: a
// listening kubelet would miss some.
import type { Client, ClientReadableStream, Metadata } from '@grpc/grpc-js';
import { grpc } from '../base/late-packages.js';
import { serviceDefinition } from '../grpc/service.js';
import { type Message, Schema } from '../protobuf/schema.js';

const STARTS = { filters: ['topic=="/tasks/start"'] };

type Subscribe = (request: Message, metadata: Metadata) => ClientReadableStream<Message>;

export class StartWatch {
  readonly #client: Client;
  readonly #onStart: () => void;
  #stream: ClientReadableStream<Message> | undefined;

  constructor(socketPath: string, onStart: () => void) {
    const service = serviceDefinition(
      new Schema('containerd-events'),
      'containerd.services.events.v1.Events',
    );
    const { credentials, makeClientConstructor } = grpc();
    const Events = makeClientConstructor(service, 'Events');
    this.#client = new Events(`unix://${socketPath}`, credentials.createInsecure(), {
      'grpc.default_authority': 'localhost',
    });
    this.#onStart = onStart;
  }

  /**
   * Listens, unless it already does. The stream ends with the runtime, and at once if that has no
   * such events. This is not reported.
   */
  open(): void {
    if (this.#stream) return;
    const { Subscribe } = this.#client as unknown as { Subscribe: Subscribe };
    const stream = Subscribe.call(this.#client, STARTS, new (grpc().Metadata)());
    this.#stream = stream;
    stream.on('data', () => this.#onStart());
    stream.on('error', () => {});
    stream.on('close', () => {
      if (this.#stream === stream) this.#stream = undefined;
    });
  }

  close(): void {
    this.#stream?.cancel();
    this.#client.close();
  }
}
