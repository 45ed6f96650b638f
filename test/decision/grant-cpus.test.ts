// needs: machine
import { expect, it } from 'vitest';
import { cpusOfGrants } from '../../lib/decision/grant-info.js';
import { CpuSet } from '../../lib/machine/cpu-set.js';

const cpus = (list: string) => CpuSet.parse(list);

it('the CPUs of grants include those that a change brings, and those that it leaves', () => {
  const settled = { cpus: cpus('0'), upcoming: null, former: null };
  const announced = { cpus: cpus('1'), upcoming: cpus('2-3'), former: null };
  const begun = { cpus: cpus('4'), upcoming: cpus('4'), former: cpus('6') };
  expect(String(cpusOfGrants([settled, announced, begun]))).toBe('0-4,6');
  expect(cpusOfGrants([]).isEmpty).toBe(true);
});
