// Reads what the kernel says of governors, idle states, interrupts, packets and hugepages.
import { textOf } from '../base/text/text-of.js';
import { CpuSet } from '../machine/cpu-set.js';
import { countFreeHugepages, hugepageSizes } from '../machine/hugepages.js';
import type { Topology } from '../machine/topology.js';
import { parseCpuMask } from '../quiet/kernel/cpu-mask.js';
import { frequencyPolicies } from '../quiet/kernel/cpufreq.js';
import type { KernelFiles } from '../quiet/kernel/kernel-files.js';
import type { GovernorFacts, HugepageFacts, InterruptFacts, SteeringFacts } from './facts.js';
import { parseInterrupts } from './interrupts.js';

// null where there is no cpufreq: the firmware or the host decides.
export function readGovernors(files: KernelFiles): readonly GovernorFacts[] | null {
  const governors = frequencyPolicies(files).flatMap(({ folder, cpus }): GovernorFacts[] => {
    const governor = files.read(`${folder}/scaling_governor`);
    return governor && !cpus.isEmpty ? [{ governor, cpus }] : [];
  });
  return governors.length > 0 ? governors : null;
}

const CPUS = '/sys/devices/system/cpu';

/** null where there is no cpuidle. Documentation/ABI/testing/sysfs-devices-system-cpu */
export function readIdleLatency(files: KernelFiles): number | null {
  const states = files
    .list(CPUS)
    .filter((name) => /^cpu\d+$/.test(name))
    .flatMap((cpu) => files.list(`${CPUS}/${cpu}/cpuidle`).map((state) => `${CPUS}/${cpu}/cpuidle/${state}`));
  const latencies = states
    .filter((state) => files.read(`${state}/disable`) === '0')
    .map((state) => Number(files.read(`${state}/latency`)));
  return states.length === 0 ? null : Math.max(0, ...latencies);
}

const NETWORK = '/sys/class/net';

/** Queues whose packets go to other CPUs. Documentation/networking/scaling.rst */
export function readSteering(files: KernelFiles): readonly SteeringFacts[] {
  const queues = files
    .list(NETWORK)
    .flatMap((name) => files.list(`${NETWORK}/${name}/queues`).map((queue) => [name, queue] as const));
  return queues.flatMap(([name, queue]): SteeringFacts[] => {
    const cpus = parseCpuMask(files.read(`${NETWORK}/${name}/queues/${queue}/rps_cpus`) ?? '');
    return cpus && !cpus.isEmpty ? [{ queue: `${name}/${queue}`, cpus }] : [];
  });
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
