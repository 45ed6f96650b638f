// needs: nothing
// Schemata as text.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseSchemata, printSchemata } from '../../../lib/quiet/resctrl/schemata.js';

const mask = fc.integer({ min: 1, max: 0xffffffff });
const schemata = fc
  .array(
    fc.tuple(
      fc.constantFrom('L3', 'L3CODE', 'L3DATA'),
      fc.array(fc.tuple(fc.nat(99), mask), { minLength: 1 }),
    ),
  )
  .map((lines) => new Map(lines.map(([name, pairs]) => [name, new Map(pairs)])));

describe('the text of schemata', () => {
  it('is read with the kernel’s padding, without other resources', () => {
    const text = printSchemata(parseSchemata('    MB:0=100;1=100\n    L3:1=00ff0;0=fffff\n    L2:0=ff\n'));
    expect(text).toBe('L3:0=fffff;1=ff0');
  });

  it('is empty for a group without masks', () => {
    expect(parseSchemata('L3:uninitialized\n').size).toBe(0);
  });

  it('parses to the masks that it was printed from', () => {
    fc.assert(
      fc.property(schemata, (value) => {
        expect(parseSchemata(printSchemata(value))).toEqual(value);
      }),
    );
  });

  it('is read without harm, whatever it is, and prints as an equivalent text', () => {
    const piece = fc.oneof(fc.string(), fc.constantFrom('L3:', 'L3CODE:', '0=', 'ff', ';', '\n', '=', ' '));
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        const parsed = parseSchemata(pieces.join(''));
        expect(parseSchemata(printSchemata(parsed))).toEqual(parsed);
      }),
      { numRuns: 2000 },
    );
  });
});
