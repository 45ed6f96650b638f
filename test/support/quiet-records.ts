// Records of the demands and changes of quiet grants.
import fc from 'fast-check';
import type { QuietRecord } from '../../lib/account/assignments.js';
import { QUIET_PARTS, type QuietRequest } from '../../lib/account/pod-assignment.js';

const text = fc.string({ unit: 'grapheme', maxLength: 12 });

export const quietRequests: fc.Arbitrary<QuietRequest> = fc.record({
  interrupts: fc.boolean(),
  workqueues: fc.boolean(),
  packets: fc.boolean(),
  idle: fc.option(fc.record({ maxLatency: fc.nat() })),
  frequency: fc.boolean(),
  cache: fc.option(fc.oneof(fc.record({ ways: fc.nat() }), fc.record({ percent: fc.nat() }))),
});

export const quietRecords: fc.Arbitrary<QuietRecord> = fc.record({
  settings: fc.array(
    fc.record({
      part: fc.constantFrom(...QUIET_PARTS),
      path: text,
      identity: fc.option(text),
      original: text,
      written: fc.array(text, { maxLength: 2 }),
      refusal: fc.option(text),
      isLeftover: fc.boolean(),
    }),
    { maxLength: 3 },
  ),
  unknown: fc.dictionary(fc.constantFrom('future', 'toString'), fc.jsonValue()),
});
