// needs: machine
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { GrowthWaits } from '../../lib/changes/growth-waits.js';
import { type ElasticPod, elasticPods } from '../../lib/decision/changes/elastic-grants.js';
import { hostOf } from '../support/moves.mjs';
import { simulate } from '../support/simulated.js';

const REFUSAL_MS = 60_000;
const SLOW_GRANT_MS = 5_000;

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'], now: 0 }));
afterEach(() => void vi.useRealTimers());

const pass = (ms: number) => vi.advanceTimersByTime(ms);

async function grant(): Promise<ElasticPod> {
  const manager = await simulate('core:8 pu:1');
  await manager.acquire({ cpu: { min: 1, max: 4 } });
  return elasticPods(hostOf(manager).ledger.read()!.assignments)[0]!;
}

describe('a grant that was asked in vain', () => {
  it('has another round where its pause ends in the middle of one', async () => {
    const [waits, pod] = [new GrowthWaits(), await grant()];
    const end = performance.now() + REFUSAL_MS;
    waits.addRefusals([pod.uid]);
    pass(REFUSAL_MS - 1);
    waits.beginRound();
    expect(waits.mayAsk(pod)).toBe(false);
    pass(2);
    expect(waits.endRound()).toBe(end);
  });
});

describe('a grant that free CPUs are left to', () => {
  it('has another round where the time for it ends in the middle of one', async () => {
    const [waits, pod] = [new GrowthWaits(), await grant()];
    const end = performance.now() + SLOW_GRANT_MS;
    waits.beginRound();
    expect(waits.isAwaited(pod)).toBe(true);
    waits.endRound();
    pass(SLOW_GRANT_MS - 1);
    waits.beginRound();
    expect(waits.isAwaited(pod)).toBe(true);
    pass(2);
    expect(waits.endRound()).toBe(end);
  });
});

describe('the end of a round', () => {
  it('answers the first of all pauses that end', async () => {
    const [waits, pod] = [new GrowthWaits(), await grant()];
    const now = performance.now();
    waits.addRefusals(['another']);
    waits.beginRound();
    waits.isAwaited(pod);
    expect(waits.endRound()).toBe(now + SLOW_GRANT_MS);
  });
});
