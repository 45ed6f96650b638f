// needs: nothing
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isoTime } from '../../lib/base/text/iso-time.js';

describe('isoTime', () => {
  it('writes any time of four-digit years as toISOString() does', () => {
    const min = new Date('0000-01-01T00:00:00.000Z');
    const max = new Date('9999-12-31T23:59:59.999Z');
    fc.assert(
      fc.property(fc.date({ min, max, noInvalidDate: true }), (date) => isoTime(date) === date.toISOString()),
    );
  });

  it('says the present time by itself', () => {
    const before = new Date();
    const now = isoTime();
    expect(now >= before.toISOString() && now <= new Date().toISOString()).toBe(true);
  });
});
