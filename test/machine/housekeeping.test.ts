// needs: nothing
// The CPUs that take over work from quiet ones.
import { expect, it } from 'vitest';
import { discover } from '../../lib/entries/topology.js';
import { CpuSet } from '../../lib/index.js';
import { housekeepingCpus } from '../../lib/machine/online-cpus.js';

const topology = await discover({ synthetic: 'package:2 [numa(memory=8GiB)] core:2 pu:1' });
const housekeeping = (base: string, quiet: string) =>
  String(housekeepingCpus(topology, CpuSet.parse(base), CpuSet.parse(quiet)));

it('are those of the base that are not quiet', () => {
  expect(housekeeping('0,2-3', '2')).toBe('0,3');
});

it('are others of its NUMA nodes if all of the base is quiet', () => {
  expect(housekeeping('3', '3')).toBe('2');
});

it('are those of another node if all of its node is quiet', () => {
  expect(housekeeping('0', '0-1')).toBe('2-3');
});

it('are none if every CPU is quiet', () => {
  expect(housekeeping('0', '0-3')).toBe('');
});
