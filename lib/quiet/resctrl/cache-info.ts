// CacheInfo: what resctrl's `info` folder says about the machine's L3 caches.
import type { KernelFiles } from '../kernel/kernel-files.js';

export const RESCTRL = '/sys/fs/resctrl';
const INFO = `${RESCTRL}/info`;

export interface CacheInfo {
  /** A mask of every way: `cbm_mask`. */
  readonly all: number;
  /** The fewest ways that a mask may have: `min_cbm_bits`. */
  readonly minBits: number;
  /** Ways that other hardware also uses: `shareable_bits`. */
  readonly shareable: number;
}

const number = (text: string | undefined, radix: number) => Number.parseInt(text ?? '', radix);

export const isMounted = (files: KernelFiles): boolean => files.exists(INFO);

/** Undefined if the L3 caches cannot be allotted here. */
export function readCacheInfo(files: KernelFiles): CacheInfo | undefined {
  // Code and data have the same values if they are apart.
  const resource = ['L3', 'L3CODE', 'L3DATA'].find((name) => files.exists(`${INFO}/${name}/cbm_mask`));
  const read = (file: string) => files.read(`${INFO}/${resource}/${file}`);
  const all = number(read('cbm_mask'), 16);
  if (!(all > 0)) return undefined;
  return {
    all,
    minBits: number(read('min_cbm_bits'), 10) || 1,
    shareable: number(read('shareable_bits'), 16) || 0,
  };
}

/** The most groups that can exist, with the default one: the least `num_closids`. */
export function readMostGroups(files: KernelFiles): number {
  const counts = files.list(INFO).map((name) => number(files.read(`${INFO}/${name}/num_closids`), 10));
  return Math.min(...counts.filter((count) => count > 0));
}

/** The id of each CPU's L3 cache, as resctrl numbers it; no entry if the kernel gives none. */
export function readCacheIds(files: KernelFiles, cpus: Iterable<number>): ReadonlyMap<number, number> {
  const ids = new Map<number, number>();
  for (const cpu of cpus) {
    const folder = `/sys/devices/system/cpu/cpu${cpu}/cache`;
    const index = files.list(folder).find((name) => files.read(`${folder}/${name}/level`) === '3');
    const id = index === undefined ? Number.NaN : number(files.read(`${folder}/${index}/id`), 10);
    if (id >= 0) ids.set(cpu, id);
  }
  return ids;
}
