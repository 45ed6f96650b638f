// needs: machine
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type ElasticPod, elasticPods } from '../../lib/decision/elastic-grants/elastic-view.js';
import { Patience } from '../../lib/elastic/patience.js';
import { siteOf } from '../support/moves.mjs';
import { simulate } from '../support/simulated.js';

const REFUSAL_MS = 60_000;
const LAGGARD_MS = 5_000;

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'], now: 0 }));
afterEach(() => void vi.useRealTimers());

const pass = (ms: number) => vi.advanceTimersByTime(ms);

async function grant(): Promise<ElasticPod> {
  const manager = await simulate('core:8 pu:1');
  await manager.acquire({ cpu: { min: 1, max: 4 } });
  return elasticPods(siteOf(manager).ledger.read()!.assignments)[0]!;
}

describe('a grant that was asked in vain', () => {
  it('has another round where its pause ends in the middle of one', async () => {
    const [patience, pod] = [new Patience(), await grant()];
    const end = performance.now() + REFUSAL_MS;
    patience.addRefusals([pod.uid]);
    pass(REFUSAL_MS - 1);
    patience.beginRound();
    expect(patience.isOpen(pod)).toBe(false);
    pass(2);
    expect(patience.endRound()).toBe(end);
  });
});

describe('a grant that free CPUs are left to', () => {
  it('has another round where the time for it ends in the middle of one', async () => {
    const [patience, pod] = [new Patience(), await grant()];
    const end = performance.now() + LAGGARD_MS;
    patience.beginRound();
    expect(patience.isAwaited(pod)).toBe(true);
    patience.endRound();
    pass(LAGGARD_MS - 1);
    patience.beginRound();
    expect(patience.isAwaited(pod)).toBe(true);
    pass(2);
    expect(patience.endRound()).toBe(end);
  });
});

describe('the end of a round', () => {
  it('answers the first of all pauses that end', async () => {
    const [patience, pod] = [new Patience(), await grant()];
    const now = performance.now();
    patience.addRefusals(['another']);
    patience.beginRound();
    patience.isAwaited(pod);
    expect(patience.endRound()).toBe(now + LAGGARD_MS);
  });
});
