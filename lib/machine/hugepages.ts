// The kernel's hugepages: /sys/kernel/mm/hugepages, and per NUMA node below
// /sys/devices/system/node.
import { readdirSync } from 'node:fs';
import { textOf, unlessClosed } from '../base/errors.js';

const POOLS = '/sys/kernel/mm/hugepages';

/** The page sizes of this machine in bytes, ascending. */
export function hugepageSizes(): number[] {
  // None: the kernel has no hugepages.
  const names = unlessClosed(() => readdirSync(POOLS), []);
  const sizes = names.flatMap((name) => /^hugepages-(\d+)kB$/.exec(name)?.slice(1) ?? []);
  return sizes.map((kib) => Number(kib) * 1024).sort((a, b) => a - b);
}

/** Reads a number from a kernel file by a pattern; undefined if it is not there. */
export function readNumber(path: string, pattern = /^(\d+)/): number | undefined {
  const [, number] = pattern.exec(textOf(path) ?? '') ?? [];
  return number === undefined ? undefined : Number(number);
}

function countPages(bytes: number, pools: string, which: 'free' | 'resv'): number | undefined {
  return readNumber(`${pools}/hugepages-${bytes / 1024}kB/${which}_hugepages`);
}

/**
 * The free pages of `bytes` each, on a NUMA node or in all; undefined if the kernel does not show
 * them. Counts pages that mappings have reserved but not touched.
 */
export function countFreeHugepages(bytes: number, node?: number): number | undefined {
  const pools = node === undefined ? POOLS : `/sys/devices/system/node/node${node}/hugepages`;
  return countPages(bytes, pools, 'free');
}

/**
 * The free pages that no mapping has reserved. The kernel knows this only for all nodes together.
 */
export function countUnreservedHugepages(bytes: number): number | undefined {
  const free = countFreeHugepages(bytes);
  const reserved = countPages(bytes, POOLS, 'resv');
  // With a growing pool, more can be reserved than is free.
  return free === undefined || reserved === undefined ? undefined : Math.max(0, free - reserved);
}
