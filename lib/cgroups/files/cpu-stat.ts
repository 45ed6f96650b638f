// CpuStat: what the file cpu.stat of a cgroup counts.

/**
 * v1 reports nanoseconds (`throttled_time`), v2 microseconds (`throttled_usec`). Undefined for a
 * group that does not count throttling.
 */
export function parseCpuStat(
  text: string,
): { readonly nrThrottled: number; readonly throttledNs: number | null } | undefined {
  const value = (name: string) => {
    const digits = new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1];
    return digits === undefined ? undefined : Number(digits);
  };
  const nrThrottled = value('nr_throttled');
  if (nrThrottled === undefined) return undefined;
  const microseconds = value('throttled_usec');
  return {
    nrThrottled,
    throttledNs: microseconds === undefined ? (value('throttled_time') ?? null) : microseconds * 1000,
  };
}
