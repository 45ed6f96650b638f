// needs: nothing
// The owner files that a commit writes, and their content.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { PodAssignment } from '../../lib/account/pod-assignment.js';
import { podListChanges } from '../../lib/account/pod-list-changes.js';
import { OwnerFiles } from '../../lib/state/owners/owner-files.js';

type Pods = readonly PodAssignment[];

const owner = fc.constantFrom(
  ...[...'abcdefgh'].map((uuid, i) => ({ uuid, kind: ['persistent', 'cgroup', 'process'][i % 3] })),
);
const uid = fc.integer({ min: 0, max: 20 }).map(String);
const pod = fc.record({ uid, owner }) as fc.Arbitrary<unknown> as fc.Arbitrary<PodAssignment>;
const pods: fc.Arbitrary<Pods> = fc.uniqueArray(pod, { selector: ({ uid }) => uid });

const uuidOf = ({ owner }: PodAssignment) => owner.uuid;
const isOfFile = ({ owner }: PodAssignment) => owner.kind !== 'process';

it('has all pods, from before and after, of each owner with a changed pod', () => {
  const files = new OwnerFiles(undefined as never, '');
  fc.assert(
    fc.property(
      pods,
      pods,
      fc.array(fc.boolean(), { minLength: 21, maxLength: 21 }),
      (before, more, stays) => {
        const kept = before.filter((_, i) => stays[i]);
        const after = [...kept, ...more.filter(({ uid }) => kept.every((pod) => pod.uid !== uid))];
        const different = [...before, ...after].filter((pod) => before.includes(pod) !== after.includes(pod));
        const uuids = [...new Set(different.filter(isOfFile).map(uuidOf))];
        const changed = files.changed(before, after, podListChanges(before, after));
        const byUuid = new Map(changed.map((owner) => [owner.uuid, owner]));
        expect([...byUuid.keys()].sort()).toEqual(uuids.sort());
        for (const uuid of uuids) {
          const its = (list: Pods) => list.filter((pod) => uuidOf(pod) === uuid);
          expect(byUuid.get(uuid)).toEqual({ uuid, before: its(before), after: its(after) });
        }
      },
    ),
  );
});
