// needs: agents
// The lines of a state file, as they are printed.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { journalLines } from '../../lib/state/format/journal-lines.js';
import { sealText } from '../../lib/state/format/sealed-json.js';
import { encodeMembers } from '../torture/state-file.mjs';

const EMPTY = { generation: 5, bootId: '', writtenAt: '2026-01-01', pods: [], memory: {}, cpus: [] };
const GOOD = Buffer.from(encodeMembers({ ...EMPTY, settings: { text: 'ä'.repeat(20) } }));

it('cover every byte of a file once and in order, whatever its bytes', () => {
  const change = fc.tuple(fc.nat(GOOD.length - 1), fc.nat(255));
  const damage = fc.tuple(fc.array(change, { maxLength: 5 }), fc.nat(GOOD.length), fc.uint8Array());
  fc.assert(
    fc.property(damage, ([changes, length, tail]) => {
      const bytes = Buffer.from(GOOD);
      for (const [at, value] of changes) bytes[at] = value;
      const file = Buffer.concat([bytes.subarray(0, length), tail]);
      let offset = 0;
      for (const line of journalLines(file)) {
        expect(line.offset).toBe(offset);
        expect(line.record === null).toBe(['damaged', 'unfinished'].includes(line.kind));
        offset += line.bytes;
      }
      expect(offset).toBe(file.length);
    }),
  );
});

it('are damaged by any flipped bit', () => {
  fc.assert(
    fc.property(fc.nat(GOOD.length - 1), fc.nat(7), (at, bit) => {
      const bytes = Buffer.from(GOOD);
      bytes[at]! ^= 1 << bit;
      const place = journalLines(bytes).find(({ offset, bytes: length }) => at < offset + length);
      expect(place?.record).toBeNull();
    }),
  );
});

it('are named by what they say', () => {
  const kinds = (...records: object[]) =>
    journalLines(
      Buffer.concat(records.map((record) => Buffer.from(sealText(JSON.stringify(record)).line))),
    ).map(({ kind, generation, writtenAt }) => [kind, generation, writtenAt]);
  const time = '2026-01-01';
  expect(
    kinds(
      { format: 'numalign-state', version: 9, generation: 1 },
      { line: 'state', generation: 2, writtenAt: time },
      { line: 'change', generation: 3, writtenAt: 4 },
      { line: 'future', generation: 'x' },
      { format: 'numalign-state', line: 'state' },
    ),
  ).toEqual([
    ['head', 1, null],
    ['state', 2, time],
    ['change', 3, null],
    ['other', null, null],
    ['state', null, null],
  ]);
});
