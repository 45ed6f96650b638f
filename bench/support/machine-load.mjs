// Who uses the CPUs, as the kernel counts it, in hundredths of a second.
import { readFileSync } from 'node:fs';

/**
 * How long a CPU (all of them without a number) was used, or was taken by the hypervisor; in
 * nanoseconds since boot.
 */
export function cpuTime(cpu = '') {
  const line = readFileSync('/proc/stat', 'utf8')
    .split('\n')
    .find((each) => each.startsWith(`cpu${cpu} `));
  const [user, nice, system, , , irq, softirq, steal] = line.trim().split(/\s+/).slice(1).map(Number);
  return { busyNs: (user + nice + system + irq + softirq) * 1e7, stolenNs: steal * 1e7 };
}

/** The CPU time of this process and of its ended children, in nanoseconds. */
export function ownTime() {
  const stat = readFileSync('/proc/self/stat', 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) * 1e7, 0);
}
