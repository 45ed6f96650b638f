// needs: machine
// A shared member is never on CPUs of another owner.
import { describe, expect, it } from 'vitest';
import { isUsable } from '../cgroups/own-root.js';
import { budget } from '../support/budget.mjs';
import { makeStateDir } from '../support/state-dir.js';
import {
  cgroupOf,
  choose,
  cpus,
  cycles,
  hasRun,
  maskOf,
  opened,
  overlaps,
  ownCgroups,
  type Stay,
  sampler,
  threadsOf,
  turnsOf,
} from './members.js';

const TIMES = budget({ all: 1000, usual: 100 });
const LONG = { timeout: 600_000 };

describe.skipIf(!isUsable)(
  'a process that samples its CPU as fast as it can, while another acquires and releases all the time',
  () => {
    it('is never seen on an exclusive CPU as a member that is moved by its masks', LONG, async () => {
      const manager = await opened({ stateDir: makeStateDir(), sharedMember: false });
      const all = [...cpus(maskOf(process.pid))];
      const member = await sampler(1 + all.length);
      // The first sampling thread may run anywhere, each of the others on one CPU: they always come
      // back to it while it is free.
      const own = threadsOf(member.pid).slice(2);
      for (const [i, tid] of own.entries()) choose(tid, String(all[i]));
      const before = threadsOf(member.pid).map(maskOf);
      await manager.addSharedMember({ pid: member.pid });
      const held: Stay[] = [];
      // It runs rarely beside others.
      let rounds = 0;
      for (; rounds === 0 || turnsOf(member.pid) <= 2 * TIMES; rounds++)
        held.push(...(await cycles(manager, TIMES)));
      const after = threadsOf(member.pid).map(maskOf);
      for (const tid of own) await hasRun(tid);
      const seen = await member.end();
      expect(overlaps(seen, held)).toEqual([]);
      expect(held).toHaveLength(rounds * TIMES);
      expect(seen.length).toBeGreaterThan(TIMES);
      // It was on those CPUs while they were free, and has all of them back.
      expect(seen.some(({ cpu }) => cpu === held[0]!.cpu)).toBe(true);
      expect(after).toEqual(before);
      expect(new Set(after).size).toBe(1 + all.length);
    });

    it(
      'is never seen there as a member in a cpuset, though its threads ask for each CPU and for all, all the time',
      LONG,
      async () => {
        const manager = await opened({ stateDir: makeStateDir(), ...ownCgroups(), sharedMember: false });
        const member = await sampler(1, 2);
        await manager.addSharedMember({ pid: member.pid });
        expect(cgroupOf(member.pid)).toMatch(/^\/numalign-test-\d+\/shared$/);
        const held = await cycles(manager, TIMES);
        for (const tid of threadsOf(member.pid).slice(1)) await hasRun(tid);
        const seen = await member.end();
        expect(overlaps(seen, held)).toEqual([]);
        expect(seen.some(({ cpu }) => cpu === held[0]!.cpu)).toBe(true);
      },
    );

    it('is seen there if it is no member', LONG, async () => {
      const manager = await opened({ stateDir: makeStateDir(), sharedMember: false });
      const stranger = await sampler(2, 0, 0);
      const { cpus: granted } = await manager.acquire({ cpu: 1 });
      // The kernel may put it there, and does sooner or later.
      for (const tid of threadsOf(stranger.pid)) choose(tid, String(granted));
      const from = process.hrtime.bigint();
      for (const tid of threadsOf(stranger.pid).slice(1)) await hasRun(tid);
      const to = process.hrtime.bigint();
      const held = [...granted].map((cpu) => ({ cpu, from, to }));
      expect(overlaps(await stranger.end(), held)).not.toEqual([]);
    });
  },
);
