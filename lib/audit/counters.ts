// Counters: figures that only grow, some of which cannot be read here (null). Pure.

/** null: it cannot be read here. Never 0 instead. */
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

function made<Name extends string>(
  names: readonly Name[],
  amountOf: (name: Name) => number | null,
): Counters<Name> {
  // Not by Object.fromEntries, which is ten times as slow.
  const counters = {} as Record<Name, number | null>;
  for (const name of names) counters[name] = amountOf(name);
  return counters;
}

export function zero<Name extends string>(names: readonly Name[]): Counters<Name> {
  return made(names, () => 0);
}

/**
 * null where one of the two is not known. Not below 0: the kernel drops the counts of an interrupt
 * that is given up.
 */
export function difference<Name extends string>(
  names: readonly Name[],
  now: Counters<Name>,
  before: Counters<Name>,
): Counters<Name> {
  return made(names, (name) => {
    const [a, b] = [now[name], before[name]];
    return a === null || b === null ? null : Math.max(a - b, 0);
  });
}

/** null where one of them is not known. */
export function sum<Name extends string>(
  names: readonly Name[],
  all: Iterable<Counters<Name>>,
): Counters<Name> {
  const list = [...all];
  return made(names, (name) =>
    list.reduce<number | null>(
      (total, { [name]: value }) => (total === null || value === null ? null : total + value),
      0,
    ),
  );
}
