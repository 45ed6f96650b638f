// What the kernel has of hugepages: /sys/kernel/mm/hugepages, and of one NUMA node below
// /sys/devices/system/node.
import { readdirSync, readFileSync } from 'node:fs';

const POOLS = '/sys/kernel/mm/hugepages';

/** The page sizes of this machine in bytes, ascending. */
export function hugepageSizes(): number[] {
  let names: string[];
  try {
    names = readdirSync(POOLS);
  } catch {
    return []; // a kernel without hugepages
  }
  const sizes = names.flatMap((name) => /^hugepages-(\d+)kB$/.exec(name)?.slice(1) ?? []);
  return sizes.map((kib) => Number(kib) * 1024).sort((a, b) => a - b);
}

/**
 * What a pattern finds of a number in a file of the kernel; undefined where it is not to be had.
 */
export function readNumber(path: string, pattern = /^(\d+)/): number | undefined {
  try {
    const [, number] = pattern.exec(readFileSync(path, 'utf8')) ?? [];
    return number === undefined ? undefined : Number(number);
  } catch {
    return undefined;
  }
}

function countPages(bytes: number, pools: string, which: 'free' | 'resv'): number | undefined {
  return readNumber(`${pools}/hugepages-${bytes / 1024}kB/${which}_hugepages`);
}

/**
 * How many pages of so many bytes are free, on a NUMA node or in all; undefined where the kernel
 * does not tell. Those that mappings have reserved and not touched are among them.
 */
export function countFreeHugepages(bytes: number, node?: number): number | undefined {
  const pools = node === undefined ? POOLS : `/sys/devices/system/node/node${node}/hugepages`;
  return countPages(bytes, pools, 'free');
}

/**
 * How many are free in all and reserved by no mapping. Of a single node the kernel does not know it.
 */
export function countUnreservedHugepages(bytes: number): number | undefined {
  const free = countFreeHugepages(bytes);
  const reserved = countPages(bytes, POOLS, 'resv');
  // More can be reserved than is free, where the pool may grow.
  return free === undefined || reserved === undefined ? undefined : Math.max(0, free - reserved);
}
