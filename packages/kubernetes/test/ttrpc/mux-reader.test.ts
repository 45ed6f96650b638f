import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MUX_PAYLOAD_LIMIT, MuxReader } from '../../lib/ttrpc/mux-reader.js';
import { mux } from '../support/raw-peer.js';

/** The bytes of each connection, after the stream has come in these parts. */
function connectionsOf(parts: Buffer[]): { bytes: Map<number, Buffer>; reader: MuxReader } {
  const bytes = new Map<number, Buffer>();
  const reader = new MuxReader((id, part) => {
    bytes.set(id, Buffer.concat([bytes.get(id) ?? Buffer.alloc(0), part]));
  });
  for (const part of parts) reader.push(part);
  return { bytes, reader };
}

const anyPayload = fc.record({
  id: fc.constantFrom(0, 1, 2, 2 ** 32 - 1),
  payload: fc.uint8Array({ maxLength: 100 }),
});

test("a connection's bytes are the same however the stream is cut and framed", () => {
  fc.assert(
    fc.property(fc.array(anyPayload, { maxLength: 10 }), fc.integer({ min: 1, max: 20 }), (sent, size) => {
      const stream = Buffer.concat(sent.map(({ id, payload }) => mux(id, payload)));
      const parts = Array.from({ length: Math.ceil(stream.length / size) }, (_, i) =>
        stream.subarray(i * size, (i + 1) * size),
      );
      const { bytes, reader } = connectionsOf(parts);
      for (const id of [0, 1, 2, 2 ** 32 - 1]) {
        const expected = Buffer.concat(sent.filter((each) => each.id === id).map((each) => each.payload));
        expect(bytes.get(id) ?? Buffer.alloc(0)).toEqual(expected);
      }
      expect(reader.isWithinFrame).toBe(false);
    }),
  );
});

test('a payload of 16 MiB is taken, and one byte more is not', () => {
  const header = mux(1, Buffer.alloc(0));
  header.writeUInt32BE(MUX_PAYLOAD_LIMIT, 4);
  expect(connectionsOf([header]).reader.isWithinFrame).toBe(true);
  header.writeUInt32BE(MUX_PAYLOAD_LIMIT + 1, 4);
  expect(() => connectionsOf([header])).toThrow(
    expect.objectContaining({
      code: 'ERR_TTRPC_MUX',
      details: expect.objectContaining({ value: MUX_PAYLOAD_LIMIT + 1 }),
    }),
  );
});

test('a part is passed on before its frame is whole', () => {
  const stream = mux(1, Buffer.from('abcdef'));
  expect(connectionsOf([stream.subarray(0, 11)]).bytes.get(1)).toEqual(Buffer.from('abc'));
});
