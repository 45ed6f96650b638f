// needs: nothing
// Quiet grants come, change and end on a machine that others change too; their process ends at any
// single step; the kernel refuses; the disk is full.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Assignments } from '../../lib/account/assignments.js';
import type { QuietRequest } from '../../lib/account/pod-assignment.js';
import { addPod, removePods, replacePod } from '../../lib/account/pod-changes.js';
import { CpuSet } from '../../lib/index.js';
import { budget } from '../support/budget.mjs';
import { cpusOf, DISK_IS_FULL, podOf, QuietWorld, withCpus } from '../support/quiet-world.js';

// The others may be granted: so that masks are never empty.
const GRANTABLE = 6;
const LEAST = CpuSet.parse('6-7');

// ---- events

const quiet: fc.Arbitrary<QuietRequest> = fc.record({
  ...{ interrupts: fc.boolean(), workqueues: fc.boolean(), packets: fc.constant(false) },
  idle: fc.option(fc.record({ maxLatency: fc.integer({ min: 0, max: 100 }) })),
  ...{ frequency: fc.constant(false), cache: fc.constant(null) },
});
const process = fc.constantFrom('a', 'b');
const some = fc.nat(20);
const amount = fc.integer({ min: 1, max: 4 });
const mask = fc.subarray([0, 1, 2, 3, 4, 5]).map((cpus) => String(CpuSet.from(cpus).union(LEAST)));
const latency = fc.integer({ min: 0, max: 200 }).map(String);

const kinds = {
  acquire: fc.record({ kind: fc.constant('acquire' as const), process, amount, quiet }),
  resize: fc.record({ kind: fc.constant('resize' as const), some, amount }),
  release: fc.record({ kind: fc.constant('release' as const), some }),
  foreign: fc.record({ kind: fc.constant('foreign' as const), some, mask, latency }),
  settle: fc.record({ kind: fc.constant('settle' as const) }),
  refuse: fc.record({ kind: fc.constant('refuse' as const), some, isRefused: fc.boolean() }),
  unread: fc.record({ kind: fc.constant('unread' as const), some, isUnread: fc.boolean() }),
  leave: fc.record({ kind: fc.constant('leave' as const), some }),
  come: fc.record({ kind: fc.constant('come' as const), some, mask: fc.option(mask) }),
};
type Kind = keyof typeof kinds;
type Event = { [K in Kind]: (typeof kinds)[K] extends fc.Arbitrary<infer T> ? T : never }[Kind];
const events = (...names: Kind[]): fc.Arbitrary<Event[]> =>
  fc.array(fc.oneof(...names.map((name) => kinds[name] as fc.Arbitrary<Event>)), {
    minLength: 5,
    maxLength: 12,
    size: 'max',
  });
const GRANTS: Kind[] = ['acquire', 'acquire', 'resize', 'release', 'foreign', 'settle'];

const values = fc.record({ masks: fc.array(mask, { minLength: 5, maxLength: 5 }), latency });
const worldOf = ({ masks, latency }: { masks: string[]; latency: string }) => {
  const left = [...masks];
  return QuietWorld.create((path) => (path.startsWith('/cpu') ? latency : left.shift()!));
};

const at = <T>(list: readonly T[], some: number): T | undefined => list[some % Math.max(1, list.length)];

let count = 0;

/** The state that an event leads to, and the process that does it; undefined: no process can. */
function nextOf(world: QuietWorld, event: Event): { next: Assignments; process: string } | undefined {
  const { state } = world;
  const taken = state.pods.reduce((all, pod) => all.union(cpusOf(pod)), CpuSet.EMPTY);
  const free = CpuSet.from(Array.from({ length: GRANTABLE }, (_, cpu) => cpu)).difference(taken);
  const take = (from: CpuSet, amount: number) => CpuSet.from([...from].slice(0, amount));
  if (event.kind === 'acquire') {
    const cpus = take(free, event.amount);
    if (cpus.isEmpty) return undefined;
    const pod = podOf(`${++count}`, event.process, cpus, event.quiet);
    return { next: addPod(state, pod, state.memory), process: event.process };
  }
  if (event.kind !== 'resize' && event.kind !== 'release') return undefined;
  const pod = at(state.pods, event.some);
  if (!pod) return undefined;
  const { uuid } = pod.owner;
  if (event.kind === 'release') return { next: removePods(state, new Set([pod.uid])), process: uuid };
  // Away from some of its CPUs.
  const has = [...cpusOf(pod)];
  const cpus = take(CpuSet.from(has.slice(1)).union(free), event.amount);
  return cpus.isEmpty ? undefined : { next: replacePod(state, withCpus(pod, cpus)), process: uuid };
}

/** Events that need no process of ours. */
async function happen(world: QuietWorld, event: Event): Promise<void> {
  const { machine } = world;
  const paths = [...machine.things.keys()];
  switch (event.kind) {
    case 'settle':
      return world.settle();
    case 'foreign': {
      const path = at(paths, event.some)!;
      return world.setForeign(path, path.startsWith('/cpu') ? event.latency : event.mask);
    }
    case 'refuse': {
      const path = at(paths, event.some)!;
      return void machine.refused[event.isRefused ? 'add' : 'delete'](path);
    }
    case 'unread': {
      const path = at(paths, event.some)!;
      return void machine.unreadable[event.isUnread ? 'add' : 'delete'](path);
    }
    case 'leave':
      return machine.remove(`/irq/${event.some % 3}`);
    case 'come': {
      const path = `/irq/${event.some % 3}`;
      if (machine.things.has(path)) return;
      // Or with the values of before.
      machine.add('interrupts', path, `${++count}`, event.mask ?? machine.last.get(path)!);
      world.foreign.add(path);
    }
  }
}

