// The memory nodes of a cgroup, read from its files. Changes nothing.
import { join } from 'node:path';
import { NodeSet } from '../../machine/cpu-set.js';
import { readIfThere } from './cgroup-files.js';
import { isLinuxFrom } from './linux-version.js';

export interface MemoryNodes {
  /** The nodes that its processes can get memory from. */
  readonly effective: NodeSet;
  /**
   * True if pages move with processes that come in, and when the nodes change. With cgroup v1, a
   * file of the cgroup decides; with v2, Linux 5.15 and newer always move them.
   */
  readonly migrates: boolean;
}

/** Undefined if the cgroup does not exist. Throws the kernel's error for a hidden one. */
export function readMemoryNodes(folder: string): MemoryNodes | undefined {
  const read = (file: string) => readIfThere(join(folder, `cpuset.${file}`))?.trim();
  const v1 = read('effective_mems');
  const effective = v1 ?? read('mems.effective');
  if (effective === undefined) return undefined;
  const migrates = v1 === undefined ? isLinuxFrom(5, 15) : read('memory_migrate') === '1';
  return { effective: NodeSet.parse(effective), migrates };
}
