// needs: nothing
// Laws of caches, whatever grants come and go, and wherever the process stops.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { discover } from '../../../lib/entries/topology.js';
import { budget } from '../../support/budget.mjs';
import { CacheRun, cacheDemand } from './cache-run.js';
import { FakeResctrl } from './fake-resctrl.js';

const topology = await discover({ synthetic: 'package:2 [numa(memory=8GiB)] l3:1 core:4 pu:1' });
const CACHES = [
  [0, 1, 2, 3],
  [4, 5, 6, 7],
];

// A grant of each pair of CPUs, one of both caches.
const CPUS = ['0', '1-2', '3-4', '5', '6-7'];

const share = fc.oneof(
  fc.record({ ways: fc.integer({ min: 1, max: 12 }) }),
  fc.record({ percent: fc.integer({ min: 1, max: 100 }) }),
);
const step = fc.record({ grant: fc.nat({ max: CPUS.length - 1 }), share });
const machine = fc.record({
  ways: fc.integer({ min: 4, max: 32 }),
  minBits: fc.integer({ min: 1, max: 2 }),
  closids: fc.integer({ min: 3, max: 16 }),
  codeAndData: fc.boolean(),
  foreign: fc.boolean(),
});
type Machine = typeof machine extends fc.Arbitrary<infer T> ? T : never;

function runOn({ foreign, ...options }: Machine): CacheRun {
  const run = new CacheRun(new FakeResctrl({ caches: CACHES, ...options }), topology);
  if (!foreign) return run;
  run.files.makeFolder('/sys/fs/resctrl/db');
  const lines = run.files.resources.map((name) => `${name}:0=3;1=c`);
  run.files.write('/sys/fs/resctrl/db/schemata', `${lines.join('\n')}\n`);
  return run;
}

// Adds it if it is missing, else ends it.
function toggle(run: CacheRun, { grant, share: ways }: { grant: number; share: any }): void {
  const uid = `g${grant}`;
  if (!run.demands.delete(uid)) run.demands.set(uid, cacheDemand(uid, CPUS[grant]!, ways));
}

// The groups of grants on a cache, the default group and others.
function expectApart({ files }: CacheRun): void {
  for (const [id, cpus] of CACHES.entries()) {
    for (const resource of files.resources) {
      let taken = 0;
      for (const [name, group] of files.groups) {
        if (!name.startsWith('numalign-') || !cpus.some((cpu) => group.cpus.has(cpu))) continue;
        const mask = files.maskOf(name, id, resource);
        expect((mask & taken) >>> 0).toBe(0);
        taken = (taken | mask) >>> 0;
      }
      const others = [...files.groups.keys()].filter((name) => !name.startsWith('numalign-'));
      for (const name of others) expect((files.maskOf(name, id, resource) & taken) >>> 0).toBe(0);
    }
  }
}

describe('grants with ways of caches', () => {
  it('never share any, and leave everything restored', () => {
    fc.assert(
      fc.property(machine, fc.array(step, { maxLength: 12 }), (options, steps) => {
        const run = runOn(options);
        const before = run.files.dump();
        for (const each of steps) {
          toggle(run, each);
          run.settle();
          expectApart(run);
        }
        run.demands.clear();
        run.settle();
        expect(run.files.dump()).toBe(before);
        expect(run.record.size).toBe(0);
      }),
      { numRuns: budget({ all: 1_000, usual: 100 }) },
    );
  });

  it('are served, or get a reason', () => {
    fc.assert(
      fc.property(machine, fc.array(step, { maxLength: 8 }), (options, steps) => {
        const run = runOn({ ...options, closids: 16 });
        for (const each of steps) {
          toggle(run, each);
          run.settle();
        }
        const refused = [...run.demands.keys()].filter((uid) => !run.files.groups.has(`numalign-${uid}`));
        expect(run.disturbed).toEqual(refused);
        for (const uid of refused) expect(run.obstacles.join('\n')).toContain(`left for grant ${uid} `);
        expect(run.obstacles).toHaveLength(refused.length);
      }),
      { numRuns: budget({ all: 1_000, usual: 70 }) },
    );
  });

  it('are finished or undone by the next process, wherever one stops', () => {
    const stop = fc.nat({ max: 8 });
    fc.assert(
      fc.property(
        machine,
        fc.array(step, { maxLength: 6 }),
        step,
        stop,
        fc.boolean(),
        (options, steps, last, writes, ends) => {
          const run = runOn(options);
          const before = run.files.dump();
          for (const each of steps) {
            toggle(run, each);
            run.settle();
          }
          toggle(run, last);
          run.files.stopsAt = run.files.writes + writes;
          try {
            run.settle();
          } catch {
            // The process stops there.
          }
          run.files.stopsAt = null;
          if (ends) run.demands.clear();
          run.settle();
          expectApart(run);
          run.demands.clear();
          run.settle();
          run.settle();
          expect(run.files.dump()).toBe(before);
          expect(run.record.size).toBe(0);
        },
      ),
      { numRuns: budget({ all: 2_000, usual: 150 }) },
    );
  });
});
