// needs: agents
import { beforeEach, describe, expect, it } from 'vitest';
import type { PodAssignment } from '../../lib/account/pod-assignment.js';
import type { Host } from '../../lib/admission/host.js';
import { AskedGrants } from '../../lib/changes/asked-grants.js';
import type { Grant, Manager } from '../../lib/index.js';
import { fragment, openTwoNodes } from '../support/fragmented.js';
import { hostOf, placeAt, podOf } from '../support/moves.mjs';

const MOST_PASSING = 3;

let [manager, host, mover, pod] = [] as unknown as [Manager, Host, Grant, PodAssignment];

beforeEach(async () => {
  manager = await openTwoNodes({});
  ({ mover } = await fragment(manager));
  host = hostOf(manager);
  pod = podOf(host, mover.uid);
});

const ask = (asked: AskedGrants) =>
  asked.ask(host, { uid: pod.uid, before: pod, after: placeAt(pod, '6-7', 1) }, { for: 'asker' });

describe('a grant that one request has asked to move', () => {
  it('is not asked once more after it has moved', async () => {
    const asked = new AskedGrants();
    expect([asked.mayAsk(pod), await ask(asked), asked.mayAsk(pod)]).toEqual([true, true, false]);
  });

  it('is not asked once more where it refuses', async () => {
    mover.on('move', () => {
      throw new Error('never');
    });
    const asked = new AskedGrants();
    expect([await ask(asked), asked.mayAsk(pod)]).toEqual([false, false]);
    expect(asked.unmoved).toMatchObject([{ uid: pod.uid, name: 'mover', reason: 'refused' }]);
  });

  describe.each<[why: string, act: () => Promise<unknown>]>([
    ['has ended', () => mover.release()],
    // One of the CPUs that it is to have.
    ['lacks room', () => manager.acquire({ cpu: 3 })],
  ])('and that %s', (_, act) => {
    it('may be asked again, but not for ever', async () => {
      await act();
      const asked = new AskedGrants();
      for (let times = 1; times < MOST_PASSING; times++)
        expect([await ask(asked), asked.mayAsk(pod)]).toEqual([false, true]);
      expect([await ask(asked), asked.mayAsk(pod)]).toEqual([false, false]);
    });

    it('does not count as one that stays', async () => {
      await act();
      const asked = new AskedGrants();
      await ask(asked);
      expect(asked.unmoved).toEqual([]);
    });
  });
});
