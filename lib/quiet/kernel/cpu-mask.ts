// CPU masks as the kernel's files write them: hexadecimal words of 32 bits, the highest first, such
// as `ff,ffffffff`. Pure.
import { CpuSet } from '../../machine/cpu-set.js';

const WORD_DIGITS = 8;

/** Null for anything else. */
export function parseCpuMask(text: string): CpuSet | null {
  const digits = text.trim().replaceAll(',', '');
  if (!/^[0-9a-f]+$/i.test(digits)) return null;
  const bits = [...BigInt(`0x${digits}`).toString(2)].reverse();
  return CpuSet.from(bits.flatMap((bit, cpu) => (bit === '1' ? [cpu] : [])));
}

export function cpuMask(cpus: CpuSet): string {
  const mask = [...cpus].reduce((sum, cpu) => sum | (1n << BigInt(cpu)), 0n).toString(16);
  return mask.replace(new RegExp(`\\B(?=(.{${WORD_DIGITS}})+$)`, 'g'), ',');
}
