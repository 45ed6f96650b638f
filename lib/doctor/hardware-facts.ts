// HardwareFacts: reads the kernel's governors, idle states, interrupts, packet steering and
// hugepages.
import { textOf } from '../base/errors.js';
import { CpuSet } from '../machine/cpu-set.js';
import { countFreeHugepages, hugepageSizes } from '../machine/hugepages.js';
import type { Topology } from '../machine/topology.js';
import { parseCpuMask } from '../quiet/kernel/cpu-mask.js';
import { frequencyPolicies } from '../quiet/kernel/cpufreq.js';
import { idleLatencies } from '../quiet/kernel/idle-states.js';
import type { KernelFiles } from '../quiet/kernel/kernel-files.js';
import { networkQueues } from '../quiet/kernel/network-queues.js';
import type { GovernorFacts, HugepageFacts, InterruptFacts, SteeringFacts } from './facts.js';

// Null without cpufreq: the firmware or the host decides.
export function readGovernors(files: KernelFiles): readonly GovernorFacts[] | null {
  const governors = frequencyPolicies(files).flatMap(({ folder, cpus }): GovernorFacts[] => {
    const governor = files.read(`${folder}/scaling_governor`);
    return governor && !cpus.isEmpty ? [{ governor, cpus }] : [];
  });
  return governors.length > 0 ? governors : null;
}

/** Null without cpuidle. */
export function readIdleLatency(files: KernelFiles): number | null {
  const cpus = files.list('/sys/devices/system/cpu').flatMap((name) => /^cpu(\d+)$/.exec(name)?.[1] ?? []);
  const latencies = cpus
    .map((cpu) => idleLatencies(files, Number(cpu)))
    .filter((found) => found !== undefined);
  return latencies.length === 0 ? null : Math.max(0, ...latencies.flat());
}

/** Queues whose packets go to other CPUs (RPS). */
export function readSteering(files: KernelFiles): readonly SteeringFacts[] {
  return networkQueues(files, 'rx').flatMap(({ path, device, name }): SteeringFacts[] => {
    const cpus = parseCpuMask(files.read(`${path}/rps_cpus`) ?? '');
    return cpus && !cpus.isEmpty ? [{ queue: `${device}/${name}`, cpus }] : [];
  });
}

/** Null if the kernel does not report them. */
export function readInterrupts(): readonly InterruptFacts[] | null {
  const rows = parseInterrupts(textOf('/proc/interrupts') ?? '');
  if (!rows) return null;
  // There can be thousands that never arrive.
  return rows.flatMap((row): InterruptFacts[] => {
    if (row.counts.size === 0) return [];
    const list = textOf(`/proc/irq/${row.irq}/smp_affinity_list`)?.trim();
    return list === undefined ? [] : [{ ...row, cpus: CpuSet.parse(list) }];
  });
}

/** All configured hugepages by size, and those that are free now. */
export function readHugepages({ nodes }: Topology): HugepageFacts[] {
  return hugepageSizes().map((bytes) => {
    const counts = nodes.flatMap(({ hugepages }) => hugepages.filter((pool) => pool.bytes === bytes));
    const total = counts.reduce((sum, { count }) => sum + count, 0);
    return { bytes, total, free: countFreeHugepages(bytes) ?? null };
  });
}

export type InterruptRow = Omit<InterruptFacts, 'cpus'>;

/**
 * The rows of devices; undefined for a text of another form, such as the empty one that some
 * containers see.
 */
export function parseInterrupts(text: string): InterruptRow[] | undefined {
  const [head, ...lines] = text.split('\n');
  const cpus = head!.match(/\bCPU\d+\b/g)?.map((name) => Number(name.slice('CPU'.length)));
  if (!cpus) return undefined;
  return lines.flatMap((line) => {
    // Rows with a name instead of a number are the kernel's own.
    const [, irq, rest] = /^ *(\d+):(.*)$/.exec(line) ?? [];
    if (irq === undefined) return [];
    const words = rest!.trim().split(/ +/);
    const counts = new Map(
      cpus.map((cpu, i) => [cpu, Number(words[i])] as const).filter(([, count]) => count > 0),
    );
    return [{ irq: Number(irq), name: rest!.trim().split(/ {2,}/).at(-1)!, counts }];
  });
}