/** All grants end, and every process checks once more. */
async function endAll(world: QuietWorld): Promise<void> {
  const { machine } = world;
  machine.refused.clear();
  machine.unreadable.clear();
  await world.carryOn(removePods(world.state, new Set(world.state.pods.map(({ uid }) => uid))));
  await world.settle();
  const theirs = Object.fromEntries([...machine.things].map(([path, { theirs }]) => [path, theirs]));
  expect(machine.values()).toEqual(theirs);
  expect(world.state.quiet).toBeNull();
}

/** Nothing is wrong after any of them. */
async function liveThrough(world: QuietWorld, happens: readonly Event[]): Promise<void> {
  for (const event of happens) {
    const step = nextOf(world, event);
    if (step) await world.carryOn(step.next);
    else await happen(world, event);
    expect(world.wrong()).toEqual([]);
  }
}

const runs = (rounds: { all: number; usual: number }) => ({ numRuns: budget(rounds) });

describe('settings of the kernel that grants want quiet', () => {
  it('follow grants that come, change and end, at every moment, and end with the values of others', async () => {
    await fc.assert(
      fc.asyncProperty(values, events(...GRANTS), async (initial, happens) => {
        const world = await worldOf(initial);
        await liveThrough(world, happens);
        expect(world.disturbances).toEqual([]);
        await endAll(world);
      }),
      runs({ all: 5000, usual: 50 }),
    );
  });

  const ends = fc.record({ at: fc.nat(14), isAfter: fc.boolean() });

  it('are right again after a process has ended at any step, and another in the repair of it, twice', async () => {
    let ended = 0;
    await fc.assert(
      fc.asyncProperty(
        values,
        fc.array(
          fc.tuple(
            fc.oneof(...GRANTS.map((name) => kinds[name] as fc.Arbitrary<Event>)),
            fc.option(ends),
            fc.array(ends, { maxLength: 2 }),
          ),
          { minLength: 5, maxLength: 12, size: 'max' },
        ),
        async (initial, happens) => {
          const world = await worldOf(initial);
          for (const [event, end, later] of happens) {
            const step = nextOf(world, event);
            if (!step) {
              await happen(world, event);
              continue;
            }
            const isDone = await world.carryOn(step.next, end ? { end } : {});
            if (!isDone) {
              ended++;
              for (const again of later) await world.recover(step.process, again);
              await world.recover(step.process);
              expect(world.state.pods.filter(({ owner }) => owner.uuid === step.process)).toEqual([]);
            }
            expect(world.wrong()).toEqual([]);
          }
          expect(world.disturbances).toEqual([]);
          await endAll(world);
        },
      ),
      runs({ all: 5000, usual: 150 }),
    );
    expect(ended).toBeGreaterThan(50);
  });

  it('stay unchanged if the kernel refuses, with a record; all others are right', async () => {
    await fc.assert(
      fc.asyncProperty(
        values,
        events(...GRANTS, 'refuse', 'unread'),
        fc.option(ends),
        async (initial, happens, end) => {
          const world = await worldOf(initial);
          const { machine } = world;
          // A refused setting is not written again for the same target.
          const excused = new Set<string>();
          for (const event of happens) {
            const step = nextOf(world, event);
            if (step) {
              const isLast = event === happens.at(-1);
              const isDone = await world.carryOn(step.next, isLast && end ? { end } : {});
              if (!isDone) await world.recover(step.process);
            } else await happen(world, event);
            for (const path of [...machine.refused, ...machine.unreadable, ...world.foreign])
              excused.add(path);
            expect(world.wrong(excused)).toEqual([]);
          }
          await endAll(world);
        },
      ),
      runs({ all: 5000, usual: 50 }),
    );
  });

  it('that go away and come back as other ones end with the values of these', async () => {
    await fc.assert(
      fc.asyncProperty(values, events(...GRANTS, 'leave', 'come'), async (initial, happens) => {
        const world = await worldOf(initial);
        await liveThrough(world, happens);
        await endAll(world);
      }),
      runs({ all: 5000, usual: 50 }),
    );
  });

  it('are as before if any commit fails, or have their targets if only the last one fails', async () => {
    let failed = 0;
    await fc.assert(
      fc.asyncProperty(
        values,
        events(...GRANTS),
        fc.constantFrom(0, 0, 1, 2),
        fc.nat(11),
        async (initial, happens, full, where) => {
          const world = await worldOf(initial);
          for (const [i, event] of happens.entries()) {
            const step = nextOf(world, event);
            if (!step) {
              await happen(world, event);
              continue;
            }
            await world.settle();
            world.fullDiskAt = i === where % happens.length ? full : Number.POSITIVE_INFINITY;
            const [before, { pods }] = [world.machine.values(), world.state];
            try {
              await world.carryOn(step.next);
            } catch (error) {
              expect(error).toBe(DISK_IS_FULL);
              failed++;
              expect(world.machine.values()).toEqual(before);
              expect(world.state.pods).toBe(pods);
            }
            world.fullDiskAt = Number.POSITIVE_INFINITY;
            expect(world.wrong()).toEqual([]);
          }
          await endAll(world);
        },
      ),
      runs({ all: 5000, usual: 120 }),
    );
    expect(failed).toBeGreaterThan(5);
  });
});
