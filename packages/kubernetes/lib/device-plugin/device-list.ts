// DeviceList: streams the devices to ListAndWatch, and again whenever they change.
import type { ServerWritableStream } from '@grpc/grpc-js';
import type { Message } from '../protobuf/schema.js';
import type { CpuDevice } from './inventory.js';

export type DeviceStream = ServerWritableStream<Message, Message>;

/** A device as the kubelet reads it: unhealthy devices are not assigned. */
export interface ListedDevice extends CpuDevice {
  readonly isHealthy: boolean;
}

function message(devices: readonly ListedDevice[]): Message {
  return {
    devices: devices.map(({ id, nodes, isHealthy }) => ({
      ID: id,
      health: isHealthy ? 'Healthy' : 'Unhealthy',
      topology: { nodes: nodes.map((ID) => ({ ID })) },
    })),
  };
}

export class DeviceList {
  readonly #onEnd: () => void;
  // `busy`: the last list is being sent; `behind`: there is a newer one.
  readonly #streams = new Map<DeviceStream, 'ready' | 'busy' | 'behind'>();
  #devices: readonly ListedDevice[] = [];
  #text = '[]';

  /** `onEnd` is called when the kubelet has ended its last stream. */
  constructor(onEnd: () => void) {
    this.#onEnd = onEnd;
  }

  get devices(): readonly ListedDevice[] {
    return this.#devices;
  }

  get hasStreams(): boolean {
    return this.#streams.size > 0;
  }

  /**
   * Sends the devices to every stream if anything has changed. A slow stream only gets the latest
   * list.
   */
  publish(devices: readonly ListedDevice[]): boolean {
    const text = JSON.stringify(message(devices));
    if (text === this.#text) return false;
    this.#text = text;
    this.#devices = devices;
    for (const [stream, state] of this.#streams) {
      if (state === 'ready') this.#send(stream);
      else this.#streams.set(stream, 'behind');
    }
    return true;
  }

  /** Serves a call of ListAndWatch. */
  serve(stream: DeviceStream): void {
    stream.on('cancelled', () => this.#forget(stream));
    stream.on('error', () => this.#forget(stream));
    this.#streams.set(stream, 'ready');
    this.#send(stream);
  }

  #send(stream: DeviceStream): void {
    this.#streams.set(stream, 'busy');
    stream.write(message(this.#devices), () => {
      const state = this.#streams.get(stream);
      if (state === 'behind') this.#send(stream);
      else if (state === 'busy') this.#streams.set(stream, 'ready');
    });
  }

  #forget(stream: DeviceStream): void {
    if (this.#streams.delete(stream) && !this.hasStreams) this.#onEnd();
  }

  /** Ends all streams when the plugin ends. */
  close(): void {
    const streams = [...this.#streams.keys()];
    this.#streams.clear();
    for (const stream of streams) stream.end();
  }
}
