import { EventEmitter } from 'node:events';
import { CpuSet } from 'numalign';
import { describe, expect, it } from 'vitest';
import { DeviceList, type DeviceStream, type ListedDevice } from '../../lib/device-plugin/device-list.js';

/** A stream whose reader takes a message when the test says so. */
class SlowStream extends EventEmitter {
  readonly written: number[] = [];
  readonly #taken: (() => void)[] = [];
  isEnded = false;

  write({ devices }: any, taken: () => void): boolean {
    this.written.push(devices.length);
    this.#taken.push(taken);
    return false;
  }

  take(): void {
    this.#taken.shift()!();
  }

  end(): void {
    this.isEnded = true;
  }

  get asStream(): DeviceStream {
    return this as unknown as DeviceStream;
  }
}

const devices = (count: number, isHealthy = true): ListedDevice[] =>
  Array.from({ length: count }, (_, i) => ({ id: `cpu${i}`, cpus: CpuSet.of(i), nodes: [0], isHealthy }));

describe('A list of devices', () => {
  it('is sent to a slow kubelet once it has read the last, only in its newest form', () => {
    const list = new DeviceList(() => {});
    const stream = new SlowStream();
    list.publish(devices(1));
    list.serve(stream.asStream);
    for (const count of [2, 3, 4]) list.publish(devices(count));
    expect(stream.written).toEqual([1]);
    stream.take();
    expect(stream.written).toEqual([1, 4]);
    stream.take();
    list.publish(devices(5));
    expect(stream.written).toEqual([1, 4, 5]);
  });

  it('is sent again only if it differs', () => {
    const list = new DeviceList(() => {});
    const stream = new SlowStream();
    list.serve(stream.asStream);
    stream.take();
    expect(list.publish(devices(2))).toBe(true);
    stream.take();
    expect(list.publish(devices(2))).toBe(false);
    expect(list.publish(devices(2, false))).toBe(true);
    expect(stream.written).toEqual([0, 2, 2]);
  });

  it('reports the end of its last stream, once, and writes to none of them', () => {
    let ends = 0;
    const list = new DeviceList(() => ends++);
    const [first, second] = [new SlowStream(), new SlowStream()];
    list.serve(first.asStream);
    list.serve(second.asStream);
    first.emit('cancelled');
    expect(ends).toBe(0);
    second.emit('error', new Error('reset'));
    second.emit('cancelled');
    expect(ends).toBe(1);
    first.take();
    list.publish(devices(1));
    expect(first.written).toEqual([0]);
  });

  it('ends its streams when it is closed, which is no end by the kubelet', () => {
    let ends = 0;
    const list = new DeviceList(() => ends++);
    const stream = new SlowStream();
    list.serve(stream.asStream);
    list.close();
    stream.emit('cancelled');
    expect(stream.isEnded).toBe(true);
    expect(ends).toBe(0);
  });
});
