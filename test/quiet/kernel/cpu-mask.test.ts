// needs: nothing
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CpuSet } from '../../../lib/machine/cpu-set.js';
import { cpuMask, parseCpuMask } from '../../../lib/quiet/kernel/cpu-mask.js';

describe('a mask of CPUs', () => {
  it.each([
    ['3\n', '0-1'],
    ['ff,ffff0000', '16-39'],
    ['00000000,00000000', ''],
    ['80000000,00000000,00000001', '0,95'],
  ])('is read in the kernel’s form: %j', (text, list) => {
    expect(String(parseCpuMask(text))).toBe(list);
  });

  it('is null if there is none', () => {
    expect(parseCpuMask('')).toBeNull();
    expect(parseCpuMask('0-3')).toBeNull();
  });

  it('is written in words of 32 bits, in the kernel’s form', () => {
    expect(cpuMask(CpuSet.parse('0-1'))).toBe('3');
    expect(cpuMask(CpuSet.parse('0,95'))).toBe('80000000,00000000,00000001');
    expect(cpuMask(CpuSet.EMPTY)).toBe('0');
  });

  it('is read as it was written', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.nat(600)), (ids) => {
        const cpus = CpuSet.from(ids);
        expect(String(parseCpuMask(cpuMask(cpus)))).toBe(String(cpus));
      }),
    );
  });
});
