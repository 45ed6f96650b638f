// Settings and pools of a state in words. Pure.
import {
  DEFAULT_GATES,
  FEATURE_GATES,
  type FeatureGates,
  type KubeletVersion,
} from '../../base/kubelet-features.js';
import { cpusNamed } from '../../base/text/cpus-named.js';
import type { SettingsStatus, StateStatus } from '../../entries/diagnostics.js';
import type { BookedMemory, CpuSet, MemoryTable } from '../../index.js';
import { printable } from '../terminal/text.js';
import { memoryText } from './resource-text.js';

function reservedMemoryText(reserved: BookedMemory): string {
  const blocks = Object.entries(reserved).flatMap(([node, types]) =>
    Object.entries(types).map(([type, bytes]) => ({ nodes: [Number(node)], type, bytes })),
  );
  return memoryText(blocks);
}

/** Free memory by NUMA node, of types that the machine has. */
export function freeMemoryText(tables: readonly MemoryTable[]): string {
  const known = tables.filter(({ total }) => total > 0);
  return memoryText(known.map(({ node, type, free }) => ({ nodes: [node], type, bytes: free })));
}

/** The machine's settings, a row each. */
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
  const keptOut = strict ? ' (strictly: not shared)' : ' (shared, never exclusive)';
  return [
    ['managed:', managesAll ? `all (${managed})` : named(managed)],
    ['reserved:', `${named(reserved)}${reserved.isEmpty ? '' : keptOut}`],
    ['strict:', strict ? 'yes' : 'no'],
    ['isolated:', isolatedText(isolated, isolatedByKernel)],
    ['reserved memory:', reservedMemoryText(reservedMemory)],
    ['cgroups:', cgroupRoot === null ? 'none' : `below ${printable(cgroupRoot)}`],
    ['kubelet:', kubeletText(kubeletVersion, featureGates)],
  ];
}

// With the gates that are not as they are by default.
function kubeletText(version: KubeletVersion, gates: FeatureGates): string {
  const others = FEATURE_GATES.filter((gate) => gates[gate] !== DEFAULT_GATES[version][gate]);
  const texts = others.map((gate) => `${gate}=${gates[gate]}`);
  return texts.length === 0 ? version : `${version} (${texts.join(',')})`;
}

/** Not `1`, which could be how many there are. */
export function named(cpus: CpuSet): string {
  return cpus.isEmpty ? 'none' : cpusNamed(cpus);
}

/** The shared pool, as far as it is known. */
export function sharedText({ refusal, sharedPool }: Pick<StateStatus, 'refusal' | 'sharedPool'>): string {
  return refusal === null ? named(sharedPool) : `at most ${named(sharedPool)}`;
}

/** CPUs that are free, where that is known. */
export function freeListed({ refusal }: Pick<StateStatus, 'refusal'>, cpus: CpuSet): string {
  return refusal === null ? named(cpus) : 'unknown';
}

/** The free CPUs; where nothing else is shared, not all of them can be granted. */
export function freeText(view: Pick<StateStatus, 'refusal' | 'free' | 'sharedPool'>): string {
  const { refusal, free, sharedPool } = view;
  if (refusal !== null || free.isEmpty || !sharedPool.isSubsetOf(free)) return freeListed(view, free);
  return `${named(free)} (${free.size === 1 ? 'it' : 'one of them'} stays shared)`;
}

function isolatedText(isolated: CpuSet, isByKernel: boolean): string {
  if (isByKernel) return `${named(isolated)} (what the kernel isolates)`;
  return named(isolated);
}
