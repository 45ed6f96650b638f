import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decode, encode } from '../../lib/nri/protocol.js';

/** A varint field of message type `field` that holds { value } in 64 bits. */
const INT64_MAX = Buffer.from('ffffffffffffffff7f', 'hex');
const INT64_MIN = Buffer.from('80808080808080808001', 'hex');
const UINT64_MAX = Buffer.from('ffffffffffffffffff01', 'hex');

const value = (varint: Buffer) => Buffer.concat([Buffer.from([0x08]), varint]);
const bytesOf = (type: string, message: object) => Buffer.from(encode(type, message));

test('an unlimited 2^63 - 1 reads as 2^63 and is 2^63 - 1 again when it is sent', () => {
  const limit = decode('OptionalInt64', value(INT64_MAX));
  expect(limit).toEqual({ value: 2 ** 63 });
  expect(bytesOf('OptionalInt64', limit)).toEqual(value(INT64_MAX));
});

test('the lowest number of 64 bits stays', () => {
  const limit = decode('OptionalInt64', value(INT64_MIN));
  expect(limit).toEqual({ value: -(2 ** 63) });
  expect(bytesOf('OptionalInt64', limit)).toEqual(value(INT64_MIN));
});

test('the largest unsigned number of 64 bits stays', () => {
  const limit = decode('OptionalUInt64', value(UINT64_MAX));
  expect(limit).toEqual({ value: 2 ** 64 });
  expect(bytesOf('OptionalUInt64', limit)).toEqual(value(UINT64_MAX));
});

test('a value beyond a field of 64 bits becomes its limit', () => {
  expect(bytesOf('OptionalInt64', { value: 1e300 })).toEqual(value(INT64_MAX));
  expect(bytesOf('OptionalInt64', { value: -1e300 })).toEqual(value(INT64_MIN));
  expect(bytesOf('OptionalUInt64', { value: 1e300 })).toEqual(value(UINT64_MAX));
  expect(decode('OptionalUInt64', encode('OptionalUInt64', { value: -1 }))).toEqual({ value: 0 });
});

test('whole numbers up to 2^53 are exact, and larger ones are the nearest double', () => {
  fc.assert(
    fc.property(fc.maxSafeInteger(), (number) => {
      expect(decode('OptionalInt64', encode('OptionalInt64', { value: number }))).toEqual({ value: number });
    }),
  );
  fc.assert(
    fc.property(fc.double({ min: 2 ** 53, max: 2 ** 63, maxExcluded: true, noNaN: true }), (number) => {
      expect(decode('OptionalInt64', encode('OptionalInt64', { value: number }))).toEqual({ value: number });
    }),
  );
});

test('a value that is no whole number is refused', () => {
  expect(() => encode('OptionalInt64', { value: 0.5 })).toThrow(TypeError);
  expect(() => encode('OptionalInt64', { value: Number.NaN })).toThrow(TypeError);
});

test('resources that were read can be sent unchanged', () => {
  const resources = {
    memory: { limit: { value: 2 ** 63 } },
    cpu: { shares: { value: 2 }, quota: { value: -1 }, cpus: '0-3', mems: '0' },
    hugepage_limits: [{ page_size: '2MB', limit: 2 ** 64 }],
    unified: { 'memory.high': 'max' },
  };
  const bytes = bytesOf('LinuxResources', resources);
  expect(bytesOf('LinuxResources', decode('LinuxResources', bytes))).toEqual(bytes);
});

test('missing fields are empty, and missing messages null', () => {
  expect(decode('Container', Buffer.alloc(0))).toEqual({
    id: '',
    pod_sandbox_id: '',
    name: '',
    state: 0,
    labels: {},
    env: [],
    annotations: {},
    linux: null,
    pid: 0,
    CDI_devices: [],
  });
});

test('a limit that is not set is null, and one of 0 is not', () => {
  const memory = { limit: { value: 0 } };
  expect(decode('LinuxMemory', encode('LinuxMemory', memory))).toMatchObject({
    limit: { value: 0 },
    swap: null,
  });
});

test('fields of a newer runtime are skipped', () => {
  const newer = Buffer.concat([bytesOf('Container', { id: 'a' }), Buffer.from('a0069601', 'hex')]);
  expect(decode('Container', newer)).toMatchObject({ id: 'a' });
});

test('a label may have any name', () => {
  const labels = Object.fromEntries([
    ['__proto__', 'x'],
    ['constructor', 'y'],
  ]);
  const read = decode('PodSandbox', encode('PodSandbox', { labels })).labels;
  expect(Object.entries(read)).toEqual(Object.entries(labels));
  expect(({} as Record<string, unknown>).x).toBeUndefined();
});

test('any bytes are a message, or an error that can be answered', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      try {
        decode('SynchronizeRequest', bytes);
      } catch (error) {
        expect(error).toMatchObject({ code: 'ERR_TTRPC_STATUS', status: 3 });
      }
    }),
  );
});
