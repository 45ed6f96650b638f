// CpuStat: what the file cpu.stat of a cgroup counts.

/** How often and how long a quota stopped the threads of a cgroup. */
export interface Throttling {
  /** Periods in which the threads used up the quota (`nr_throttled` of cpu.stat). */
  nrThrottled: number;
  /** How long threads waited for the next period, in microseconds, summed over CPUs. */
  throttledUs: number;
}

/**
 * v1 reports nanoseconds (`throttled_time`), v2 microseconds (`throttled_usec`). Undefined for a
 * group that does not count throttling.
 */
export function parseCpuStat(
  text: string,
): { readonly nrThrottled: number; readonly throttledNs: number | null } | undefined {
  const lines = text.split('\n');
  const value = (name: string) => {
    const line = lines.find((each) => each.startsWith(`${name} `));
    const count = Number(line?.slice(name.length + 1) || undefined);
    return Number.isInteger(count) && count >= 0 ? count : undefined;
  };
  const nrThrottled = value('nr_throttled');
  if (nrThrottled === undefined) return undefined;
  const microseconds = value('throttled_usec');
  return {
    nrThrottled,
    throttledNs: microseconds === undefined ? (value('throttled_time') ?? null) : microseconds * 1000,
  };
}

/** The throttling in a cpu.stat; null if it has none. */
export function throttling(text: string | undefined): Throttling | null {
  const found = parseCpuStat(text ?? '');
  return found
    ? { nrThrottled: found.nrThrottled, throttledUs: Math.round((found.throttledNs ?? 0) / 1000) }
    : null;
}
