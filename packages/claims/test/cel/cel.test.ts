// needs: nothing
// Selectors in the Common Expression Language: what they mean, and what becomes of wrong ones.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { budget } from '../../../../test/support/budget.mjs';
import { EvaluationError, matches, Quantity, type SelectedDevice } from '../../lib/cel/evaluate.js';
import { BINARY_LEVELS, type Expression } from '../../lib/cel/expression.js';
import { parseCel } from '../../lib/cel/parse.js';
import { beyondSubset } from '../../lib/cel/subset.js';
import { CelError } from '../../lib/cel/tokens.js';

const GI = 2n ** 30n * 10n ** 9n;
const DEVICE: SelectedDevice = {
  driver: 'numalign.io',
  allowMultipleAllocations: true,
  attributes: new Map<string, ReadonlyMap<string, string | bigint | boolean>>([
    [
      'numalign.io',
      new Map<string, string | bigint | boolean>([
        ['kind', 'node'],
        ['socket', 1n],
        ['smt', true],
      ]),
    ],
    ['resource.kubernetes.io', new Map([['numaNode', 3n]])],
  ]),
  capacity: new Map([
    [
      'numalign.io',
      new Map([
        ['cpu', new Quantity(8n * 10n ** 9n)],
        ['memory', new Quantity(16n * GI)],
      ]),
    ],
  ]),
};
const own = 'device.attributes["numalign.io"]';
const amounts = "device.capacity['numalign.io']";

describe('a selector', () => {
  it.each([
    ['device.driver == "numalign.io"', true],
    [`${own}.kind == 'node' && ${own}.smt`, true],
    [`${own}.socket in [0, 1]`, true],
    [`!(${own}.socket >= 2) || false`, true],
    ['device.attributes["resource.kubernetes.io"].numaNode != 3', false],
    ['device.attributes["resource.kubernetes.io"]["numaNode"] == 3.0', true],
    [`'kind' in ${own} && !("gpu" in ${own})`, true],
    ['"gpu.example.com" in device.attributes', false],
    [`"x" in device.attributes["gpu.example.com"]`, false],
    [`${amounts}.memory.compareTo(quantity("16Gi")) == 0`, true],
    [`${amounts}.cpu.isGreaterThan(quantity('7500m'))`, true],
    [`${amounts}.memory.isLessThan(quantity("1Ti")) && device.allowMultipleAllocations`, true],
    [`${amounts}.cpu == quantity("8")`, true],
    [`[1, 2] == [1, 2] && -1 < 0 && "a" < "b" && 0x10 == 16 && 1.5e1 > 1`, true],
    [`r"\\d" == "\\\\d" && "\\x41\\u0042\\U00000043\\104" == 'ABCD' // letters`, true],
    [`"""a\n"b" """ == 'a\\n"b" '`, true],
  ])('%s: %s', (text, expected) => {
    const selector = parseCel(text);
    expect(beyondSubset(selector)).toBeUndefined();
    expect(matches(selector, DEVICE)).toBe(expected);
  });

  it('decides with the side that has a value', () => {
    for (const text of [`${own}.gpu || true`, `true || ${own}.gpu`, `!(${own}.gpu && false)`])
      expect(matches(parseCel(text), DEVICE)).toBe(true);
    expect(() => matches(parseCel(`${own}.gpu || false`), DEVICE)).toThrow('no such key: gpu');
  });

  it.each([
    [`${own}.gpu == 1`, 'no such key: gpu'],
    [`${own}.kind < 1`, '< does not compare a text with a whole number'],
    [`${amounts}.cpu > quantity("1")`, 'quantities have compareTo()'],
    [`${own}.kind`, 'the selector is a text, not true or false'],
    [`quantity("1x") == quantity("1")`, '"1x" is no quantity'],
  ])('%s has no value: %s', (text, why) => {
    expect(() => matches(parseCel(text), DEVICE)).toThrow(why);
  });

  it.each([
    ['', 'the end is where a value should be', 0],
    ['device.', 'the end is where a name should be', 7],
    ['a == ', 'the end is where a value should be', 5],
    ['a b', 'b is where the end should be', 2],
    ['(a', 'the end is where ) should be', 2],
    ['a = 1', '"=" is no part of an expression', 2],
    ['"open', '"\\"" is no part of an expression', 0],
    ['"\\q"', '\\q is no escape', 0],
    ['f(1,)', ') is where an argument should be', 4],
    ['9223372036854775809', 'is greater than', 0],
    ['for', 'for is reserved', 0],
    ['a ? b', 'the end is where : should be', 5],
  ])('%j is wrong: %s', (text, why, at) => {
    const parse = () => parseCel(text);
    expect(parse).toThrow(CelError);
    expect(parse).toThrow(expect.objectContaining({ message: expect.stringContaining(why), at }));
  });

  it.each([
    ['a == 1', 'the name a'],
    ['device.attributes["x"].y.matches("a")', 'the method matches()'],
    ['semver("1.0.0") == semver("1.0.0")', 'the function semver()'],
    ['1 + 1 == 2', 'the operator +'],
    ['device.x == 1', 'device.x'],
    ['true ? false : true', 'the choice ? :'],
    [`${own}.?gpu == 1`, 'the optional member .?'],
    [`${own}.list.exists(x, x == 1)`, 'the method exists()'],
    ['{"a": 1} == {}', 'a map'],
    ['b"a" == b"a"', 'bytes'],
    ['T{a: 1} == 1u', 'a message'],
  ])('%s is beyond what is evaluated: %s', (text, what) => {
    expect(beyondSubset(parseCel(text))).toBe(what);
  });

  it('is not nested without bounds', () => {
    for (const [open, close] of [
      ['(', ')'],
      ['!', ''],
      ['[', ']'],
      ['-', ''],
    ] as const)
      expect(() => parseCel(`${open.repeat(9_000)}1${close.repeat(1)}`)).toThrow('nested deeper than 250');
    expect(() => parseCel(' '.repeat(10_241))).toThrow('longer than 10240');
  });
});

