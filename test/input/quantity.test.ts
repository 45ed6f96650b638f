// needs: nothing
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NumalignError } from '../../lib/base/errors.js';
import { milliValue, parseQuantity, wholeValue } from '../../lib/input/values/quantity.js';
import { thrownBy } from '../support/error-of.js';

const GREATEST = (2n ** 63n - 1n) * 10n ** 9n;
const parse = (value: unknown) => parseQuantity(value, 'cpu');

describe('Kubernetes quantities', () => {
  it('are read exactly, whatever way the same amount is written', () => {
    const ways: Record<string, unknown[]> = {
      '0': ['0', 0, -0, '-0', '+0.000', '0Ei', '0e-99', '.0'],
      '500000000': ['500m', '0.5', '.5', 0.5, '+500m', '500000u', '500000000n', '5e-1', '00.50'],
      '2000000000': ['2', 2, '2.', '2000m', '2e0', '2E0', '0.002k', '20e-1'],
      '1536000000000': ['1.5Ki', '1536', 1536, '1.536k', '1536e0'],
      '1000000000000': ['1k', '1e3', '1E3', '1e+3', '1e03', 1000],
      '-1500000000': ['-1.5', -1.5, '-1500m', '-15e-1'],
    };
    for (const [nanos, texts] of Object.entries(ways)) {
      for (const text of texts) expect(parse(text), String(text)).toBe(BigInt(nanos));
    }
  });

  it('printed as nano-units are the same amount again', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -GREATEST, max: GREATEST }), (nanos) => {
        expect(parse(`${nanos}n`)).toBe(nanos);
        const [sign, magnitude] = nanos < 0n ? ['-', -nanos] : ['', nanos];
        const fraction = String(magnitude % 10n ** 9n).padStart(9, '0');
        expect(parse(`${sign}${magnitude / 10n ** 9n}.${fraction}`)).toBe(nanos);
      }),
    );
  });

  it('mean by a suffix what they mean written out', () => {
    const decimal = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E'].map(
      (suffix, i) => [suffix, 3 * i - 9] as const,
    );
    const binary = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'].map(
      (suffix, i) => [suffix, 1024n ** BigInt(i)] as const,
    );
    const sevenOrLess = fc.integer({ min: -7, max: 7 });
    fc.assert(
      fc.property(fc.constantFrom(...decimal), fc.constantFrom(...binary), sevenOrLess, (tens, twos, n) => {
        expect(parse(`${n}${tens[0]}`)).toBe(parse(`${n}e${tens[1]}`));
        expect(parse(`${n}${twos[0]}`)).toBe(parse(`${BigInt(n) * twos[1]}`));
      }),
    );
  });

  it('mean as numbers what they mean as texts', () => {
    fc.assert(
      fc.property(fc.maxSafeInteger(), fc.double({ min: -1e6, max: 1e6, noNaN: true }), (whole, n) => {
        expect(parse(whole)).toBe(BigInt(whole) * 10n ** 9n);
        fc.pre(n === 0 || Math.abs(n) > 1e-90);
        expect(Math.abs(Number(parse(n)) - n * 1e9)).toBeLessThanOrEqual(1);
        expect(parse(n)).toBe(parse(String(n)));
      }),
    );
  });

  it('are rounded up if they are finer than the unit', () => {
    for (const text of ['0.1n', '1e-99', '0.0000000001', '.0000000000000000000000001Ki'])
      expect(parse(text)).toBe(1n);
    expect(parse('-0.1n')).toBe(-1n);
    expect([milliValue(parse('100u')), milliValue(parse('1.0001')), milliValue(parse('250m'))]).toEqual([
      1, 1001, 250,
    ]);
    expect([wholeValue(parse('1m')), wholeValue(parse('1.5Ki')), wholeValue(parse('-1.5'))]).toEqual([
      1, 1536, -2,
    ]);
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 60n }), (nanos) => {
        const [milli, whole] = [BigInt(milliValue(nanos)), BigInt(wholeValue(nanos))];
        expect(milli * 10n ** 6n - nanos).toBeGreaterThanOrEqual(0n);
        expect(milli * 10n ** 6n - nanos).toBeLessThan(10n ** 6n);
        expect(whole).toBe((milli + 999n) / 1000n);
      }),
    );
  });

  it('are refused when malformed, and the error names the field and the value', () => {
    const texts = [
      '',
      ' ',
      ' 1',
      '1 ',
      '1\n',
      '1.1.1',
      '1..',
      '.',
      '+',
      '-.',
      '+-1',
      '1i',
      '1ki',
      '1K',
      '1mi',
      '1mm',
    ];
    const exponents = [
      '1e',
      '1e+',
      '1e1.5',
      '1Kie3',
      '1e3k',
      '0x10',
      '1_000',
      '1,5',
      '٣',
      'NaN',
      'Infinity',
      'e3',
      'Gi',
    ];
    const others = [
      Number.NaN,
      Number.POSITIVE_INFINITY,
      2 ** 53,
      undefined,
      null,
      true,
      1n,
      [],
      ['1'],
      { cpu: 1 },
    ];
    for (const value of [...texts, ...exponents, ...others]) {
      const error = thrownBy(() => parseQuantity(value, 'limits.cpu'));
      expect(error?.code, String(value)).toBe('ERR_INVALID_QUANTITY');
      expect(error?.details).toMatchObject({ field: 'limits.cpu', value, valid: expect.any(String) });
      expect(error?.message).toMatch(/^limits\.cpu must be a quantity/);
    }
  });

  it('are refused at once when they would be costly to compute or too large', () => {
    const texts = [
      '1e999999999',
      '1e-999999999',
      '1e100',
      `1${'0'.repeat(10_000_000)}`,
      `0.${'3'.repeat(10_000_000)}`,
    ];
    for (const text of [...texts, '1e99', '8Ei', String(2n ** 63n), '-9223372036854775808']) {
      const error = thrownBy(() => parse(text));
      expect(error?.code, text.slice(0, 30)).toBe('ERR_INVALID_QUANTITY');
      expect(error?.message.length).toBeLessThan(300);
    }
    expect(parse(String(2n ** 63n - 1n))).toBe(GREATEST);
  });

  it('are refused if they do not fit a number exactly', () => {
    expect(wholeValue(parse('9007199254740991'))).toBe(2 ** 53 - 1);
    expect(milliValue(parse('9007199254740.991'))).toBe(2 ** 53 - 1);
    expect(thrownBy(() => wholeValue(parse('9007199254740992'), 'memory'))?.message).toMatch(
      /^memory must be at most/,
    );
    expect(thrownBy(() => milliValue(parse('9007199254740.992')))?.code).toBe('ERR_INVALID_QUANTITY');
  });

  it('are either read or refused, whatever the text', () => {
    const text = fc.oneof(fc.string(), fc.stringMatching(/^[-+0-9.eEinumkKMGTP]*$/));
    fc.assert(
      fc.property(text, (value) => {
        const error = thrownBy(() => parse(value));
        if (error === undefined) expect(value).toMatch(/^[+-]?[0-9.]+[eEinumkKMGTP]*[-+]?[0-9]*$/);
        else expect(error).toBeInstanceOf(NumalignError);
      }),
      { numRuns: 2000 },
    );
  });
});
