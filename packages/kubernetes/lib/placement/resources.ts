// Resources: what a runtime reports about a container's resources -> amounts in Kubernetes' terms.
// Pure.
import type { LinuxResources } from '../nri/messages.js';

/** Amounts of a container; undefined: no limit is known. */
export interface Amounts {
  /** From its share of CPU time. */
  readonly requestMillis: number | undefined;
  /** From its quota. */
  readonly limitMillis: number | undefined;
  readonly memoryBytes: number | undefined;
  /** Bytes by resource, such as hugepages-2Mi. */
  readonly hugepages: Readonly<Record<string, number>>;
}

// The kubelet's computation: MilliCPUToShares in pkg/kubelet/cm.
const SHARES_PER_CPU = 1024;
const MILLI = 1000;
// Runtimes write no limit as 0, -1, or a number near 2^63.
const UNLIMITED_BYTES = 2 ** 60;
const UNITS: Readonly<Record<string, string>> = { KB: 'Ki', MB: 'Mi', GB: 'Gi' };

export function amountsOf(resources: LinuxResources | null | undefined): Amounts {
  const { cpu, memory, hugepage_limits = [] } = resources ?? {};
  const shares = cpu?.shares?.value ?? 0;
  const quota = cpu?.quota?.value ?? 0;
  const period = cpu?.period?.value ?? 0;
  const limit = Number(memory?.limit?.value ?? 0);
  return {
    requestMillis: shares > 0 ? Math.ceil((Number(shares) * MILLI) / SHARES_PER_CPU) : undefined,
    limitMillis: quota > 0 && period > 0 ? Math.round((Number(quota) * MILLI) / Number(period)) : undefined,
    memoryBytes: limit > 0 && limit < UNLIMITED_BYTES ? limit : undefined,
    hugepages: Object.fromEntries(
      hugepage_limits.flatMap(({ page_size, limit: bytes }) => {
        const match = /^([0-9]+)([KMG]B)$/.exec(page_size);
        return match && Number(bytes) > 0
          ? [[`hugepages-${match[1]}${UNITS[match[2]!]}`, Number(bytes)]]
          : [];
      }),
    ),
  };
}
