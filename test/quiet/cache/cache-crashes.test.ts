// needs: nothing
// The process that handles grants with cache ways ends before any change of resctrl or after any
// commit; the next one continues from the record. MachineQuieter and the commit are the real ones.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type Assignments, emptyAssignments } from '../../../lib/account/assignments.js';
import { addPod, removePods } from '../../../lib/account/pod-changes.js';
import type { Host } from '../../../lib/admission/host.js';
import { commitEnforced } from '../../../lib/admission/transact.js';
import { DEFAULT_SETTINGS } from '../../../lib/decision/machine-settings.js';
import { noEnforcer } from '../../../lib/enforcement/enforcer.js';
import { discover } from '../../../lib/entries/topology.js';
import { CpuSet } from '../../../lib/index.js';
import { MachineQuieter } from '../../../lib/quiet/machine-quieter.js';
import { cache } from '../../../lib/quiet/parts/cache.js';
import { isQuietUnsettled } from '../../../lib/reconcile/quiet-settings.js';
import { budget } from '../../support/budget.mjs';
import { podOf } from '../../support/quiet-world.js';
import { FakeResctrl } from './fake-resctrl.js';

const topology = await discover({ synthetic: 'package:2 l3:1 core:4 pu:1' });
const CACHES = [
  [0, 1, 2, 3],
  [4, 5, 6, 7],
];
const NONE = { interrupts: false, workqueues: false, packets: false, idle: null, frequency: false };
const REVIEW = { quietReview: { isGivenUp: () => false } };

type Groups = FakeResctrl['groups'];

const copyOf = (groups: Groups): Groups =>
  new Map(
    [...groups].map(([name, { masks, ...group }]) => [
      name,
      { ...group, masks: new Map([...masks].map(([resource, line]) => [resource, new Map(line)])) },
    ]),
  );

/** The remains of a process that ends at a moment. */
interface Moment {
  readonly groups: Groups;
  readonly state: Assignments;
}

class Resctrl extends FakeResctrl {
  changing = () => {};

  override write(path: string, value: string): void {
    this.changing();
    super.write(path, value);
  }

  override makeFolder(path: string): void {
    this.changing();
    super.makeFolder(path);
  }

  override removeFolder(path: string): void {
    this.changing();
    super.removeFolder(path);
  }
}

class Machine {
  readonly files = new Resctrl({ caches: CACHES });
  readonly moments: Moment[] = [];
  state: Assignments = emptyAssignments(DEFAULT_SETTINGS);
  readonly #host: Host;

  constructor(moment?: Moment) {
    const { files } = this;
    if (moment) {
      files.groups.clear();
      for (const [name, group] of copyOf(moment.groups)) files.groups.set(name, group);
      this.state = moment.state;
    }
    files.changing = () => this.#note();
    const quieter = new MachineQuieter(
      () => topology,
      [cache],
      files,
      () => [],
    );
    const ledger = { owners: { isOwn: () => true } };
    this.#host = { quieter, topology, enforcer: noEnforcer(), enforcement: {}, ledger } as unknown as Host;
  }

  #note(): void {
    this.moments.push({ groups: copyOf(this.files.groups), state: this.state });
  }

  async carryOn(next: Assignments, options = {}): Promise<void> {
    const commit = async (committed: Assignments) => {
      this.state = committed;
      this.#note();
    };
    await commitEnforced(this.#host, { before: this.state, wanted: next, commit }, options);
  }

  /** Like an opener. */
  async settle(): Promise<void> {
    if (await isQuietUnsettled(this.#host, this.state)) await this.carryOn(this.state, REVIEW);
  }

  without(process: string): Assignments {
    const dead = this.state.pods.filter(({ owner }) => owner.uuid === process).map(({ uid }) => uid);
    return removePods(this.state, new Set(dead));
  }

  /** Each way of a cache that grants have belongs to one group only. */
  get shared(): string[] {
    const names = [...this.files.groups.keys()];
    return names.flatMap((name, i) =>
      names.slice(i + 1).flatMap((other) =>
        CACHES.flatMap((_, id) => {
          const both = this.files.maskOf(name, id) & this.files.maskOf(other, id);
          // It may have the rest of a cache that none of its CPUs use.
          return both !== 0 && this.#uses(name, id) && this.#uses(other, id) ? [`${name} and ${other}`] : [];
        }),
      ),
    );
  }

  #uses(name: string, id: number): boolean {
    return this.files.groups.get(name)!.cpus.intersects(CpuSet.from(CACHES[id]!));
  }
}

const grant = fc.record({
  process: fc.constantFrom('a', 'b'),
  first: fc.nat(7),
  count: fc.integer({ min: 1, max: 3 }),
  ways: fc.integer({ min: 1, max: 6 }),
  isReleased: fc.boolean(),
});

it('resctrl is restored once all grants have ended, wherever the earlier process ended', async () => {
  let ends = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(grant, { maxLength: 4 }), async (grants) => {
      const machine = new Machine();
      const before = machine.files.dump();
      for (const [i, { process, first, count, ways, isReleased }] of grants.entries()) {
        const taken = machine.state.pods.flatMap(({ containers }) => [...containers[0]!.cpus]);
        const wanted = Array.from({ length: count }, (_, at) => first + at);
        const cpus = CpuSet.from(wanted.filter((cpu) => cpu < 8 && !taken.includes(cpu)));
        if (cpus.isEmpty) continue;
        const pod = podOf(`grant-${i}`, process, cpus, { ...NONE, cache: { ways } });
        await machine.carryOn(addPod(machine.state, pod, machine.state.memory));
        expect(machine.shared).toEqual([]);
        if (isReleased) await machine.carryOn(removePods(machine.state, new Set([pod.uid])));
      }
      for (const moment of machine.moments) {
        ends++;
        const next = new Machine(moment);
        await next.carryOn(next.without('a'));
        expect(next.shared).toEqual([]);
        await next.carryOn(next.without('b'));
        await next.settle();
        expect(next.files.dump()).toBe(before);
        await next.settle();
        expect(next.state.quiet).toBeNull();
      }
    }),
    { numRuns: budget({ all: 1000, usual: 40 }) },
  );
  expect(ends).toBeGreaterThan(100);
});
