// needs: nothing
// The owner files that a commit writes, and their content.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { PodAssignment } from '../../lib/account/pod-assignment.js';
import { podListChanges } from '../../lib/account/pod-list-changes.js';
import type { NativeFolder } from '../../lib/base/native-files.js';
import { DEFAULT_SETTINGS } from '../../lib/decision/machine-settings.js';
import { CpuSet } from '../../lib/index.js';
import { decodeOwnerFile } from '../../lib/state/format/owner-file.js';
import { OwnerFiles } from '../../lib/state/owners/owner-files.js';
import { quiet } from '../support/quiet.js';
import { podOf } from '../support/quiet-world.js';

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
  const files = new OwnerFiles(undefined as never);
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

describe('the file of an owner that is no process', () => {
  const UUID = '0f9b8a7c-1d2e-4f3a-8b4c-5d6e7f8a9b0c';
  const header = { bootId: 'boot', generation: 1, settings: DEFAULT_SETTINGS };
  const [one, two] = ['1', '2'].map((uid) => {
    const pod = podOf(uid, UUID, CpuSet.of(Number(uid)), quiet('0').request);
    return { ...pod, owner: { ...pod.owner, kind: 'persistent' as const, pid: null, command: null } };
  }) as [PodAssignment, PodAssignment];

  /** What is done to the file: the grants that it says, or its end. */
  function done(act: (files: OwnerFiles) => void): string[] {
    const steps: string[] = [];
    const folder = {
      replace: (uuid: string, text: string) => {
        expect(uuid).toBe(UUID);
        steps.push(`says ${decodeOwnerFile(Buffer.from(text)).pods.map(({ uid }) => uid)}`);
      },
      remove: () => void steps.push('removed'),
    } as unknown as NativeFolder;
    act(new OwnerFiles(folder));
    return steps;
  }

  const settled = (before: Pods, after: Pods, isCommitted: boolean) =>
    done((files) => files.settle([{ uuid: UUID, before, after }], header, isCommitted));
  const claimed = (before: Pods, after: Pods) =>
    done((files) => files.claim([{ uuid: UUID, before, after }], header));

  it('claims the old and the new grants before a commit', () => {
    expect(claimed([one], [two])).toEqual(['says 1,2']);
    expect(claimed([one], [])).toEqual([]);
  });

  it('says what is on record after a commit', () => {
    expect(settled([one, two], [one], true)).toEqual(['says 1']);
    expect(settled([one], [], true)).toEqual(['removed']);
    // The claim said so.
    expect(settled([], [one], true)).toEqual([]);
    expect(settled([one], [one, two], true)).toEqual([]);
  });

  it('says what was on record after a commit that failed', () => {
    expect(settled([one], [one, two], false)).toEqual(['says 1']);
    expect(settled([], [one], false)).toEqual(['removed']);
  });
});
