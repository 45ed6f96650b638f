// A shared member is never on CPUs that are somebody else's.
import { describe, expect, it } from 'vitest';
import { isUsable } from '../cgroups/own-root.js';
import { makeStateDir } from '../support/state-dir.js';
import { cgroupOf, cycles, maskOf, opened, overlaps, ownCgroups, sampler, threadsOf } from './members.js';

const TIMES = 1000;
const LONG = { timeout: 180_000 };

describe.skipIf(!isUsable)(
  'a process that samples its CPU as fast as it can, while another acquires and releases 1,000 times',
  () => {
    it('is never seen on an exclusive CPU as a member that is moved by its masks', LONG, async () => {
      const manager = await opened({ stateDir: makeStateDir(), sharedMember: false });
      const member = await sampler(2);
      await manager.addSharedMember({ pid: member.pid });
      const held = await cycles(manager, TIMES);
      const masks = threadsOf(member.pid).map(maskOf);
      const seen = await member.end();
      expect(overlaps(seen, held)).toEqual([]);
      expect(held).toHaveLength(TIMES);
      expect(seen.length).toBeGreaterThan(TIMES);
      // It was on those CPUs when nobody held them, and has all of them back.
      expect(seen.some(({ cpu }) => cpu === held[0]!.cpu)).toBe(true);
      expect(new Set(masks)).toEqual(new Set(['0-1']));
    });

    it(
      'is never seen there as a member in a cpuset, though threads of it ask for all CPUs all the time',
      LONG,
      async () => {
        const manager = await opened({ stateDir: makeStateDir(), ...ownCgroups(), sharedMember: false });
        const member = await sampler(1, 2);
        await manager.addSharedMember({ pid: member.pid });
        expect(cgroupOf(member.pid)).toMatch(/^\/numalign-test-\d+\/shared$/);
        const held = await cycles(manager, TIMES);
        const seen = await member.end();
        expect(overlaps(seen, held)).toEqual([]);
        expect(seen.some(({ cpu }) => cpu === held[0]!.cpu)).toBe(true);
      },
    );

    it('is seen there where it is no member', LONG, async () => {
      const manager = await opened({ stateDir: makeStateDir(), sharedMember: false });
      const stranger = await sampler(2);
      const held = await cycles(manager, 50);
      expect(overlaps(await stranger.end(), held)).not.toEqual([]);
    });
  },
);
