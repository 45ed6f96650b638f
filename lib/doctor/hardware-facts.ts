// Reads what the kernel says of governors, interrupts and hugepages.
import { join } from 'node:path';
import { textOf } from '../base/text/text-of.js';
import { CpuSet } from '../machine/cpu-set.js';
import { countFreeHugepages, hugepageSizes } from '../machine/hugepages.js';
import type { Topology } from '../machine/topology.js';
import { frequencyPolicies } from '../quiet/kernel/cpufreq.js';
import { kernelFiles } from '../quiet/kernel/kernel-files.js';
import type { GovernorFacts, HugepageFacts, InterruptFacts } from './facts.js';
import { parseInterrupts } from './interrupts.js';

// null where there is no cpufreq: the firmware or the host decides.
export function readGovernors(): readonly GovernorFacts[] | null {
  const governors = frequencyPolicies(kernelFiles()).flatMap(({ folder, cpus }): GovernorFacts[] => {
    const governor = textOf(join(folder, 'scaling_governor'))?.trim();
    return governor ? [{ governor, cpus }] : [];
  });
  return governors.length > 0 ? governors : null;
}

/** null where the kernel does not say. */
export function readInterrupts(): readonly InterruptFacts[] | null {
  const rows = parseInterrupts(textOf('/proc/interrupts') ?? '');
  if (!rows) return null;
  // There can be thousands that never come.
  return rows.flatMap((row): InterruptFacts[] => {
    if (row.counts.size === 0) return [];
    const list = textOf(`/proc/irq/${row.irq}/smp_affinity_list`)?.trim();
    return list === undefined ? [] : [{ ...row, cpus: CpuSet.parse(list) }];
  });
}

/** By size: all that were configured, and those that are free now. */
export function readHugepages({ nodes }: Topology): HugepageFacts[] {
  return hugepageSizes().map((bytes) => {
    const counts = nodes.flatMap(({ hugepages }) => hugepages.filter((pool) => pool.bytes === bytes));
    const total = counts.reduce((sum, { count }) => sum + count, 0);
    return { bytes, total, free: countFreeHugepages(bytes) ?? null };
  });
}
