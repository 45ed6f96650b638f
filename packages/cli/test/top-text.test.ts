// needs: nothing
import { CpuSet, type GrantInfo } from 'numalign';
import type { GrantAudit, StateStatus } from 'numalign/diagnostics';
import { describe, expect, it } from 'vitest';
import { FIGURES, type Order, orderAfter, rowOf, type Sample, SORTS, sorted } from '../lib/top/figures.js';
import { type TopLook, topJson, topText } from '../lib/top/top-text.js';

const FOREIGN = { pid: 7, tid: 7, command: 'cc1', kind: 'user', bound: false, runTimeNs: 2e6 } as const;

/** An audit `elapsedMs` after the first look, of a grant that began with nothing. */
function audit(elapsedMs: number, totals: Partial<GrantAudit['totals']> = {}): GrantAudit {
  const cpus = [{ cpu: 2, foreign: [FOREIGN, { ...FOREIGN, kind: 'kernel' }] }];
  return {
    grant: 'u',
    elapsedMs,
    threads: [{}, {}],
    cpus,
    seesAllTasks: true,
    throttling: null,
    totals,
  } as never;
}

function sample(name: string, more: Partial<Sample> & { owner?: string } = {}): Sample {
  const { owner = 'process', ...rest } = more;
  const grant = { uid: `${name}-uid`, name, cpus: CpuSet.parse('2'), owner: { kind: owner }, flags: [] };
  return {
    grant: grant as unknown as GrantInfo,
    before: audit(1000),
    now: audit(2000),
    elsewhereBytes: 0,
    ...rest,
  };
}

const delayed = (name: string, runDelayNs: number | null) =>
  rowOf(sample(name, { before: audit(1000, { runDelayNs: 0 }), now: audit(2000, { runDelayNs }) }));

const namesBy = (rows: readonly ReturnType<typeof rowOf>[], order: Order) =>
  sorted(rows, order).map(({ grant }) => grant.name);

describe('the figures of a grant', () => {
  it('are amounts a second between two looks', () => {
    const { figures } = rowOf(
      sample('a', {
        before: audit(1000, { runTimeNs: 1e9, runDelayNs: 0, involuntarySwitches: 5, interrupts: 100 }),
        now: audit(3000, { runTimeNs: 2e9, runDelayNs: 4e6, involuntarySwitches: 15, interrupts: 300 }),
        elsewhereBytes: 4096,
      }),
    );
    expect(figures).toEqual({
      runNsPerSecond: 5e8,
      runDelayNsPerSecond: 2e6,
      involuntarySwitchesPerSecond: 5,
      foreignTasks: 1,
      interruptsPerSecond: 100,
      memoryElsewhereBytes: 4096,
      kernelTasks: 1,
      threads: 2,
      throttledPerSecond: null,
    });
    expect(FIGURES.runNsPerSecond.text(5e8)).toBe('50%');
    expect(FIGURES.runDelayNsPerSecond.text(2e6)).toBe('2.0 ms');
  });

  it('are unknown at the first look, where they cannot be read, and of processes that are not known', () => {
    expect(rowOf(sample('a', { before: undefined })).figures.interruptsPerSecond).toBeNull();
    expect(delayed('a', null).figures.runDelayNsPerSecond).toBeNull();
    expect(
      rowOf(sample('a', { now: { ...audit(2000), seesAllTasks: null } })).figures.foreignTasks,
    ).toBeNull();
    const now = audit(2000, { runTimeNs: 1, interrupts: 3 });
    const { figures } = rowOf(
      sample('a', { owner: 'persistent', now, before: audit(1000, { runTimeNs: 0, interrupts: 0 }) }),
    );
    expect([figures.runNsPerSecond, figures.foreignTasks, figures.threads]).toEqual([null, null, null]);
    expect(figures.interruptsPerSecond).toBe(3);
  });
});

