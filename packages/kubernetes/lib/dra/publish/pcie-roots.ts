// PcieRoots: the roots of the machine's PCIe buses, with the CPUs near them, from sysfs.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CpuSet } from 'numalign';
import type { PcieRoot } from '../devices.js';

/** By their names. What cannot be read is left out: nothing but the attribute depends on it. */
export function readPcieRoots(folder = '/sys/devices'): PcieRoot[] {
  try {
    const roots = readdirSync(folder).filter((name) => /^pci[\da-f]{4,}:[\da-f]{2}$/.test(name));
    return roots.sort().flatMap((root) => {
      const file = join(folder, root, 'pci_bus', root.slice('pci'.length), 'cpulistaffinity');
      const cpus = CpuSet.parse(readFileSync(file, 'utf8').trim());
      return cpus.isEmpty ? [] : [{ root, cpus }];
    });
  } catch {
    return [];
  }
}
