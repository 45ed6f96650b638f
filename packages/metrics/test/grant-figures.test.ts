// needs: agents
// The figures of a grant, from its audit.
import type { CpuAudit, ForeignTask, GrantAudit } from 'numalign/diagnostics';
import { describe, expect, it } from 'vitest';
import { figuresOf, GRANT_COUNTERS, GRANT_GAUGES } from '../lib/grants/grant-figures.js';

const OWNER = { kind: 'process', pid: 1, command: 'node' } as const;

const task = (kind: ForeignTask['kind']) => ({ kind }) as ForeignTask;

const recentOn = (...cpus: (readonly ForeignTask[] | null)[]) => {
  const audit = {
    cpus: cpus.map((foreign) => ({ foreign }) as CpuAudit),
    offNodeBytes: null,
  } as Partial<GrantAudit>;
  return figuresOf(GRANT_GAUGES, audit as GrantAudit, OWNER as never).grant_recent_foreign_tasks;
};

describe('figuresOf', () => {
  it('counts tasks of other processes on all CPUs, and neither the kernel’s nor the owner’s', () => {
    expect(recentOn([task('user'), task('kernel')], [task('owner'), task('user')], [])).toBe(2);
    expect(recentOn([task('kernel')])).toBe(0);
  });

  it('has no number of them if a CPU was not looked at', () => {
    expect(recentOn([task('user')], null)).toBeNull();
  });

  it('gives times in seconds, and none if they are unknown', () => {
    const timesOf = (ns: number | null, throttling: object | null) => {
      const totals = { runTimeNs: ns, runDelayNs: ns, stealNs: ns };
      const audit = { totals, throttling } as Partial<GrantAudit>;
      const figures = figuresOf(GRANT_COUNTERS, audit as GrantAudit, OWNER as never);
      return Object.entries(figures).flatMap(([name, value]) => (/_seconds_/.test(name) ? [value] : []));
    };
    expect(timesOf(2_500_000_000, { throttledNs: 500_000_000 })).toEqual([2.5, 2.5, 2.5, 0.5]);
    expect(timesOf(0, { throttledNs: 0 })).toEqual([0, 0, 0, 0]);
    expect(timesOf(null, null)).toEqual([null, null, null, null]);
  });
});