/** A part of the subset with its value, in the words of JavaScript; undefined: it has none. */
interface Meant {
  readonly text: string;
  readonly value: boolean | undefined;
}

const meantExpressions = fc.letrec<{ whole: Meant }>((tie) => {
  const whole = tie('whole') as fc.Arbitrary<Meant>;
  const leaf = fc.oneof(
    fc.constant<Meant>({ text: `${own}.gpu`, value: undefined }),
    fc.boolean().map((value): Meant => ({ text: String(value), value })),
    fc
      .tuple(fc.integer(), fc.integer(), fc.constantFrom('==', '!=', '<', '<=', '>', '>='))
      .map(([a, b, operator]): Meant => {
        const holds = { '==': a === b, '!=': a !== b, '<': a < b, '<=': a <= b, '>': a > b, '>=': a >= b };
        return { text: `${a} ${operator} ${b}`, value: holds[operator as '=='] };
      }),
    fc.tuple(fc.string(), fc.array(fc.string(), { maxLength: 3 })).map(
      ([text, all]): Meant => ({
        text: `${JSON.stringify(text)} in [${all.map((each) => JSON.stringify(each)).join()}]`,
        value: all.includes(text),
      }),
    ),
  );
  const joined = (operator: '&&' | '||') =>
    fc.tuple(whole, whole).map(([a, b]): Meant => {
      const decisive = operator === '||';
      const values = [a.value, b.value];
      const value = values.includes(decisive) ? decisive : values.includes(undefined) ? undefined : !decisive;
      return { text: `(${a.text}) ${operator} (${b.text})`, value };
    });
  const not = whole.map(
    ({ text, value }): Meant => ({ text: `!(${text})`, value: value === undefined ? value : !value }),
  );
  return { whole: fc.oneof({ depthSize: 'small' }, leaf, joined('&&'), joined('||'), not) };
});

