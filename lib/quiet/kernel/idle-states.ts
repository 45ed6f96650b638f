// Idle states of a CPU, as the kernel's sysfs-devices-system-cpu describes them.
import type { KernelFiles } from './kernel-files.js';

/**
 * The wake-up times, in µs, of the states that a CPU may use. Undefined if it has no states: it
 * does not sleep, or the firmware or the host decides.
 */
export function idleLatencies(files: KernelFiles, cpu: number): readonly number[] | undefined {
  const folder = `/sys/devices/system/cpu/cpu${cpu}/cpuidle`;
  const states = files.list(folder).filter((name) => /^state\d+$/.test(name));
  if (states.length === 0) return undefined;
  return states
    .filter((state) => (files.read(`${folder}/${state}/disable`) ?? '0') === '0')
    .map((state) => Number(files.read(`${folder}/${state}/latency`) ?? 0));
}
