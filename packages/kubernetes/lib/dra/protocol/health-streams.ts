// HealthStreams: streams the health of the devices to the kubelet, again whenever it changes, and from
// time to time: what is not repeated becomes unknown.
import type { ServerWritableStream } from '@grpc/grpc-js';
import type { Message } from '../../protobuf/schema.js';

export type HealthStream = ServerWritableStream<Message, Message>;

export interface DeviceHealth {
  readonly pool: string;
  readonly device: string;
  /** Why it does not work; undefined: it does. */
  readonly flaw: string | undefined;
}

const REPEAT_MS = 60_000;
const TIMEOUT_S = 300;
const [HEALTHY, UNHEALTHY] = [1, 2];

export class HealthStreams {
  readonly #streams = new Set<HealthStream>();
  readonly #timer = setInterval(() => this.#sendAll(), REPEAT_MS).unref();
  #devices: readonly DeviceHealth[] = [];
  #text = '[]';

  get hasStreams(): boolean {
    return this.#streams.size > 0;
  }

  /** Sends the devices to every stream if anything has changed. */
  publish(devices: readonly DeviceHealth[]): void {
    const text = JSON.stringify(devices);
    if (text === this.#text) return;
    this.#text = text;
    this.#devices = devices;
    this.#sendAll();
  }

  /** Serves a call of NodeWatchResources. */
  serve(stream: HealthStream): void {
    stream.on('cancelled', () => this.#streams.delete(stream));
    stream.on('error', () => this.#streams.delete(stream));
    this.#streams.add(stream);
    stream.write(this.#message());
  }

  // A stream that does not read keeps one message at most.
  #sendAll(): void {
    const message = this.#message();
    for (const stream of this.#streams) if (!stream.writableNeedDrain) stream.write(message);
  }

  #message(): Message {
    const now = Math.floor(Date.now() / 1000);
    return {
      devices: this.#devices.map(({ pool, device, flaw }) => ({
        device: { pool_name: pool, device_name: device },
        health: flaw === undefined ? HEALTHY : UNHEALTHY,
        last_updated_time: now,
        health_check_timeout_seconds: TIMEOUT_S,
        message: flaw ?? '',
      })),
    };
  }

  /** Ends all streams. */
  close(): void {
    clearInterval(this.#timer);
    for (const stream of this.#streams) stream.end();
    this.#streams.clear();
  }
}