const withoutPlaces = (expression: Expression): unknown =>
  JSON.parse(
    JSON.stringify(expression, (key, value) =>
      key === 'at' ? 0 : typeof value === 'bigint' ? `${value}n` : value,
    ),
  );

/** Each operation in parentheses. */
function textOf(expression: Expression): string {
  if (expression.kind === 'literal')
    return JSON.stringify(expression.value, (_, v) => (typeof v === 'bigint' ? Number(v) : v));
  if (expression.kind === 'unary') return `${expression.operator}(${textOf(expression.of)})`;
  if (expression.kind === 'binary')
    return `(${textOf(expression.left)} ${expression.operator} ${textOf(expression.right)})`;
  throw new Error(expression.kind);
}

const operations = fc.letrec<{ whole: Expression }>((tie) => ({
  whole: fc.oneof(
    { depthSize: 'small' },
    fc
      .oneof(fc.nat().map(BigInt), fc.boolean(), fc.stringMatching(/^\w*$/))
      .map((value): Expression => ({ kind: 'literal', at: 0, value })),
    fc.record({
      kind: fc.constant('binary' as const),
      at: fc.constant(0),
      operator: fc.constantFrom(...BINARY_LEVELS.flat()),
      left: tie('whole') as fc.Arbitrary<Expression>,
      right: tie('whole') as fc.Arbitrary<Expression>,
    }),
    (tie('whole') as fc.Arbitrary<Expression>).map(
      (of): Expression => ({ kind: 'unary', at: 0, operator: '!', of }),
    ),
  ),
}));

const words = [
  ...[
    'device',
    '.',
    'attributes',
    '[',
    ']',
    '"a"',
    "'",
    '"',
    '(',
    ')',
    '&&',
    '||',
    '!',
    '==',
    '<=',
    'in',
    '1',
    '1u',
  ],
  ...[
    '0x',
    '.5',
    '?',
    ':',
    ',',
    '{',
    '}',
    '-',
    'quantity',
    'true',
    'null',
    ' ',
    '\n',
    '//',
    '\\',
    'b"',
    'r"',
    '"""',
    '=',
    '&',
  ],
];

describe('any text', () => {
  it('of the subset means what JavaScript would make of it', () => {
    fc.assert(
      fc.property(meantExpressions.whole, ({ text, value }) => {
        const selector = parseCel(text);
        if (value === undefined) expect(() => matches(selector, DEVICE)).toThrow(EvaluationError);
        else expect(matches(selector, DEVICE)).toBe(value);
      }),
      { numRuns: budget({ all: 10000, usual: 200 }) },
    );
  });

  it('binds by the levels of operators, from the left', () => {
    fc.assert(
      fc.property(operations.whole, (expression) => {
        expect(withoutPlaces(parseCel(textOf(expression)))).toEqual(withoutPlaces(expression));
      }),
      { numRuns: budget({ all: 10000, usual: 200 }) },
    );
    expect(withoutPlaces(parseCel('1 - 2 - 3 * 4 == 5 && !true || false'))).toEqual(
      withoutPlaces(parseCel('(((1 - 2) - (3 * 4)) == 5) && (!true) || false')),
    );
  });

  it('is an expression or a CelError', () => {
    const text = fc.oneof(
      fc.string(),
      fc.array(fc.constantFrom(...words), { maxLength: 40 }).map((all) => all.join('')),
    );
    fc.assert(
      fc.property(text, (each) => {
        let selector: Expression;
        try {
          selector = parseCel(each);
        } catch (error) {
          expect(error).toBeInstanceOf(CelError);
          expect((error as CelError).at).toBeLessThanOrEqual(each.length);
          return;
        }
        if (beyondSubset(selector) !== undefined) return;
        try {
          expect(matches(selector, DEVICE)).toBeTypeOf('boolean');
        } catch (error) {
          expect(error).toBeInstanceOf(EvaluationError);
        }
      }),
      { numRuns: budget({ all: 25000, usual: 500 }) },
    );
  });
});
