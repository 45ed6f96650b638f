// needs: nothing
// Readers of events that are slow, with responses that only count.
import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { Stream, Streams } from '../lib/serving/streams.js';

class Response extends EventEmitter {
  readonly socket = null;
  readonly written: string[] = [];
  writableNeedDrain = false;
  isDestroyed = false;

  write(text: string): void {
    this.written.push(text);
  }

  destroy(): void {
    this.isDestroyed = true;
  }

  drain(): void {
    this.writableNeedDrain = false;
    this.emit('drain');
  }

  /** What was sent, but for the first lines. */
  get sent(): unknown[] {
    return this.written.slice(1).map((text) => JSON.parse(text.slice('data: '.length)));
  }
}

const asResponse = (response: Response) => response as unknown as ServerResponse;
const update = (a: string, b: string) => ({ time: '', colors: 32, sections: { a, b } });
const changed = (sections: object) => ({ time: '', colors: 32, sections });

describe('a stream', () => {
  it('sends what has changed since it last sent', () => {
    const response = new Response();
    const stream = new Stream<'a' | 'b'>(asResponse(response));
    for (const each of [update('1', '1'), update('2', '1'), update('2', '1')]) stream.send(each);
    expect(response.sent).toEqual([changed({ a: '1', b: '1' }), changed({ a: '2' }), changed({})]);
  });

  it('keeps only the newest update for a reader that does not read', () => {
    const response = new Response();
    const stream = new Stream<'a' | 'b'>(asResponse(response));
    stream.send(update('0', '0'));
    response.writableNeedDrain = true;
    for (let i = 1; i <= 1000; i++) stream.send(update(`${i}`, '0'));
    expect(response.sent).toHaveLength(1);
    response.drain();
    expect(response.sent.slice(1)).toEqual([changed({ a: '1000' })]);
    response.drain();
    expect(response.sent).toHaveLength(2);
  });

  it('sends a reader away that takes nothing for a minute', () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const response = new Response();
    const stream = new Stream<'a' | 'b'>(asResponse(response));
    response.writableNeedDrain = true;
    stream.send(update('1', '1'));
    vi.advanceTimersByTime(59_000);
    stream.send(update('2', '1'));
    expect(response.isDestroyed).toBe(false);
    vi.advanceTimersByTime(2000);
    stream.send(update('3', '1'));
    expect(response.isDestroyed).toBe(true);
  });
});

describe('streams', () => {
  it('look for all readers together, at intervals and at changes, until the last has gone', () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const looks: boolean[] = [];
    const listeners = new Set<() => void>();
    const streams = new Streams<'a' | 'b'>({
      max: 2,
      intervalMs: 2000,
      look: (isNew) => {
        looks.push(isNew);
        return update(`${looks.length}`, '');
      },
      watch: (listener) => {
        listeners.add(listener);
        return () => void listeners.delete(listener);
      },
    });
    const responses = [new Response(), new Response()];
    for (const response of responses) streams.add(asResponse(response));
    expect([streams.isFull, looks.length, listeners.size]).toEqual([true, 2, 1]);
    vi.advanceTimersByTime(2000);
    for (const listener of listeners) listener();
    expect(looks).toEqual([false, false, false, true]);
    for (const { sent } of responses) expect(sent).toHaveLength(3);
    for (const response of responses) response.emit('close');
    expect([streams.isFull, listeners.size, vi.getTimerCount()]).toEqual([false, 0, 0]);
    vi.advanceTimersByTime(10_000);
    expect(looks).toHaveLength(4);
  });
});
