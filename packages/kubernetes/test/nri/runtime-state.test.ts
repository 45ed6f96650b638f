import { expect, test } from 'vitest';
import { encode } from '../../lib/nri/protocol.js';
import { RuntimeState } from '../../lib/nri/runtime-state.js';

const part = (pods: string[], containers: string[], more = false) =>
  encode('SynchronizeRequest', {
    pods: pods.map((id) => ({ id })),
    containers: containers.map((id) => ({ id })),
    more,
  });

test('parts are one list in their order', () => {
  const state = new RuntimeState();
  expect(state.add(part(['a'], ['1', '2'], true))).toBe(true);
  expect(state.add(part(['b'], ['3']))).toBe(false);
  expect(state.pods.map(({ id }) => id)).toEqual(['a', 'b']);
  expect(state.containers.map(({ id }) => id)).toEqual(['1', '2', '3']);
});

test('more pods and containers than a machine can run are refused before they are made', () => {
  // 2 bytes each: a container without a field.
  const empty = Buffer.alloc(2 << 16, Buffer.from([0x12, 0]));
  const state = new RuntimeState();
  expect(state.add(empty)).toBe(false);
  expect(() => state.add(Buffer.from([0x12, 0]))).toThrow(expect.objectContaining({ status: 8 }));
  expect(state.containers.length).toBe(1 << 16);
});

test('parts without an end are refused', () => {
  const state = new RuntimeState();
  const [most, parts] = [64 << 20, 16];
  const sized = (length: number) => part([], ['x'.repeat(length)], true);
  const spare = sized(most / parts - 100).length - (most / parts - 100);
  const large = sized(most / parts - spare);
  expect(large.length * parts).toBe(most);
  for (let i = 0; i < parts; i += 1) state.add(large);
  expect(() => state.add(Buffer.from([0x12, 0]))).toThrow(expect.objectContaining({ status: 8 }));
});

test('bytes that are no list are refused', () => {
  expect(() => new RuntimeState().add(Buffer.from([0x12, 0xff]))).toThrow(
    expect.objectContaining({ status: 3 }),
  );
});
