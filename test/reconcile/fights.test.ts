// needs: machine
// Fights: repairs, how often they happen, and when they are forgotten.
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Fights } from '../../lib/reconcile/fights.js';

const NOTHING: ReadonlySet<string> = new Set();
const LONG_MS = 10 * 60_000;

afterEach(() => void vi.useRealTimers());

/** Meets something different in this many rounds, each followed by one in which it is right. */
const alternate = (fights: Fights, rounds: number) =>
  Array.from({ length: rounds }, () => {
    const answer = fights.meet('x');
    fights.settle(new Set(['x']));
    fights.settle(NOTHING);
    return answer;
  });

describe('a setting that another program changes', () => {
  it('is repaired twice, and lost the third time', () => {
    const fights = new Fights();
    expect([fights.meet('x'), fights.isContested('x')]).toEqual(['repair', false]);
    expect([fights.meet('x'), fights.isContested('x')]).toEqual(['repair', false]);
    expect([fights.meet('x'), fights.isContested('x')]).toEqual(['lost', true]);
    expect([fights.contested, fights.isContested('y')]).toEqual([1, false]);
  });

  it('is lost too if it was right for a round in between', () => {
    expect(alternate(new Fights(), 3)).toEqual(['repair', 'repair', 'lost']);
  });

  it('counts from the beginning after it was right for some rounds and a minute', () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const fights = new Fights();
    fights.meet('x');
    fights.meet('x');
    vi.advanceTimersByTime(LONG_MS);
    for (let i = 0; i < 3; i++) fights.settle(NOTHING);
    expect(fights.meet('x')).toBe('repair');
  });

  it.each([
    ['for many rounds within a moment', 0, 50],
    ['for long, but in a single round', LONG_MS, 1],
  ])('does not if it was right %s', (_, waitMs, rounds) => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const fights = new Fights();
    fights.meet('x');
    fights.meet('x');
    vi.advanceTimersByTime(waitMs);
    for (let i = 0; i < rounds; i++) fights.settle(NOTHING);
    expect(fights.meet('x')).toBe('lost');
  });

  it('must have been right for these rounds without a break', () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const fights = new Fights();
    fights.meet('x');
    vi.advanceTimersByTime(LONG_MS);
    fights.settle(NOTHING);
    fights.settle(NOTHING);
    fights.meet('x');
    vi.advanceTimersByTime(LONG_MS);
    fights.settle(NOTHING);
    expect(fights.meet('x')).toBe('lost');
  });

  it('is given up on until it is right, and is repaired again after that', () => {
    const fights = new Fights();
    for (let i = 0; i < 3; i++) fights.meet('x');
    fights.settle(new Set(['x']));
    expect(fights.contested).toBe(1);
    fights.settle(NOTHING);
    expect([fights.contested, fights.meet('x')]).toEqual([0, 'repair']);
  });
});
