// needs: nothing
// JSON as Go's encoding/json takes it apart, against JSON.parse.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type GoJson, GoNumber, GoObject, parseGoJson } from '../../lib/kubelet/go-json.js';

function plain(value: GoJson): unknown {
  if (value instanceof GoNumber) return Number(value.text);
  if (value instanceof GoObject) {
    // Where a key is `__proto__`, as JSON.parse.
    const result = {};
    for (const [key, member] of value.members) {
      Object.defineProperty(result, key, {
        value: plain(member),
        ...{ enumerable: true, writable: true, configurable: true },
      });
    }
    return result;
  }
  return Array.isArray(value) ? value.map(plain) : value;
}

describe('a text', () => {
  it('is what JSON.parse makes of it, with whatever space between', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 4 }), fc.constantFrom(undefined, 1, '\t'), (json, space) => {
        const text = JSON.stringify(JSON.parse(json), null, space);
        // Lone surrogates apart, which Go replaces.
        fc.pre(!/\\ud[89a-f]/i.test(text));
        expect(plain(parseGoJson(text))).toEqual(JSON.parse(text));
      }),
      { numRuns: 1000 },
    );
  });

  it('keeps numbers as they are written, and every member of an object', () => {
    const numbers = ['0', '-0', '12345678901234567890', '-1.50e+10', '1E-7'];
    const value = parseGoJson(`{"a":[${numbers.join(' , ')}],"b":true,"b":false}`);
    const [[, list], ...others] = (value as GoObject).members as [
      [string, GoNumber[]],
      ...[string, GoJson][],
    ];
    expect(list.map(({ text }) => text)).toEqual(numbers);
    expect(others).toEqual([
      ['b', true],
      ['b', false],
    ]);
  });
});
