// needs: process
// The delay before the next fork of a worker that dies again and again.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Backoff, STEADY_MS } from '../../lib/cluster/backoff.js';

const after = (lives: readonly number[]) => {
  const backoff = new Backoff();
  return lives.map((life) => backoff.after(life));
};

it('has the first short life followed at once, then after 100 ms and twice as long each time, up to 30 s', () => {
  expect(after(Array(12).fill(0))).toEqual([
    ...[0, 100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000],
  ]);
});

it('depends only on the short lives since the last long one', () => {
  const short = fc.double({ min: 0, max: STEADY_MS, maxExcluded: true, noNaN: true });
  const long = fc.double({ min: STEADY_MS, max: 1e9, noNaN: true });
  const before = fc.array(fc.oneof(short, long));
  fc.assert(
    fc.property(before, long, fc.array(short, { minLength: 1 }), (lives, steady, shortOnes) => {
      expect(after([...lives, steady, ...shortOnes]).slice(lives.length)).toEqual([0, ...after(shortOnes)]);
      const backoff = new Backoff();
      for (const life of [...lives, steady, ...shortOnes]) backoff.after(life);
      expect(backoff.shortLives).toBe(shortOnes.length);
    }),
  );
});
