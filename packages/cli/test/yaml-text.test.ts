// needs: nothing
import { describe, expect, it } from 'vitest';
import { YamlText } from '../lib/arguments/yaml-text.js';

const read = (text: string) => new YamlText('f', text).documents();

describe('YAML', () => {
  it('is read document by document, empty ones left out, each with its line', () => {
    expect(read('---\n---\na: 1\n--- # x\n\nb: 2\n...\n')).toEqual([
      { value: { a: 1 }, line: 3 },
      { value: { b: 2 }, line: 6 },
    ]);
    expect(read('')).toEqual([]);
    expect(read('{\n\t"a": [1, true, null]\n}\n')).toEqual([{ value: { a: [1, true, null] }, line: 1 }]);
  });

  it('has merged keys, and numbers as Kubernetes reads them', () => {
    const [document] = read('x: &x {cpu: 2}\ny: {<<: *x, m: 010}\nz: [1e3, 0x10, 08, "010"]\n');
    expect(document?.value).toEqual({ x: { cpu: 2 }, y: { cpu: 2, m: 8 }, z: [1000, 16, 8, '010'] });
  });

  it('resolves an alias to the last anchor of its name', () => {
    expect(read('a: &a {b: &a [1], c: *a}\nd: *a\n')[0]?.value).toEqual({ a: { b: [1], c: [1] }, d: [1] });
  });

  it('names the line and column of an error', () => {
    for (const [text, message] of [
      ['a: [1,\nb: 2', /^f, line 2, column 1: Flow sequence/],
      ['a:\n\t- b', /^f, line 2, column 1: Tabs/],
      ['x: 1\ny: {a: 1, a: 2}', /^f, line 2, column 11: "a" is a duplicate key$/],
      ['a: *b', /^f, line 1, column 4: no &b comes before this alias$/],
      ['a: &a {b: *a}', /^f, line 1, column 11: this alias is inside of &a: it would never end$/],
      ['a: !!js/function "x"', /^f, line 1, column 4: Unresolved tag/],
      ['a: !!binary aGk=', /^f, line 1, column 4: Unresolved tag/],
      ['b: 1\n? [a]\n: c', /^f, line 2, column 3: /],
    ] as const) {
      expect(() => read(text)).toThrow(message);
    }
  });

  it('cannot exhaust the process', () => {
    const levels = Array.from(
      { length: 9 },
      (_, i) => `a${i + 1}: &a${i + 1} [${Array(9).fill(`*a${i}`).join(',')}]`,
    );
    expect(() => read(`a0: &a0 [x]\n${levels.join('\n')}\n`)).toThrow('alias');
    for (const opening of ['[', '{a: ', '- ', '? ']) {
      expect(() => read(opening.repeat(100_000))).toThrow(
        /^f, line 1, column \d+: nested deeper than 200 levels$/,
      );
    }
    // The time grows with the number of keys, not with its square.
    const keys = Array.from({ length: 20_000 }, (_, i) => `k${i}: 1`);
    expect(Object.keys(read(keys.join('\n'))[0]!.value as object)).toHaveLength(20_000);
    expect(read('__proto__: {x: 1}')[0]!.value).not.toHaveProperty('x');
  });
});
