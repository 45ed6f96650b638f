// Quiet grants come, change and end on a machine that others change, too; the process that works for
// them ends at any single step; the kernel refuses; the disk is full. MachineQuieter and the commit are
// the real ones.
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Assignments, emptyAssignments } from '../../lib/account/assignments.js';
import { JUST_PLACED, type PodAssignment } from '../../lib/account/pod-assignment.js';
import { addPod, removePods, replacePod } from '../../lib/account/pod-changes.js';
import type { QuietRequest } from '../../lib/account/quiet/quiet-request.js';
import type { Site } from '../../lib/admission/site.js';
import { commitEnforced } from '../../lib/admission/transact.js';
import { DEFAULT_SETTINGS } from '../../lib/decision/machine-settings.js';
import { NO_ENFORCER } from '../../lib/enforcement/enforcer.js';
import { discover, type Topology } from '../../lib/entries/topology.js';
import { CpuSet } from '../../lib/index.js';
import { ANY_NODES } from '../../lib/machine/hints.js';
import { cpusOfDemands, demandsFor, quietDemands } from '../../lib/quiet/kernel/demands.js';
import { MachineQuieter } from '../../lib/quiet/machine-quieter.js';
import { budget } from '../support/budget.mjs';
import { NO_FILES, QuietMachine } from '../support/quiet-machine.js';

const CPUS = 8;
// The others may be granted: so that masks are never empty.
const GRANTABLE = 6;
const LEAST = CpuSet.parse('6-7');

let topology: Topology;
beforeAll(async () => {
  topology = await discover({ synthetic: `core:${CPUS} pu:1` });
});

const OWNER = { pid: 1, command: 'test', cgroup: null, unknown: {} };

function podOf(uid: string, process: string, cpus: CpuSet, quiet: QuietRequest): PodAssignment {
  return {
    ...JUST_PLACED,
    ...{ uid, name: uid, resources: undefined, booking: null, policy: 'none', scope: 'container' },
    ...{ options: {}, quiet, admittedAt: '2026-01-01T00:00:00.000Z', unknown: {} },
    owner: { ...OWNER, kind: 'process', uuid: process },
    containers: [
      {
        ...{ name: 'main', kind: 'app', started: true, request: { cpu: 1000 }, isolation: 'container' },
        ...{ cpus, held: CpuSet.EMPTY, hint: ANY_NODES, memory: [], devices: {}, unknown: {} },
        reusable: { cpus: CpuSet.EMPTY, memory: [], devices: {} },
      },
    ],
  };
}

/** What ends a process: it does nothing any more. */
interface End {
  readonly at: number;
  readonly isAfter: boolean;
}

const DISK_IS_FULL = new Error('the disk is full');

/** Processes one after the other on one state, of which one may end at a step. */
class World {
  readonly machine: QuietMachine;
  state: Assignments = emptyAssignments(DEFAULT_SETTINGS);
  /** Paths that somebody else has changed since a process of ours has looked at all of them. */
  readonly foreign = new Set<string>();
  /** Of commits. */
  fullDiskAt = Number.POSITIVE_INFINITY;
  steps = 0;
  commits = 0;
  /** Seen at a step though a grant was to be quiet there. */
  readonly disturbances: string[] = [];
  #end: End | undefined;
  #ended: () => void = () => {};
  #quiet: readonly PodAssignment[] = [];

  constructor(value: (path: string) => string) {
    this.machine = new QuietMachine(3, 2, CPUS, value);
    this.machine.step = (name, act) => this.#step(name, act);
  }

