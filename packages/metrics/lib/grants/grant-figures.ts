// What is shown of a grant: counters of what happens on its CPUs, and how things stand with it.
import type { GrantInfo } from 'numalign';
import type { GrantAudit } from 'numalign/diagnostics';

interface Definition {
  readonly help: string;
  /** null where it is unknown or cannot be known. */
  readonly of: (audit: GrantAudit, owner: GrantInfo['owner']) => number | null;
}

const seconds = (ns: number | null) => ns && ns / 1e9;

type ThreadTotal = 'runTimeNs' | 'runDelayNs' | 'involuntarySwitches' | 'migrations';

// A persistent grant has no owner process, so no process there is known to be foreign.
const unlessPersistent =
  (of: (audit: GrantAudit) => number | null): Definition['of'] =>
  (audit, { kind }) =>
    kind === 'persistent' ? null : of(audit);

const ofThreads = (name: ThreadTotal) => unlessPersistent(({ totals }) => totals[name]);

const secondsOfThreads = (name: ThreadTotal) => unlessPersistent(({ totals }) => seconds(totals[name]));

export const GRANT_COUNTERS = {
  grant_run_seconds_total: {
    help: 'How long threads of the grant ran on its CPUs.',
    of: secondsOfThreads('runTimeNs'),
  },
  grant_run_delay_seconds_total: {
    help: 'How long threads of the grant waited while they were runnable.',
    of: secondsOfThreads('runDelayNs'),
  },
  grant_involuntary_switches_total: {
    help: 'How often a thread of the grant had to leave a CPU to another task.',
    of: ofThreads('involuntarySwitches'),
  },
  grant_migrations_total: {
    help: 'How often a thread of the grant changed its CPU.',
    of: ofThreads('migrations'),
  },
  grant_foreign_tasks_total: {
    help: 'Tasks of other processes on CPUs of the grant that the scrape before did not find there.',
    of: unlessPersistent(({ totals }) => totals.foreignTasks),
  },
  grant_interrupts_total: {
    help: 'Interrupts on CPUs of the grant.',
    of: ({ totals }) => totals.interrupts,
  },
  grant_device_interrupts_total: {
    help: 'Interrupts of devices on CPUs of the grant.',
    of: ({ totals }) => totals.deviceInterrupts,
  },
  grant_steal_seconds_total: {
    help: 'How long the hypervisor ran other guests on CPUs of the grant.',
    of: ({ totals }) => seconds(totals.stealNs),
  },
  grant_throttled_seconds_total: {
    help: "How long a quota stopped the cgroups of the grant's processes.",
    of: ({ throttling }) => seconds(throttling?.throttledNs ?? null),
  },
} as const satisfies Record<string, Definition>;

export const GRANT_GAUGES = {
  grant_recent_foreign_tasks: {
    help: 'Tasks of other processes that ran on CPUs of the grant since the scrape before.',
    of: unlessPersistent(recentForeignTasks),
  },
  grant_memory_elsewhere_bytes: {
    help: "Memory of the grant's processes on other NUMA nodes than the grant's; with grants.memory.",
    of: unlessPersistent(({ offNodeBytes }) => offNodeBytes),
  },
} as const satisfies Record<string, Definition>;

function recentForeignTasks({ cpus }: GrantAudit): number | null {
  const tasks = cpus.map(({ foreign }) => foreign);
  if (tasks.some((foreign) => foreign === null)) return null;
  return tasks.flatMap((foreign) => foreign ?? []).filter(({ kind }) => kind === 'user').length;
}

export type GrantCounter = keyof typeof GRANT_COUNTERS;
export type GrantGauge = keyof typeof GRANT_GAUGES;

/** What an audit says of each definition; nothing where there is none. */
export function figuresOf<Name extends string>(
  definitions: Readonly<Record<Name, Definition>>,
  audit: GrantAudit | undefined,
  owner: GrantInfo['owner'],
): Partial<Record<Name, number | null>> {
  if (audit === undefined) return {};
  const entries = Object.entries<Definition>(definitions);
  return Object.fromEntries(entries.map(([name, { of }]) => [name, of(audit, owner)])) as Partial<
    Record<Name, number | null>
  >;
}
