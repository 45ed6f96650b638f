// Counters: figures that only grow; null if they cannot be read here. Pure.

/** Null if it cannot be read here; never 0 instead. */
export type Counters<Name extends string> = Readonly<Record<Name, number | null>>;

/**
 * What a thread did, by `schedstat` and `sched` (else `status`) in /proc/PID/task/TID. Null is what
 * cannot be read here.
 */
export interface ThreadCounters {
  /** Nanoseconds that it ran. */
  readonly runTimeNs: number | null;
  /** Nanoseconds that it was runnable and waited for a CPU. */
  readonly runDelayNs: number | null;
  /** How often it was given a CPU. */
  readonly timeslices: number | null;
  /** How often it gave its CPU up, for example to wait. */
  readonly voluntarySwitches: number | null;
  /** How often it had to leave its CPU to another task. */
  readonly involuntarySwitches: number | null;
  /** How often it changed its CPU; null where the kernel has no /proc/PID/task/TID/sched. */
  readonly migrations: number | null;
}

/**
 * What a CPU did, by /proc/interrupts, /proc/softirqs and /proc/stat. Null is what cannot be read
 * here.
 */
export interface CpuCounters {
  /** Interrupts of every kind. */
  readonly interrupts: number | null;
  /** Interrupts of devices: the numbered lines of /proc/interrupts. */
  readonly deviceInterrupts: number | null;
  /** Soft interrupts of every kind. */
  readonly softirqs: number | null;
  /** Nanoseconds that it was not idle, to 10 ms. */
  readonly busyNs: number | null;
  /** Nanoseconds that it was idle, to 10 ms. */
  readonly idleNs: number | null;
  /** Nanoseconds that the hypervisor ran something else on it, to 10 ms. */
  readonly stealNs: number | null;
}

export const THROTTLING_COUNTERS = ['nrThrottled', 'throttledNs'] as const;
/** How CPU quotas stopped cgroups, by cpu.stat. Null is what cannot be read here. */
export interface ThrottlingCounters {
  /** Periods in which a quota was used up. */
  readonly nrThrottled: number | null;
  /** Nanoseconds that threads waited for the next period. */
  readonly throttledNs: number | null;
}

/** `amountOf`: the amount of each counter. */
export function makeCounters<Name extends string>(
  names: readonly Name[],
  amountOf: (name: Name) => number | null,
): Counters<Name> {
  // Object.fromEntries would be ten times as slow.
  const counters = {} as Record<Name, number | null>;
  for (const name of names) counters[name] = amountOf(name);
  return counters;
}

export function zero<Name extends string>(names: readonly Name[]): Counters<Name> {
  return makeCounters(names, () => 0);
}

/**
 * Null if one of the two is unknown. Never below 0: the kernel drops the counts of an interrupt
 * that is freed.
 */
export function difference<Name extends string>(
  names: readonly Name[],
  now: Counters<Name>,
  before: Counters<Name>,
): Counters<Name> {
  return makeCounters(names, (name) => {
    const [a, b] = [now[name], before[name]];
    return a === null || b === null ? null : Math.max(a - b, 0);
  });
}

/** Null if one of them is unknown. */
export function sum<Name extends string>(
  names: readonly Name[],
  all: Iterable<Counters<Name>>,
): Counters<Name> {
  const list = [...all];
  return makeCounters(names, (name) =>
    list.reduce<number | null>(
      (total, { [name]: value }) => (total === null || value === null ? null : total + value),
      0,
    ),
  );
}