  async #step(name: string, act: () => void): Promise<void> {
    const end = this.#end?.at === this.steps++ ? this.#end : undefined;
    if (end && !end.isAfter) await this.#never();
    act();
    this.#look(name);
    if (end) await this.#never();
  }

  #never(): Promise<never> {
    this.#ended();
    return new Promise<never>(() => {});
  }

  // At every moment.
  #look(name: string): void {
    const demands = quietDemands({ pods: this.#quiet });
    for (const [path, { part, value }] of this.machine.things) {
      if (part === 'idle' || this.foreign.has(path) || this.machine.refused.has(path)) continue;
      const cpus = cpusOfDemands(demandsFor(demands, part));
      if (CpuSet.parse(value).intersects(cpus)) this.disturbances.push(`${name}: ${path} is ${value}`);
    }
  }

  get #site(): Site {
    const quieter = new MachineQuieter(
      () => topology,
      this.machine.parts,
      NO_FILES,
      () => [],
    );
    return { quieter, topology, enforcer: NO_ENFORCER, enforcement: {} } as unknown as Site;
  }

  readonly #commit = async (next: Assignments) => {
    if (this.commits++ >= this.fullDiskAt) throw DISK_IS_FULL;
    await this.#step('commit', () => {
      this.state = next;
    });
  };

  /**
   * A process carries on to the next state. `end`: where it ends. Answers false where it has; throws
   * what the commit throws.
   */
  async carryOn(next: Assignments, { end, isAnew = false }: { end?: End; isAnew?: boolean } = {}) {
    const { state } = this;
    this.steps = 0;
    this.commits = 0;
    this.#end = end;
    const kept = new Map(next.pods.map((pod) => [pod.uid, pod]));
    // On the CPUs that they keep.
    this.#quiet = state.pods.flatMap((pod) => {
      const later = kept.get(pod.uid);
      return later ? [withCpus(pod, cpusOf(pod).intersection(cpusOf(later)))] : [];
    });
    const ended = new Promise<false>((resolve) => {
      this.#ended = () => resolve(false);
    });
    const options = isAnew ? { quietAnew: { isGivenUp: () => false } } : {};
    const isDone = await Promise.race([
      ended,
      commitEnforced(this.#site, state, next, this.#commit, options).then(() => true),
    ]);
    if (isDone && (isAnew || quietDemands(next) !== quietDemands(state))) this.foreign.clear();
    this.#quiet = [];
    return isDone;
  }

  /** What the next process does after one has ended: its grants end, if it has any on record. */
  async recover(process: string, end?: End): Promise<boolean> {
    const dead = this.state.pods.filter(({ owner }) => owner.uuid === process).map(({ uid }) => uid);
    if (dead.length === 0) return true;
    return this.carryOn(removePods(this.state, new Set(dead)), end ? { end } : {});
  }

  /** As an opener, and every round: all settings are looked at, and made right. */
  async settle(): Promise<void> {
    const { found } = await this.#site.quieter.compare(this.state);
    if (found.length > 0 || this.foreign.size > 0) await this.carryOn(this.state, { isAnew: true });
  }

  /** What is not as what is asked needs it. `but`: paths that are left out. */
  wrong(but: ReadonlySet<string> = this.foreign) {
    const demands = quietDemands(this.state);
    const expected = this.machine.expected((part) => {
      const its = demandsFor(demands, part);
      return { topology, demands: its, cpus: cpusOfDemands(its) };
    });
    const values = this.machine.values();
    return Object.keys(values)
      .filter((path) => !but.has(path) && values[path] !== expected[path])
      .map((path) => `${path} is ${values[path]}, not ${expected[path]}`);
  }

  /** Somebody else sets it, to a value by which he can be told from numalign. */
  setForeign(path: string, value: string): void {
    if (!this.machine.things.has(path)) return;
    const record = this.state.quiet?.settings.find((each) => each.path === path);
    if (record?.written.includes(value)) return;
    this.machine.set(path, value);
    this.foreign.add(path);
  }
}

const cpusOf = ({ containers }: PodAssignment) => containers[0]!.cpus;
const withCpus = (pod: PodAssignment, cpus: CpuSet): PodAssignment => ({
  ...pod,
  containers: [{ ...pod.containers[0]!, cpus }],
});

// ---- what happens

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
  come: fc.record({ kind: fc.constant('come' as const), some, mask }),
};
type Kind = keyof typeof kinds;
type Event = { [K in Kind]: (typeof kinds)[K] extends fc.Arbitrary<infer T> ? T : never }[Kind];
const events = (...names: Kind[]): fc.Arbitrary<Event[]> =>
  fc.array(fc.oneof(...names.map((name) => kinds[name] as fc.Arbitrary<Event>)), { maxLength: 12 });
const GRANTS: Kind[] = ['acquire', 'acquire', 'resize', 'release', 'foreign', 'settle'];

