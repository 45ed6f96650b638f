// needs: nothing
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { advance, auditOf, openAccount } from '../../lib/audit/account.js';
import { type Counters, difference, sum, THROTTLING_COUNTERS, zero } from '../../lib/audit/counters.js';
import type { CpuSnapshot, Snapshot, TaskSnapshot, ThreadSnapshot } from '../../lib/audit/snapshot.js';
import { CPU_COUNTERS, THREAD_COUNTERS } from '../../lib/base/native-tables.js';
import { CpuSet } from '../../lib/machine/cpu-set.js';

const SECOND = 1e9;

// Unknown figures are unknown throughout: the kernel has the file or not.
function counters<const Name extends string>(
  names: readonly Name[],
  value: number,
  unknown: readonly string[] = [],
) {
  return Object.fromEntries(
    names.map((name) => [name, unknown.includes(name) ? null : value]),
  ) as unknown as Counters<Name>;
}

function thread(tid: number, value: number, more: Partial<ThreadSnapshot> = {}): ThreadSnapshot {
  const role = 'other' as const;
  const known = { pid: 100, tid, startNs: 0, role, cpus: CpuSet.of(1), processor: 1 };
  return { ...known, counters: counters(THREAD_COUNTERS, value), ...more };
}

function cpu(id: number, value: number): CpuSnapshot {
  return { cpu: id, counters: counters(CPU_COUNTERS, value), frequencyKHz: null };
}

function task(tid: number, runTimeNs: number, more: Partial<TaskSnapshot> = {}): TaskSnapshot {
  const known = {
    pid: tid,
    tid,
    startNs: 0,
    processor: 1,
    command: 'x',
    kind: 'user' as const,
    bound: false,
  };
  return { ...known, isRunnable: false, runTimeNs, ...more };
}

function snapshot(seconds: number, more: Partial<Snapshot> = {}): Snapshot {
  return {
    time: seconds * 1000,
    bootNs: seconds * SECOND,
    threads: [],
    cpus: [],
    tasks: null,
    seesAll: null,
    throttling: new Map(),
    offNode: null,
    ...more,
  };
}

/** The audit after the last of these looks; the first one is the start. */
function audit(...[first, ...rest]: [Snapshot, ...Snapshot[]]) {
  return auditOf(rest.reduce(advance, openAccount(first)), 'a', 'recorded');
}

const foreignTids = (...looks: [Snapshot, ...Snapshot[]]) =>
  audit(...looks).cpus.flatMap(
    ({ foreign }): (number | string)[] => foreign?.map(({ tid }) => tid) ?? ['not looked at'],
  );

