// needs: nothing
// Schemata as text.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readCacheInfo } from '../../../lib/quiet/resctrl/cache-info.js';
import { widestRun } from '../../../lib/quiet/resctrl/cache-ways.js';
import { parseSchemata, printSchemata } from '../../../lib/quiet/resctrl/schemata.js';
import { kernelTree } from '../../support/kernel-tree.js';

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

it.each([
  ['none', 0, 0],
  ['the lowest of several', 0b110110, 0b110],
  ['the widest', 0b1110110, 0b1110000],
  ['all', 0xffffffff, 0xffffffff],
  ['the highest', 0x80000000, 0x80000000],
])('the widest run of ways is %s', (_, mask, run) => {
  expect(widestRun(mask)).toBe(run);
});

it('the caches can be allotted if there is a mask of their ways', () => {
  const infoOf = (mask: string) => readCacheInfo(kernelTree({ '/sys/fs/resctrl/info/L3/cbm_mask': mask }));
  expect(infoOf('ff\n')).toEqual({ all: 0xff, minBits: 1, shareable: 0 });
  expect([infoOf('0'), infoOf('x')]).toEqual([undefined, undefined]);
});
