import fc from 'fast-check';
import { expect, test } from 'vitest';
import { encode } from '../../lib/nri/protocol.js';
import { countFields } from '../../lib/protobuf/fields.js';

test('fields are counted one by one, whatever their content', () => {
  fc.assert(
    fc.property(fc.array(fc.string()), fc.array(fc.string()), (pods, containers) => {
      const lists = {
        pods: pods.map((id) => ({ id })),
        containers: containers.map((id) => ({ id })),
        more: true,
      };
      expect(countFields(encode('SynchronizeRequest', lists))).toBe(pods.length + containers.length + 1);
    }),
  );
});

test('bytes that are no message are refused', () => {
  expect(() => countFields(Buffer.from([0x0a, 5, 1]))).toThrow(RangeError);
  expect(() => countFields(Buffer.from([0x0f]))).toThrow('invalid wire type');
});

test('groups are one field, and cannot be nested without end', () => {
  expect(countFields(Buffer.from([0x0b, 0x10, 1, 0x0c]))).toBe(1);
  expect(() => countFields(Buffer.alloc(1 << 16, 0x0b))).toThrow('max depth exceeded');
});
