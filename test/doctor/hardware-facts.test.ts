// needs: nothing
import { describe, expect, it } from 'vitest';
import { readGovernors, readIdleLatency, readSteering } from '../../lib/doctor/hardware-facts.js';
import { kernelTree } from '../support/kernel-tree.js';

const SYSTEM = '/sys/devices/system/cpu';
const state = (cpu: number, name: string, latency: number, disable: 0 | 1 = 0) => ({
  [`${SYSTEM}/cpu${cpu}/cpuidle/${name}/latency`]: `${latency}\n`,
  [`${SYSTEM}/cpu${cpu}/cpuidle/${name}/disable`]: `${disable}\n`,
});

describe('the latency of idle states', () => {
  it('is that of the deepest enabled state on any CPU', () => {
    const files = kernelTree({
      ...state(0, 'state0', 0),
      ...state(0, 'state1', 2),
      ...state(0, 'state2', 600, 1),
      ...state(1, 'state1', 2),
      ...state(1, 'state2', 133),
      [`${SYSTEM}/cpuidle/current_driver`]: 'intel_idle\n',
    });
    expect(readIdleLatency(files)).toBe(133);
  });

  it('is 0 if all are disabled, and unknown without cpuidle', () => {
    expect(readIdleLatency(kernelTree(state(0, 'state1', 2, 1)))).toBe(0);
    expect(readIdleLatency(kernelTree({ [`${SYSTEM}/cpu0/online`]: '1' }))).toBeNull();
  });
});

describe('steered packets', () => {
  it('are those of queues with CPUs in their mask', () => {
    const queues = '/sys/class/net/eth0/queues';
    const files = kernelTree({
      [`${queues}/rx-0/rps_cpus`]: '00000000,0000000f\n',
      [`${queues}/rx-1/rps_cpus`]: '0\n',
      [`${queues}/tx-0/xps_cpus`]: 'ff\n',
      '/sys/class/net/lo/mtu': '65536\n',
    });
    const found = readSteering(files).map(({ queue, cpus }) => [queue, `${cpus}`]);
    expect(found).toEqual([['eth0/rx-0', '0-3']]);
  });
});

describe('governors', () => {
  it('are listed by the CPUs of their policies, and unknown without any', () => {
    const policy = `${SYSTEM}/cpufreq/policy2`;
    const files = kernelTree({
      [`${policy}/affected_cpus`]: '2 3\n',
      [`${policy}/scaling_governor`]: 'powersave\n',
    });
    expect(readGovernors(files)!.map(({ governor, cpus }) => [governor, `${cpus}`])).toEqual([
      ['powersave', '2-3'],
    ]);
    expect(readGovernors(kernelTree({}))).toBeNull();
  });

  it('leave out a policy whose CPUs are all offline', () => {
    const policy = `${SYSTEM}/cpufreq/policy2`;
    const offline = { [`${policy}/affected_cpus`]: '\n', [`${policy}/scaling_governor`]: 'powersave\n' };
    expect(readGovernors(kernelTree(offline))).toBeNull();
  });
});
