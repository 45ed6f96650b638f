// Frequency policies: CPUs that share one frequency, as cpufreq in the kernel's admin guide
// describes them.
import { hasCode, unless } from '../../base/errors.js';
import { CpuSet } from '../../machine/cpu-set.js';
import type { KernelFiles } from './kernel-files.js';

const CPUFREQ = '/sys/devices/system/cpu/cpufreq';

export interface FrequencyPolicy {
  readonly folder: string;
  /** The policy's online CPUs; empty: the policy is inactive, and its files cannot be read. */
  readonly cpus: CpuSet;
}

/** Empty without cpufreq: the firmware or the host decides. */
export function frequencyPolicies(files: KernelFiles): FrequencyPolicy[] {
  return files.list(CPUFREQ).flatMap((name) => {
    const folder = `${CPUFREQ}/${name}`;
    // Drivers put their own folders next to the policies.
    const cpus = /^policy\d+$/.test(name) ? affectedCpus(files, folder) : undefined;
    return cpus === undefined ? [] : [{ folder, cpus: CpuSet.parse(cpus.replaceAll(' ', ',')) }];
  });
}

const affectedCpus = (files: KernelFiles, folder: string): string | undefined =>
  unless(hasCode('EBUSY'), () => files.read(`${folder}/affected_cpus`), '');