describe('an account', () => {
  it('counts from the beginning', () => {
    const { since, elapsedMs, threads, cpus, totals } = audit(
      snapshot(100, { threads: [thread(1, 50)], cpus: [cpu(1, 1000)] }),
      snapshot(101, { threads: [thread(1, 53)], cpus: [cpu(1, 1400)] }),
      snapshot(103, { threads: [thread(1, 60)], cpus: [cpu(1, 1500)] }),
    );
    expect({ since, elapsedMs }).toEqual({ since: new Date(100_000).toISOString(), elapsedMs: 3000 });
    expect(threads).toMatchObject([{ tid: 1, runDelayNs: 10, migrations: 10 }]);
    expect(cpus).toMatchObject([{ cpu: 1, interrupts: 500, stealNs: 500 }]);
    expect(totals).toMatchObject({ involuntarySwitches: 10, softirqs: 500, endedThreads: 0 });
  });

  it('counts a thread from its birth, and one from elsewhere from the first look that finds it', () => {
    const { threads } = audit(
      snapshot(100),
      snapshot(110, {
        threads: [thread(1, 7, { startNs: 105 * SECOND }), thread(2, 9, { startNs: 50 * SECOND })],
      }),
    );
    expect(threads.map(({ runTimeNs }) => runTimeNs)).toEqual([7, 0]);
  });

  it('keeps the work of ended threads in its totals, and distinguishes them from later threads with the same id', () => {
    const { threads, totals } = audit(
      snapshot(100, { threads: [thread(1, 50)] }),
      snapshot(101, { threads: [thread(1, 58)] }),
      snapshot(102, { threads: [thread(1, 3, { startNs: 101.5 * SECOND })] }),
    );
    expect(threads).toMatchObject([{ tid: 1, runTimeNs: 3 }]);
    expect(totals).toMatchObject({ runTimeNs: 11, endedThreads: 1 });
  });

  it('keeps the work of lost CPUs in its totals', () => {
    const { cpus, totals } = audit(
      snapshot(100, { cpus: [cpu(1, 50), cpu(2, 500)] }),
      snapshot(101, { cpus: [cpu(1, 53), cpu(2, 507)] }),
      snapshot(102, { cpus: [cpu(1, 54)] }),
      // Back again, it counts from when it is first seen.
      snapshot(103, { cpus: [cpu(1, 55), cpu(2, 900)] }),
      snapshot(104, { cpus: [cpu(1, 55), cpu(2, 901)] }),
    );
    expect(cpus.map(({ interrupts }) => interrupts)).toEqual([5, 1]);
    expect(totals).toMatchObject({ interrupts: 13, stealNs: 13 });
  });

  it('includes the throttling of a cgroup while processes were in it', () => {
    const at = (groups: Record<string, number>) =>
      new Map(Object.entries(groups).map(([file, value]) => [file, counters(THROTTLING_COUNTERS, value)]));
    const looks = [{ a: 5 }, { a: 7, b: 100 }, { b: 104 }] as const;
    const [first, ...rest] = looks.map((groups, i) => snapshot(i, { throttling: at(groups) }));
    expect(audit(first!, ...rest).throttling).toEqual({ nrThrottled: 6, throttledNs: 6 });
    expect(audit(snapshot(0), snapshot(1)).throttling).toBeNull();
  });

  it('never reports 0 for an unknown figure', () => {
    const unknown = ['migrations', 'runDelayNs', 'interrupts', 'stealNs'] as const;
    const at = (seconds: number, value: number) =>
      snapshot(seconds, {
        threads: [thread(1, 0, { counters: counters(THREAD_COUNTERS, value, unknown) }), thread(2, value)],
        cpus: [{ cpu: 1, counters: counters(CPU_COUNTERS, value, unknown), frequencyKHz: null }],
      });
    const { threads, cpus, totals, seesAllTasks, throttling, offNodePages } = audit(
      at(0, 1),
      at(1, 2),
      at(2, 4),
    );
    expect(threads[0]).toMatchObject({ migrations: null, runDelayNs: null, timeslices: 3 });
    expect(cpus[0]).toMatchObject({
      interrupts: null,
      stealNs: null,
      softirqs: 3,
      frequencyKHz: null,
      foreign: null,
    });
    expect(totals).toMatchObject({ migrations: null, interrupts: null, timeslices: 6, foreignTasks: null });
    expect([seesAllTasks, throttling, offNodePages]).toEqual([null, null, null]);
  });

  it('obeys its laws, whatever comes and goes', () => {
    // Of each look: which of 6 threads there are, and by how much the figures of each have grown.
    const looks = fc.array(
      fc.record({
        there: fc.array(fc.boolean(), { minLength: 6, maxLength: 6 }),
        grown: fc.array(fc.nat({ max: 1000 }), { minLength: 6, maxLength: 6 }),
        // An interrupt that is given up takes its counts along.
        interrupts: fc.nat({ max: 10_000 }),
      }),
      { minLength: 2, maxLength: 12 },
    );
    fc.assert(
      fc.property(looks, (given) => {
        const sums = Array.from({ length: 6 }, (_, tid) => tid * 1000);
        const snapshots = given.map(({ there, grown, interrupts }, i) => {
          grown.forEach((amount, tid) => {
            sums[tid]! += amount;
          });
          const threads = sums.flatMap((value, tid) => (there[tid] ? [thread(tid + 1, value)] : []));
          return snapshot(100 + i, { threads, cpus: [cpu(1, interrupts), cpu(2, 10 + i)] });
        });
        let account = openAccount(snapshots[0]!);
        let before = auditOf(account, 'a', 'cpuset');
        for (const next of snapshots.slice(1)) {
          account = advance(account, next);
          const { ended } = account;
          const now = auditOf(account, 'a', 'cpuset');
          const all = [...now.threads, ...now.cpus].flatMap((row) => Object.values(row));
          expect(all.every((value) => typeof value !== 'number' || value >= 0)).toBe(true);
          for (const name of THREAD_COUNTERS) {
            const present = now.threads.reduce((total, row) => total + row[name]!, 0);
            expect(now.totals[name]).toBe(present + ended.counters[name]!);
            // Past events stay counted.
            expect(now.totals[name]).toBeGreaterThanOrEqual(before.totals[name]!);
          }
          expect(now.totals.endedThreads).toBeGreaterThanOrEqual(before.totals.endedThreads);
          expect(now.threads.map(({ tid }) => tid)).toEqual(next.threads.map(({ tid }) => tid));
          expect(now.totals.interrupts).toBe(now.cpus[0]!.interrupts! + now.cpus[1]!.interrupts!);
          before = now;
        }
      }),
    );
  });

  it('is independent of the number of looks, as long as no task comes or goes', () => {
    const values = fc.array(fc.nat(), { minLength: 2, maxLength: 10 });
    fc.assert(
      fc.property(values, (given) => {
        const sorted = [...given].sort((a, b) => a - b);
        const looks = sorted.map((value, i) =>
          snapshot(i, { threads: [thread(1, value)], cpus: [cpu(1, value)] }),
        );
        expect(audit(...(looks as [Snapshot, ...Snapshot[]]))).toEqual(audit(looks[0]!, looks.at(-1)!));
      }),
    );
  });
});

