// Counters: figures that only grow; null if they cannot be read here. Pure.

/** Null if it cannot be read here; never 0 instead. */
export type Counters<Name extends string> = Readonly<Record<Name, number | null>>;

export const THREAD_COUNTERS = [
  'runTimeNs',
  'runDelayNs',
  'timeslices',
  'voluntarySwitches',
  'involuntarySwitches',
  'migrations',
] as const;
export type ThreadCounters = Counters<(typeof THREAD_COUNTERS)[number]>;

export const CPU_COUNTERS = [
  'interrupts',
  'deviceInterrupts',
  'softirqs',
  'busyNs',
  'idleNs',
  'stealNs',
] as const;
export type CpuCounters = Counters<(typeof CPU_COUNTERS)[number]>;

export const THROTTLING_COUNTERS = ['nrThrottled', 'throttledNs'] as const;
export type ThrottlingCounters = Counters<(typeof THROTTLING_COUNTERS)[number]>;

function makeCounters<Name extends string>(
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
