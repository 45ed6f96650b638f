// The settings and pools of a state in words. Pure.
import { cpusOrNone, memoryText } from '@numalign/page/words';
import type { CpuSet, MemoryTable } from 'numalign';
import type { SettingsStatus } from 'numalign/diagnostics';
import type { FeatureGates, KubeletVersion } from 'numalign/kubelet';
import { DEFAULT_GATES, FEATURE_GATES } from 'numalign/tools';
import { printable } from '../terminal/text.js';

function reservedMemoryText(reserved: SettingsStatus['reservedMemory']): string {
  const blocks = Object.entries(reserved).flatMap(([node, types]) =>
    Object.entries(types).map(([type, bytes]) => ({ nodes: [Number(node)], type, bytes })),
  );
  return memoryText(blocks);
}

/** Free memory by NUMA node, for the types that the machine has. */
export function freeMemoryText(tables: readonly MemoryTable[]): string {
  const existing = tables.filter(({ total }) => total > 0);
  return memoryText(existing.map(({ node, type, free }) => ({ nodes: [node], type, bytes: free })));
}

/** A row for each of the machine's settings. */
export function settingsRows({
  managesAll,
  managedCPUs: managed,
  reservedSystemCPUs: reserved,
  strictCPUReservation: strict,
  isolatedCPUs: isolated,
  isolatedByKernel,
  reservedMemory,
  cgroupRoot,
  kubeletVersion,
  featureGates,
}: SettingsStatus): [label: string, text: string][] {
  const sharing = strict ? ' (strictly: not shared)' : ' (shared, never exclusive)';
  return [
    ['managed:', managesAll ? `all (${managed})` : cpusOrNone(managed)],
    ['reserved:', `${cpusOrNone(reserved)}${reserved.isEmpty ? '' : sharing}`],
    ['strict:', strict ? 'yes' : 'no'],
    ['isolated:', isolatedText(isolated, isolatedByKernel)],
    ['reserved memory:', reservedMemoryText(reservedMemory)],
    ['cgroups:', cgroupRoot === null ? 'none' : `below ${printable(cgroupRoot)}`],
    ['kubelet:', kubeletText(kubeletVersion, featureGates)],
  ];
}

// With the gates that differ from their defaults.
function kubeletText(version: KubeletVersion, gates: FeatureGates): string {
  const others = FEATURE_GATES.filter((gate) => gates[gate] !== DEFAULT_GATES[version][gate]);
  const texts = others.map((gate) => `${gate}=${gates[gate]}`);
  return texts.length === 0 ? version : `${version} (${texts.join(',')})`;
}

function isolatedText(isolated: CpuSet, isByKernel: boolean): string {
  if (isByKernel) return `${cpusOrNone(isolated)} (what the kernel isolates)`;
  return cpusOrNone(isolated);
}