describe('foreign tasks', () => {
  const at = (seconds: number, tasks: TaskSnapshot[] | null) =>
    snapshot(seconds, { cpus: [cpu(1, 0)], tasks });

  it('are those that have run since the last look, have come since, or wait to run', () => {
    const now = [task(1, 500), task(2, 600), task(3, 7), task(4, 8, { isRunnable: true })];
    expect(foreignTids(at(100, [task(1, 500), task(2, 500), task(4, 8)]), at(101, now))).toEqual([2, 3, 4]);
    expect(foreignTids(at(100, [task(1, 500)]), at(101, now), at(102, []))).toEqual([]);
  });

  it('have their known run time', () => {
    const looks = [
      at(100, [task(1, 500)]),
      at(101, [task(1, 530), task(2, 9, { startNs: 100.5 * SECOND }), task(3, 900)]),
    ] as const;
    expect(audit(...looks).cpus[0]!.foreign!.map(({ runTimeNs }) => runTimeNs)).toEqual([30, 9, null]);
  });

  it('at the first look are those that wait to run or were born since the beginning', () => {
    const now = [task(1, 500), task(2, 600, { isRunnable: true }), task(3, 7, { startNs: 100.5 * SECOND })];
    expect(foreignTids(at(100, null), at(101, now))).toEqual([2, 3]);
  });

  it('are counted each time they turn up, kernel threads and the own process not', () => {
    const spinning = task(1, 5, { isRunnable: true });
    const others = [
      task(2, 5, { isRunnable: true, kind: 'kernel' }),
      task(3, 5, { isRunnable: true, kind: 'owner' }),
    ];
    const looks = [[], [spinning, ...others], [spinning, ...others], [], [spinning]].map((tasks, i) =>
      at(i, tasks),
    );
    expect(audit(...(looks as unknown as [Snapshot, ...Snapshot[]])).totals.foreignTasks).toBe(2);
  });

  it('are unknown after a look that left them out', () => {
    const looks = [at(100, [task(1, 500)]), at(101, null), at(102, [task(1, 600)])] as const;
    expect(foreignTids(looks[0], looks[1])).toEqual(['not looked at']);
    expect(audit(...looks).cpus[0]!.foreign).toMatchObject([{ tid: 1, runTimeNs: 100 }]);
  });

  it('are listed by CPU', () => {
    const cpus = [cpu(1, 0), cpu(5, 0)];
    const tasks = [task(1, 1, { isRunnable: true, processor: 5 })];
    const found = audit(snapshot(0, { cpus, tasks: [] }), snapshot(1, { cpus, tasks })).cpus;
    expect(found.map(({ foreign }) => foreign!.length)).toEqual([0, 1]);
  });
});

describe('counters', () => {
  it('are null in sums and differences if one of the two is', () => {
    const [known, unknown] = [{ a: 3 }, { a: null }];
    expect(difference(['a'], known, unknown)).toEqual({ a: null });
    expect(difference(['a'], unknown, known)).toEqual({ a: null });
    expect(sum(['a'], [known, unknown])).toEqual({ a: null });
    expect(sum(['a'], [])).toEqual(zero(['a']));
  });
});
