// Frequency policies: CPUs that have one frequency, as cpufreq in the kernel's admin guide has them.
import { CpuSet } from '../../machine/cpu-set.js';
import type { KernelFiles } from './kernel-files.js';

const CPUFREQ = '/sys/devices/system/cpu/cpufreq';

export interface FrequencyPolicy {
  readonly folder: string;
  /** Those that are online. */
  readonly cpus: CpuSet;
}

/** None where there is no cpufreq: the firmware or the host decides. */
export function frequencyPolicies(files: KernelFiles): FrequencyPolicy[] {
  return files.list(CPUFREQ).flatMap((name) => {
    const folder = `${CPUFREQ}/${name}`;
    // Drivers put folders of their own beside the policies.
    const cpus = /^policy\d+$/.test(name) ? files.read(`${folder}/affected_cpus`) : undefined;
    return cpus ? [{ folder, cpus: CpuSet.parse(cpus.replaceAll(' ', ',')) }] : [];
  });
}
