// needs: agents
// How long elastic grants leave others alone, and leave CPUs to others.
import { describe, expect, it, onTestFinished } from 'vitest';
import { runningCpus } from '../../lib/account/pod-holdings.js';
import { livingState } from '../../lib/admission/on-record.js';
import { RefusingGrants, SlowGrants } from '../../lib/changes/growth-waits.js';
import { resizeInput } from '../../lib/changes/shrink-grants.js';
import { elasticPods } from '../../lib/decision/changes/elastic-grants.js';
import { growthOf } from '../../lib/decision/changes/growth.js';
import { discover } from '../../lib/entries/topology.js';
import { openManager } from '../../lib/index.js';
import { hostOf } from '../support/moves.mjs';
import { makeStateDir } from '../support/state-dir.js';

const MINUTE = 60_000;

describe('a refusal', () => {
  it('holds for a minute', () => {
    const refusals = new RefusingGrants();
    refusals.add(['a'], 0);
    expect([refusals.has('a', MINUTE - 1), refusals.has('a', MINUTE), refusals.has('b', 0)]).toEqual([
      true,
      false,
      false,
    ]);
  });

  it('begins again with each', () => {
    const refusals = new RefusingGrants();
    refusals.add(['a', 'b'], 0);
    refusals.add(['a'], 1000);
    expect(refusals.has('a', MINUTE)).toBe(true);
    expect([refusals.next(0), refusals.next(MINUTE), refusals.next(MINUTE + 1000)]).toEqual([
      MINUTE,
      MINUTE + 1000,
      undefined,
    ]);
  });
});

describe('a grant that does not take its share', () => {
  async function pods() {
    const topology = await discover({ synthetic: 'core:8 pu:1' });
    const manager = await openManager({ topology, stateDir: makeStateDir() });
    onTestFinished(() => manager.close());
    await manager.acquire({ cpu: { min: 2, max: 4 } });
    const [before] = elasticPods(livingState(hostOf(manager)));
    const other = await manager.acquire({ cpu: 5 });
    const [after] = elasticPods(livingState(hostOf(manager)));
    await other.release();
    return { before: before!, after: after! };
  }

  it('is awaited for 5 s', async () => {
    const [{ before }, slowGrants] = [await pods(), new SlowGrants()];
    expect(slowGrants.isAwaited(before, 0)).toBe(true);
    expect(slowGrants.next(0)).toBe(5000);
    expect(slowGrants.isAwaited(before, 4999)).toBe(true);
    expect(slowGrants.next(4999)).toBe(5000);
    expect(slowGrants.isAwaited(before, 5000)).toBe(false);
    expect(slowGrants.next(5000)).toBe(undefined);
    expect(slowGrants.isAwaited(before, 9000)).toBe(false);
  });

  it('is awaited again once it has another size', async () => {
    const [{ before, after }, slowGrants] = [await pods(), new SlowGrants()];
    slowGrants.isAwaited(before, 0);
    slowGrants.next(0);
    expect(slowGrants.isAwaited(after, 5000)).toBe(true);
    expect(slowGrants.next(5000)).toBe(10_000);
  });

  it('is awaited again once there was nothing for it to take', async () => {
    const [{ before }, slowGrants] = [await pods(), new SlowGrants()];
    slowGrants.isAwaited(before, 0);
    slowGrants.next(0);
    slowGrants.next(1000);
    expect(slowGrants.isAwaited(before, 5000)).toBe(true);
  });

  it('is not awaited if its policy refuses that size', async () => {
    const topology = await discover({ synthetic: 'package:2 [numa] core:4 pu:1' });
    const manager = await openManager({ topology, stateDir: makeStateDir() });
    onTestFinished(() => manager.close());
    const aligned = { policy: 'single-numa-node' } as const;
    const number = await manager.acquire({ cpu: 2, ...aligned });
    await manager.acquire({ cpu: { min: 2, max: 8 }, weight: 1000, ...aligned });
    const { uid } = await manager.acquire({ cpu: { min: 1, max: 8 } });
    await number.release();
    const host = hostOf(manager);
    const state = livingState(host);
    const pod = elasticPods(state).find((each) => each.uid === uid)!;
    expect(runningCpus(growthOf(resizeInput(host, state), pod)!).size).toBe(3);
  });
});