const values = fc.record({ masks: fc.array(mask, { minLength: 5, maxLength: 5 }), latency });
const worldOf = ({ masks, latency }: { masks: string[]; latency: string }) =>
  new World((path) => (path.startsWith('/cpu') ? latency : masks.shift()!));

const at = <T>(list: readonly T[], some: number): T | undefined => list[some % Math.max(1, list.length)];

let count = 0;

/** The state that an event is to lead to, and the process that does it; undefined: nobody can. */
function nextOf(world: World, event: Event): { next: Assignments; process: string } | undefined {
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
  // Away from some of what it has.
  const has = [...cpusOf(pod)];
  const cpus = take(CpuSet.from(has.slice(1)).union(free), event.amount);
  return cpus.isEmpty ? undefined : { next: replacePod(state, withCpus(pod, cpus)), process: uuid };
}

/** All that needs no process of ours. */
async function happen(world: World, event: Event): Promise<void> {
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
      return void machine.things.delete(`/irq/${event.some % 3}`);
    case 'come': {
      const path = `/irq/${event.some % 3}`;
      if (machine.things.has(path)) return;
      machine.add('interrupts', path, `${++count}`, event.mask);
      world.foreign.add(path);
    }
  }
}

/** All grants end, and everybody looks once more. */
async function endAll(world: World): Promise<void> {
  const { machine } = world;
  machine.refused.clear();
  machine.unreadable.clear();
  await world.carryOn(removePods(world.state, new Set(world.state.pods.map(({ uid }) => uid))));
  await world.settle();
  const theirs = Object.fromEntries([...machine.things].map(([path, { theirs }]) => [path, theirs]));
  expect(machine.values()).toEqual(theirs);
  expect(world.state.quiet).toBeNull();
}

const runs = (all: number, usual: number) => ({ numRuns: budget(all, usual) });

describe('settings of the kernel that grants want quiet', () => {
  it('follow grants that come, change and end, at every moment, and are what others have made of them in the end', async () => {
    await fc.assert(
      fc.asyncProperty(values, events(...GRANTS), async (initial, happens) => {
        const world = worldOf(initial);
        for (const event of happens) {
          const step = nextOf(world, event);
          if (step) await world.carryOn(step.next);
          else await happen(world, event);
          expect(world.wrong()).toEqual([]);
        }
        expect(world.disturbances).toEqual([]);
        await endAll(world);
      }),
      runs(20_000, 400),
    );
  });

  const ends = fc.record({ at: fc.nat(30), isAfter: fc.boolean() });

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
          { maxLength: 10 },
        ),
        async (initial, happens) => {
          const world = worldOf(initial);
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
      runs(20_000, 600),
    );
    expect(ended).toBeGreaterThan(100);
  });

  it('stay as they are where the kernel refuses, which is on record; all others are right', async () => {
    await fc.assert(
      fc.asyncProperty(
        values,
        events(...GRANTS, 'refuse', 'unread'),
        fc.option(ends),
        async (initial, happens, end) => {
          const world = worldOf(initial);
          const { machine } = world;
          // Refused once, they are not written again for the same.
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
      runs(20_000, 400),
    );
  });

  it('that go away and come back as other things have those’ values in the end', async () => {
    await fc.assert(
      fc.asyncProperty(values, events(...GRANTS, 'leave', 'come'), async (initial, happens) => {
        const world = worldOf(initial);
        for (const event of happens) {
          const step = nextOf(world, event);
          if (step) await world.carryOn(step.next);
          else await happen(world, event);
          expect(world.wrong()).toEqual([]);
        }
        await endAll(world);
      }),
      runs(20_000, 300),
    );
  });

  it('are as before where any commit fails, or as they are to be where only the last does', async () => {
    let failed = 0;
    await fc.assert(
      fc.asyncProperty(
        values,
        events(...GRANTS),
        fc.nat(3),
        fc.nat(11),
        async (initial, happens, full, where) => {
          const world = worldOf(initial);
          for (const [i, event] of happens.entries()) {
            const step = nextOf(world, event);
            if (!step) {
              await happen(world, event);
              continue;
            }
            await world.settle();
            world.fullDiskAt = i === where ? full : Number.POSITIVE_INFINITY;
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
      runs(20_000, 400),
    );
    expect(failed).toBeGreaterThan(10);
  });
});