describe('the order', () => {
  const rows = [delayed('b', 5), delayed('c', null), delayed('d', 9), delayed('a', 5)];

  it('is that of figures from the greatest, with unknown ones last, and of names from A to Z', () => {
    expect(namesBy(rows, { by: 'delay', isReversed: false })).toEqual(['d', 'a', 'b', 'c']);
    expect(namesBy(rows, { by: 'delay', isReversed: true })).toEqual(['a', 'b', 'd', 'c']);
    expect(namesBy(rows, { by: 'name', isReversed: false })).toEqual(['a', 'b', 'c', 'd']);
    expect(namesBy(rows, { by: 'name', isReversed: true })).toEqual(['d', 'c', 'b', 'a']);
  });

  it('follows the key of a column, which reverses it if it is the same', () => {
    const first: Order = { by: 'delay', isReversed: false };
    expect(orderAfter(first, 'i')).toEqual({ by: 'involuntary', isReversed: false });
    expect(orderAfter(first, 'D')).toEqual({ by: 'delay', isReversed: true });
    expect(orderAfter({ by: 'delay', isReversed: true }, 'd')).toEqual(first);
    expect(orderAfter(first, 'x')).toBeUndefined();
    expect(new Set([...Object.values(SORTS), 'q']).size).toBe(Object.keys(SORTS).length + 1);
  });
});

describe('the page of top', () => {
  const status = {
    exists: true,
    generation: 3,
    refusal: null,
    sharedPool: CpuSet.parse('0-1'),
    free: CpuSet.EMPTY,
  } as unknown as StateStatus;
  const rows = [
    delayed('gateway', 2e6),
    rowOf(sample('a-grant-with-a-long-name', { now: { ...audit(2000), seesAllTasks: false } })),
  ];
  const look: TopLook = { stateDir: '/run/numalign', time: new Date(0), status, rows, hasNodes: true };
  const choice = { seconds: 1, order: { by: 'delay', isReversed: false }, hasKeys: true } as const;
  const page = { width: 80, isNarrow: true };

  it('fits 80 columns with every figure that can be sorted by, and names the keys', () => {
    const text = topText(look, choice, page);
    expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
    expect(text).toBe(`/run/numalign, 1970-01-01 00:00:00Z, every second
shared: CPUs 0-1, free: none; a second, sorted by delay
[q]uit [n]ame [r]un [d]elay [i]nvoluntary [f]oreign in[t]errupts [e]lsewhere

NAME              CPUS  RUN  DELAY   INVOLUNTARY  FOREIGN  INTERRUPTS  ELSEWHERE
gateway           2     -    2.0 ms  -            1        -           0 B
a-grant-with-a-…  2     -    -       -            1+       -           0 B

foreign tasks on these CPUs:
  gateway: cc1 (pid 7, ran 2.0 ms)
  a-grant-with-a-long-name: cc1 (pid 7, ran 2.0 ms)
`);
  });

  it('becomes blocks on a terminal that is narrower than the table', () => {
    const text = topText(look, choice, { width: 40, isNarrow: true });
    expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(40);
    expect(text).toMatch(/^NAME {9}gateway$/m);
  });

  it('says what there is on a machine of one node, without grants, without a state, and without keys', () => {
    expect(topText({ ...look, hasNodes: false }, choice, page)).not.toMatch(/elsewhere/i);
    expect(topText({ ...look, rows: [] }, choice, page)).toMatch(/\n\nNo grants\.\n$/);
    const none = { ...look, status: { ...status, exists: false } as StateStatus };
    expect(topText(none, choice, page)).toMatch(/\[q\]uit.*\n\nNo state: nothing is granted\.\n$/);
    expect(topText(look, { ...choice, hasKeys: false }, page)).not.toContain('[q]');
  });

  it('has the same figures as JSON, in the order that was chosen', () => {
    const { grants, generation } = topJson(look, { by: 'name', isReversed: true }) as {
      grants: { name: string; figures: object }[];
      generation: number;
    };
    expect(generation).toBe(3);
    expect(grants.map(({ name }) => name)).toEqual(['gateway', 'a-grant-with-a-long-name']);
    expect(Object.keys(grants[0]!.figures)).toEqual(Object.keys(FIGURES));
  });
});
