// needs: nothing
import { expect, it } from 'vitest';
import { frequencyPolicies } from '../../../lib/quiet/kernel/cpufreq.js';
import { kernelTree } from '../../support/kernel-tree.js';

const CPUFREQ = '/sys/devices/system/cpu/cpufreq';
const POLICY = { [`${CPUFREQ}/policy0/affected_cpus`]: '0 2\n' };

const policies = (files: Record<string, string>, unreadable: Record<string, string> = {}) =>
  frequencyPolicies(kernelTree(files, {}, unreadable)).map(({ folder, cpus }) => [folder, String(cpus)]);

it('a frequency policy has its online CPUs', () => {
  const more = { [`${CPUFREQ}/policy12/affected_cpus`]: '12\n' };
  expect(policies({ ...POLICY, ...more })).toEqual([
    [`${CPUFREQ}/policy0`, '0,2'],
    [`${CPUFREQ}/policy12`, '12'],
  ]);
});

it('a driver’s folder beside the policies is none', () => {
  expect(policies({ [`${CPUFREQ}/ondemand/up_threshold`]: '95\n', ...POLICY })).toHaveLength(1);
});

it('a policy has no CPU while it is inactive, and its error if it cannot be read', () => {
  const path = `${CPUFREQ}/policy0/affected_cpus`;
  expect(policies(POLICY, { [path]: 'EBUSY' })).toEqual([[`${CPUFREQ}/policy0`, '']]);
  expect(() => policies(POLICY, { [path]: 'EACCES' })).toThrow('EACCES');
});

it('there is no policy without cpufreq', () => {
  expect(policies({})).toEqual([]);
});
