import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { PodAssignment } from '../../lib/account/pod-assignment.js';
import { podDifference } from '../../lib/account/pod-difference.js';

const pods = Array.from({ length: 6 }, (_, i) => ({ uid: `${i}` }) as PodAssignment);

describe('the difference between two lists of pods', () => {
  it('is what one has and the other has not, wherever it stands', () => {
    // Some are gone, some are other objects under their uids, some have come.
    const lists = fc.tuple(fc.subarray(pods), fc.subarray(pods), fc.subarray(pods));
    fc.assert(
      fc.property(lists, ([before, kept, changed]) => {
        const after = kept.map((pod) => (changed.includes(pod) ? { ...pod, name: 'changed' } : pod));
        const { gone, come } = podDifference(before, after);
        expect(gone).toEqual(before.filter((pod) => !after.includes(pod)));
        expect(come).toEqual(after.filter((pod) => !before.includes(pod)));
      }),
    );
  });

  it('is none between a list and itself', () => {
    expect(podDifference(pods, pods)).toEqual({ gone: [], come: [] });
  });
});
