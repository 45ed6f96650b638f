// The settings and pools of a state in words. Pure.
import type { CpuSet, MemoryTable } from 'numalign';
import type { SettingsStatus, StateStatus } from 'numalign/diagnostics';
import type { FeatureGates, KubeletVersion } from 'numalign/kubelet';
import { cpusNamed, DEFAULT_GATES, FEATURE_GATES } from 'numalign/tools';
import { printable } from '../terminal/text.js';
import { memoryText } from './resource-text.js';

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

/** CPUs with the word, since `1` could be a number of CPUs. */
export function cpusOrNone(cpus: CpuSet): string {
  return cpus.isEmpty ? 'none' : cpusNamed(cpus);
}

/** The shared pool, or its known bound. */
export function sharedText({ refusal, sharedPool }: Pick<StateStatus, 'refusal' | 'sharedPool'>): string {
  return refusal === null ? cpusOrNone(sharedPool) : `at most ${cpusOrNone(sharedPool)}`;
}

/** Free CPUs, or `unknown`. */
export function freeCpusText({ refusal }: Pick<StateStatus, 'refusal'>, cpus: CpuSet): string {
  return refusal === null ? cpusOrNone(cpus) : 'unknown';
}

/** The free CPUs. If the shared pool has no other CPU, one of them cannot be granted. */
export function freeText(view: Pick<StateStatus, 'refusal' | 'free' | 'sharedPool'>): string {
  const { refusal, free, sharedPool } = view;
  if (refusal !== null || free.isEmpty || !sharedPool.isSubsetOf(free)) return freeCpusText(view, free);
  return `${cpusOrNone(free)} (${free.size === 1 ? 'it' : 'one of them'} stays shared)`;
}

function isolatedText(isolated: CpuSet, isByKernel: boolean): string {
  if (isByKernel) return `${cpusOrNone(isolated)} (what the kernel isolates)`;
  return cpusOrNone(isolated);
}
