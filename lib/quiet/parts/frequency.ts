// Frequency: CPUs that do not slow down while they are idle. See pm/cpufreq, intel_pstate and
// amd-pstate in the kernel's admin guide.
import { cpusNamed } from '../../base/text/cpus-named.js';
import { CpuSet } from '../../machine/cpu-set.js';
import { type FrequencyPolicy, frequencyPolicies } from '../kernel/cpufreq.js';
import { FileSetting } from '../kernel/file-setting.js';
import type { KernelFiles } from '../kernel/kernel-files.js';
import type { Part, PartDemand, Setting } from '../kernel/setting.js';

const CPUS = '/sys/devices/system/cpu';
const FASTEST = 'performance';
const GOVERNOR = 'scaling_governor';
const GOVERNORS = 'scaling_available_governors';
const LEAST = 'scaling_min_freq';
const PREFERENCE = 'energy_performance_preference';
const PREFERENCES = 'energy_performance_available_preferences';

/** One file of a policy. It is set as soon as one of the policy's CPUs must be quiet. */
class PolicyFile extends FileSetting {
  readonly #cpus: CpuSet;

  constructor(
    files: KernelFiles,
    { folder, cpus }: FrequencyPolicy,
    file: string,
    private readonly fastest: (base: string) => string,
  ) {
    super(files, `${folder}/${file}`, `${file} of ${cpusNamed(cpus)}`);
    this.#cpus = cpus;
  }

  target(base: string, { cpus }: PartDemand): string {
    return this.#cpus.intersects(cpus) ? this.fastest(base) : base;
  }

  disturbs(value: string, demand: PartDemand): CpuSet {
    const isFast = value === this.target(value, demand);
    return isFast ? CpuSet.EMPTY : this.#cpus.intersection(demand.cpus);
  }
}

const offers = (files: KernelFiles, path: string) =>
  files.read(path)?.split(/\s+/).includes(FASTEST) === true;

// While the governor is `performance`, drivers refuse any other preference (EBUSY). So preferences
// are written before the governor, and restored after it.
function settingsOf(files: KernelFiles, policy: FrequencyPolicy, paths: readonly string[]): Setting[] {
  const { folder, cpus } = policy;
  // The values return with the policy's CPUs, so what is on record stays there.
  if (cpus.isEmpty) {
    // A path on record must not lead elsewhere.
    return [PREFERENCE, GOVERNOR, LEAST]
      .filter((file) => paths.includes(`${folder}/${file}`))
      .map((file) => new PolicyFile(files, policy, file, String));
  }
  const performance = () => FASTEST;
  const greatest = files.read(`${folder}/scaling_max_freq`);
  const atLeast = (base: string) => (Number(base) < Number(greatest) ? greatest! : base);
  return [
    ...(offers(files, `${folder}/${PREFERENCES}`)
      ? [new PolicyFile(files, policy, PREFERENCE, performance)]
      : []),
    ...(offers(files, `${folder}/${GOVERNORS}`)
      ? [new PolicyFile(files, policy, GOVERNOR, performance)]
      : []),
    ...(greatest === undefined ? [] : [new PolicyFile(files, policy, LEAST, atLeast)]),
  ];
}

export const frequency: Part = {
  name: 'frequency',

  settings(files, { cpus }, recorded) {
    return frequencyPolicies(files).flatMap((policy) => {
      const paths = recorded.filter((path) => path.startsWith(`${policy.folder}/`));
      return policy.cpus.intersects(cpus) || paths.length > 0 ? settingsOf(files, policy, paths) : [];
    });
  },

  // The folders of policies stay when their CPUs go offline.
  hidden: (files, records) => (files.exists(CPUS) ? [] : records),

  obstacles(files, { cpus }) {
    const policies = frequencyPolicies(files).filter((policy) => policy.cpus.intersects(cpus));
    const governed = policies.reduce((all, policy) => all.union(policy.cpus), CpuSet.EMPTY);
    const free = cpus.difference(governed);
    const slow = policies.filter(({ folder }) => !offers(files, `${folder}/${GOVERNORS}`));
    return [
      ...(free.isEmpty
        ? []
        : [
            `the kernel does not set the frequency of ${cpusNamed(free)} (no cpufreq): set it in the firmware, or on the host of this virtual machine`,
          ]),
      ...slow.map(
        (policy) =>
          `there is no governor \`performance\` for ${cpusNamed(policy.cpus)}: load the module cpufreq_performance`,
      ),
    ];
  },
};
