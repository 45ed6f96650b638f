// Idle: how deeply a CPU may sleep. See the kernel's sysfs-devices-power and pm/cpuidle.

import { cpusNamed } from '../../base/text/cpus-named.js';
import { CpuSet } from '../../machine/cpu-set.js';
import { FileSetting } from '../kernel/file-setting.js';
import { idleLatencies } from '../kernel/idle-states.js';
import type { KernelFiles } from '../kernel/kernel-files.js';
import type { Part, PartDemand } from '../kernel/setting.js';

const CPUS = '/sys/devices/system/cpu';
const FILE = 'power/pm_qos_resume_latency_us';
const pathOf = (cpu: number) => `${CPUS}/cpu${cpu}/${FILE}`;

// In the file, 0 means no limit, and n/a a limit of 0 µs.
const NO_LIMIT = '0';
const NO_LATENCY = 'n/a';
// The kernel uses the greatest 32-bit integer for no limit.
const MOST = 2 ** 31 - 2;

function limitOf(value: string): number {
  if (value === NO_LATENCY) return 0;
  return value === NO_LIMIT ? Number.POSITIVE_INFINITY : Number(value);
}

function limitText(limit: number): string {
  if (limit === Number.POSITIVE_INFINITY) return NO_LIMIT;
  return limit < 1 ? NO_LATENCY : String(Math.min(Math.floor(limit), MOST));
}

/** The least latency that grants allow on a CPU, in µs; infinity without a demand. */
function demandOn(cpu: number, { demands }: PartDemand): number {
  return Math.min(
    ...demands.filter(({ cpus }) => cpus.has(cpu)).map(({ request }) => request.idle!.maxLatency),
  );
}

class ResumeLatency extends FileSetting {
  constructor(
    files: KernelFiles,
    private readonly cpu: number,
  ) {
    super(files, pathOf(cpu), `idle states of CPU ${cpu}`);
  }

  target(base: string, demand: PartDemand): string {
    return limitText(Math.min(limitOf(base), demandOn(this.cpu, demand)));
  }

  disturbs(value: string, demand: PartDemand): CpuSet {
    const [demanded, allowed] = [demandOn(this.cpu, demand), limitOf(value)];
    const latencies = idleLatencies(this.files, this.cpu) ?? [];
    const isDisturbed = latencies.some((latency) => latency > demanded && latency <= allowed);
    return isDisturbed ? CpuSet.of(this.cpu) : CpuSet.EMPTY;
  }
}

function cpusOfPaths(paths: readonly string[]): CpuSet {
  const ids = paths.map((path) => /\/cpu(\d+)\/power\//.exec(path)?.[1]);
  return CpuSet.from(ids.filter((id) => id !== undefined).map(Number));
}

export const idle: Part = {
  name: 'idle',

  settings(files, { cpus }, paths) {
    const all = cpus.union(cpusOfPaths(paths));
    return [...all].filter((cpu) => files.exists(pathOf(cpu))).map((cpu) => new ResumeLatency(files, cpu));
  },

  hidden: (files, records) => (files.exists(CPUS) ? [] : records),

  obstacles(files, demand) {
    const deep = [...demand.cpus].filter(
      (cpu) =>
        !files.exists(pathOf(cpu)) &&
        (idleLatencies(files, cpu) ?? []).some((latency) => latency > demandOn(cpu, demand)),
    );
    if (deep.length === 0) return [];
    return [
      `the kernel has no ${FILE} of ${cpusNamed(CpuSet.from(deep))}: write 1 to \`disable\` of their deeper states in ${CPUS}/cpu*/cpuidle`,
    ];
  },
};
