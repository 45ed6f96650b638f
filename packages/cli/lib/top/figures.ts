// Figures: what `numalign top` says of a grant, from two audits of it. Pure.
import { milliseconds } from '@numalign/page/words';
import type { GrantInfo } from 'numalign';
import type { GrantAudit } from 'numalign/diagnostics';
import { foreignOf } from '../pages/status/watch-text.js';
import { formatBytes } from '../terminal/text.js';

/** A grant, and what has happened on its CPUs between two looks. */
export interface Sample {
  readonly grant: GrantInfo;
  readonly now: GrantAudit;
  /** Undefined at the first look at it. */
  readonly before: GrantAudit | undefined;
  /** Memory on other NUMA nodes, at the last look at memory; null if unknown. */
  readonly elsewhereBytes: number | null;
}

interface Figure {
  /** Null if it cannot be read here, or before there are two looks. */
  readonly of: (sample: Sample) => number | null;
  readonly text: (value: number) => string;
}

type Total = (audit: GrantAudit) => number | null;

/** How much was added a second. */
const perSecond =
  (total: Total): Figure['of'] =>
  ({ now, before }) => {
    const [first, last] = [before && total(before), total(now)];
    const ms = before ? now.elapsedMs - before.elapsedMs : 0;
    return first == null || last === null || ms <= 0 ? null : (Math.max(last - first, 0) / ms) * 1000;
  };

// The processes of a persistent grant are unknown: none there is known to be its own, or foreign.
const ofProcesses =
  (of: Figure['of']): Figure['of'] =>
  (sample) =>
    sample.grant.owner.kind === 'persistent' ? null : of(sample);

const tasks =
  (kinds: readonly string[]): Figure['of'] =>
  ({ now }) =>
    now.seesAllTasks === null ? null : foreignOf(now).filter(({ kind }) => kinds.includes(kind)).length;

const count = (value: number) => String(Math.round(value));

/** By the names of JSON, in the order of the columns. */
export const FIGURES = {
  runNsPerSecond: {
    of: ofProcesses(perSecond(({ totals }) => totals.runTimeNs)),
    text: (ns) => `${Math.round(ns / 1e7)}%`,
  },
  runDelayNsPerSecond: {
    of: ofProcesses(perSecond(({ totals }) => totals.runDelayNs)),
    text: (ns) => (ns === 0 ? '0' : milliseconds(ns)),
  },
  involuntarySwitchesPerSecond: {
    of: ofProcesses(perSecond(({ totals }) => totals.involuntarySwitches)),
    text: count,
  },
  foreignTasks: { of: ofProcesses(tasks(['user', 'owner'])), text: count },
  interruptsPerSecond: { of: perSecond(({ totals }) => totals.interrupts), text: count },
  memoryElsewhereBytes: { of: ofProcesses(({ elsewhereBytes }) => elsewhereBytes), text: formatBytes },
  kernelTasks: { of: tasks(['kernel']), text: count },
  threads: { of: ofProcesses(({ now }) => now.threads.length), text: count },
  throttledPerSecond: {
    of: perSecond(({ throttling }) => throttling?.nrThrottled ?? null),
    text: count,
  },
} as const satisfies Record<string, Figure>;

export type FigureName = keyof typeof FIGURES;

/** A row of the table. */
export interface TopRow extends Sample {
  readonly figures: Readonly<Record<FigureName, number | null>>;
}

export function rowOf(sample: Sample): TopRow {
  const names = Object.keys(FIGURES) as FigureName[];
  const figures = Object.fromEntries(names.map((name) => [name, FIGURES[name].of(sample)]));
  return { ...sample, figures: figures as TopRow['figures'] };
}

/** What a table can be sorted by, each with its key. */
export const SORTS = {
  name: 'n',
  run: 'r',
  delay: 'd',
  involuntary: 'i',
  foreign: 'f',
  interrupts: 't',
  elsewhere: 'e',
} as const;

export type Sort = keyof typeof SORTS;

const SORTED_BY: Readonly<Record<Exclude<Sort, 'name'>, FigureName>> = {
  run: 'runNsPerSecond',
  delay: 'runDelayNsPerSecond',
  involuntary: 'involuntarySwitchesPerSecond',
  foreign: 'foreignTasks',
  interrupts: 'interruptsPerSecond',
  elsewhere: 'memoryElsewhereBytes',
};

export interface Order {
  readonly by: Sort;
  readonly isReversed: boolean;
}

/** The order after a key; undefined for another key. The key of the column again reverses it. */
export function orderAfter({ by, isReversed }: Order, key: string): Order | undefined {
  const next = (Object.keys(SORTS) as Sort[]).find((name) => SORTS[name] === key.toLowerCase());
  return next && { by: next, isReversed: next === by && !isReversed };
}

/** Names from A to Z, figures from the greatest, unknown ones last. */
export function sorted(rows: readonly TopRow[], { by, isReversed }: Order): TopRow[] {
  const byName = (a: TopRow, b: TopRow) =>
    a.grant.name < b.grant.name ? -1 : a.grant.name > b.grant.name ? 1 : 0;
  const sign = isReversed ? -1 : 1;
  return [...rows].sort((a, b) => {
    if (by === 'name') return sign * byName(a, b);
    const [x, y] = [a.figures[SORTED_BY[by]], b.figures[SORTED_BY[by]]];
    if (x === null || y === null) return Number(x === null) - Number(y === null) || byName(a, b);
    return sign * (y - x) || byName(a, b);
  });
}
