// needs: nothing
import { describe, expect, it } from 'vitest';
import { parseQuiet, parseRequiredQuiet, WHOLE_QUIET } from '../../lib/input/requests/quiet.js';
import { thrownBy } from '../support/error-of.js';

const NOTHING = {
  interrupts: false,
  workqueues: false,
  packets: false,
  idle: null,
  frequency: false,
  cache: null,
};

describe('quiet', () => {
  it('that is omitted, false, or without parts requests nothing', () => {
    const nothing = [undefined, false, {}, { interrupts: false, idle: false }];
    expect(nothing.map(parseQuiet)).toEqual([undefined, undefined, undefined, undefined]);
  });

  it('that is true requests all parts except the cache, with idle states of 10 µs', () => {
    expect(parseQuiet(true)).toEqual({
      ...{ interrupts: true, workqueues: true, packets: true, frequency: true },
      ...{ idle: { maxLatency: 10 }, cache: null },
    });
  });

  it.each([
    [{ interrupts: true }, { interrupts: true }],
    [
      { workqueues: true, packets: true, frequency: true },
      { workqueues: true, packets: true, frequency: true },
    ],
    [{ idle: true }, { idle: { maxLatency: 10 } }],
    [{ idle: { maxLatency: 0 } }, { idle: { maxLatency: 0 } }],
    [{ idle: { maxLatency: 1_000_000 } }, { idle: { maxLatency: 1_000_000 } }],
    [{ cache: { ways: 32 } }, { cache: { ways: 32 } }],
    [{ cache: { percent: 99 } }, { cache: { percent: 99 } }],
    [
      { interrupts: true, housekeeping: 2 },
      { interrupts: true, housekeeping: 2 },
    ],
  ])('%j requests only these parts', (given, parts) => {
    expect(parseQuiet(given)).toEqual({ ...NOTHING, ...parts });
  });

  it('is deeply frozen', () => {
    const request = parseQuiet({ idle: { maxLatency: 5 }, cache: { ways: 1 } })!;
    expect(
      [request, request.idle, request.cache, WHOLE_QUIET, WHOLE_QUIET.idle].map(Object.isFrozen),
    ).toEqual(Array(5).fill(true));
  });

  const idleValid = 'true, false or { maxLatency: 10 }, in microseconds';
  const cacheValid = '{ ways: 4 } or { percent: 25 }';
  it.each([
    [
      'all',
      'quiet',
      'all',
      'true, false or an object of interrupts, workqueues, packets, idle, frequency, cache',
    ],
    [null, 'quiet', null, expect.stringContaining('an object of interrupts')],
    [{ interrupts: 1 }, 'quiet.interrupts', 1, expect.stringMatching(/true or false/)],
    [{ packets: 'yes' }, 'quiet.packets', 'yes', expect.stringMatching(/true or false/)],
    [{ idle: 20 }, 'quiet.idle', 20, idleValid],
    [{ idle: null }, 'quiet.idle', null, idleValid],
    [{ idle: { maxLatency: -1 } }, 'quiet.idle.maxLatency', -1, expect.stringContaining('0 to 1000000')],
    [{ idle: { maxLatency: 1.5 } }, 'quiet.idle.maxLatency', 1.5, expect.stringContaining('whole')],
    [{ idle: {} }, 'quiet.idle.maxLatency', undefined, expect.stringContaining('whole')],
    [{ idle: { maxLatency: 1_000_001 } }, 'quiet.idle.maxLatency', 1_000_001, expect.anything()],
    [{ cache: true }, 'quiet.cache', true, cacheValid],
    [{ cache: {} }, 'quiet.cache', {}, cacheValid],
    [{ cache: { ways: 1, percent: 1 } }, 'quiet.cache', { ways: 1, percent: 1 }, cacheValid],
    [{ cache: { ways: 0 } }, 'quiet.cache.ways', 0, 'a whole number from 1 to 32'],
    [{ cache: { ways: 33 } }, 'quiet.cache.ways', 33, 'a whole number from 1 to 32'],
    [{ cache: { ways: '4' } }, 'quiet.cache.ways', '4', 'a whole number from 1 to 32'],
    [{ cache: { percent: 100 } }, 'quiet.cache.percent', 100, expect.stringContaining('1 to 99')],
    [{ cache: { percent: 2.5 } }, 'quiet.cache.percent', 2.5, expect.stringContaining('1 to 99')],
    [{ housekeeping: 0 }, 'quiet.housekeeping', 0, 'a whole number from 1 to 1024'],
  ])('%j is refused with its value and what is valid', (given, option, value, valid) => {
    const { code, details } = thrownBy(() => parseQuiet(given))!;
    expect([code, details]).toEqual(['ERR_INVALID_OPTION', { option, value, valid }]);
  });

  it.each([
    [{ interupts: true }, 'interupts', 'interrupts'],
    [{ idle: { latency: 10 } }, 'latency', 'maxLatency'],
    [{ cache: { way: 4 } }, 'way', 'ways'],
  ])('%j names no part, and the error lists the parts', (given, value, name) => {
    const { code, details } = thrownBy(() => parseQuiet(given))!;
    expect([code, details.value]).toEqual(['ERR_INVALID_OPTION', value]);
    expect(details.valid).toContain(name);
  });
});

describe('quiet that is required', () => {
  it('is a list of requested parts', () => {
    expect(parseRequiredQuiet(['interrupts', 'idle'], WHOLE_QUIET)).toEqual(['interrupts', 'idle']);
    expect(parseRequiredQuiet(undefined, undefined)).toEqual([]);
  });

  it.each([
    ['a part that is not asked for', ['interrupts', 'cache'], 'require.quiet[1]', 'cache'],
    ['no part', ['noise'], 'require.quiet[0]', 'noise'],
    ['no list', 'interrupts', 'require.quiet', 'interrupts'],
  ])('is refused as %s', (_, given, option, value) => {
    const { code, details } = thrownBy(() => parseRequiredQuiet(given, WHOLE_QUIET))!;
    expect([code, details.option, details.value]).toEqual(['ERR_INVALID_OPTION', option, value]);
    expect(String(details.valid)).not.toBe('');
  });

  it('is refused without quiet', () => {
    expect(thrownBy(() => parseRequiredQuiet(['idle'], undefined))).toMatchObject({
      code: 'ERR_INVALID_OPTION',
      details: { option: 'require.quiet[0]', value: 'idle', valid: 'a part that `quiet` asks for' },
    });
  });
});
