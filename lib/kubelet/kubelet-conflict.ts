// Whether numalign may grant CPUs beside a kubelet, given the facts about it. Pure.
import { NumalignError } from '../base/errors.js';
import { CpuSet } from '../machine/cpu-set.js';
import type { CpuManagerState } from './cpu-manager-state.js';

/** The pod that a process runs in, according to the path of its cgroup. */
export interface PodOfProcess {
  readonly uid: string;
  readonly qosClass: 'Guaranteed' | 'Burstable' | 'BestEffort';
}

/** What is known about a kubelet on this machine, and about this process. */
export interface KubeletFacts {
  /** The signs of a kubelet; empty without any. */
  readonly found: readonly string[];
  /** The content of its CPU file; undefined if it was not found, or cannot be read or trusted. */
  readonly cpu: CpuManagerState | undefined;
  /**
   * Undefined if the cgroup's path does not say: outside of pods, and in a separate cgroup
   * namespace.
   */
  readonly pod: PodOfProcess | undefined;
  /** True in a pod, or in a cgroup namespace that is not the machine's. */
  readonly isInContainer: boolean;
  /** The CPUs that this process may use. */
  readonly allowed: CpuSet;
  /** How many CPUs its cgroup may use at the same time; undefined: no limit, or unknown. */
  readonly cpuLimit: number | undefined;
}

const POD = /pod([0-9a-f]{8}[-_](?:[0-9a-f]{4}[-_]){3}[0-9a-f]{12}|[0-9a-f]{32})/;

/** The pod in a cgroup's path, whichever driver made it. */
export function podOfCgroup(path: string): PodOfProcess | undefined {
  const uid = path.includes('kubepods') ? POD.exec(path)?.[1]?.replaceAll('_', '-') : undefined;
  if (uid === undefined) return undefined;
  const qosClass = path.includes('burstable')
    ? 'Burstable'
    : path.includes('besteffort')
      ? 'BestEffort'
      : 'Guaranteed';
  return { uid, qosClass };
}

/** The exclusive CPUs of containers, and of pods as a whole, in the kubelet's file, if it can be read. */
function assignedCpus({ cpu }: KubeletFacts): CpuSet {
  const containers = [...(cpu?.entries.values() ?? [])].flatMap((pod) => [...pod.values()]);
  const pods = [...(cpu?.podEntries?.values() ?? [])].map(({ cpuSet }) => cpuSet);
  return [...containers, ...pods].reduce((all, cpus) => all.union(cpus), CpuSet.EMPTY);
}

/** The CPUs that the kubelet neither shares nor assigns, because they are strictly reserved. */
export function strictlyReserved(facts: KubeletFacts, online: CpuSet): CpuSet {
  const { cpu } = facts;
  if (cpu?.policyName !== 'static') return CpuSet.EMPTY;
  const assigned = assignedCpus(facts);
  // A file without any CPU is not filled yet.
  if (cpu.defaultCpuSet.isEmpty && assigned.isEmpty) return CpuSet.EMPTY;
  return online.difference(cpu.defaultCpuSet).difference(assigned);
}

// In a pod that has CPUs as a whole, containers that share them have the same ones.
function exclusiveIn({ entries, podEntries }: CpuManagerState, uid: string): CpuSet[] {
  const sets = [...(entries.get(uid)?.values() ?? [])];
  if (!podEntries?.has(uid)) return sets;
  return sets.filter((cpus) => !sets.some((other) => other !== cpus && other.intersects(cpus)));
}

/**
 * The exclusive CPUs that the kubelet has assigned to this container, as far as this can be known.
 */
export function ownExclusive(
  { cpu, pod, isInContainer, allowed, cpuLimit }: KubeletFacts,
  online: CpuSet,
): CpuSet {
  if (!isInContainer || allowed.isEmpty) return CpuSet.EMPTY;
  if (cpu) {
    const uids = pod ? [pod.uid] : [...cpu.entries.keys()];
    const sets = uids.flatMap((uid) => exclusiveIn(cpu, uid));
    return sets.find((cpus) => allowed.isSubsetOf(cpus)) ?? CpuSet.EMPTY;
  }
  // Without the file, only a Guaranteed container with whole CPUs can be recognized: it has as many
  // CPUs as its limit says, and fewer than the machine.
  const isSized = pod?.qosClass === 'Guaranteed' && cpuLimit === allowed.size && allowed.size < online.size;
  return isSized ? allowed : CpuSet.EMPTY;
}

/** The record of what the kubelet has assigned, as in KubeletStatus. */
export interface RecordedKubelet {
  readonly cpus: CpuSet;
  readonly keeper: {
    readonly pid: number | null;
    readonly command: string | null;
    readonly alive: boolean;
  };
}

// How a record could resolve the conflict; undefined if it does.
function wayByRecord(
  facts: KubeletFacts,
  universe: CpuSet,
  record: RecordedKubelet | null,
): string | undefined {
  if (!record) return 'let `numalign-node` record what it assigns';
  const { pid, command, alive } = record.keeper;
  if (!alive) {
    return `start \`numalign-node\` again: process ${pid} (${command}), which recorded what it assigns, has ended`;
  }
  const missing = assignedCpus(facts).intersection(universe).difference(record.cpus);
  return missing.isEmpty
    ? undefined
    : `try again: CPUs ${missing}, which it has assigned, are not on record yet`;
}

/** CPUs that both a kubelet and numalign may assign. */
export interface KubeletConflict {
  readonly reserved: CpuSet;
  readonly own: CpuSet;
  /** Ways to resolve it, any of which will do. */
  readonly ways: readonly string[];
}

/**
 * Undefined if no kubelet was found, if `universe` only has CPUs that it leaves to numalign, or if
 * a living process records what it assigns.
 */
export function kubeletConflict(
  facts: KubeletFacts,
  universe: CpuSet,
  online: CpuSet,
  record: RecordedKubelet | null,
): KubeletConflict | undefined {
  if (facts.found.length === 0) return undefined;
  const [reserved, ownCpus] = [strictlyReserved(facts, online), ownExclusive(facts, online)];
  if ([reserved, ownCpus].some((cpus) => universe.isSubsetOf(cpus))) return undefined;
  const byRecord = wayByRecord(facts, universe, record);
  if (byRecord === undefined) return undefined;
  const ways = [
    ...(reserved.isEmpty ? [] : [`set managedCPUs within ${reserved}, which it has strictly reserved`]),
    ...(ownCpus.isEmpty ? [] : [`set managedCPUs within ${ownCpus}, which are this container's alone`]),
    byRecord,
    'run in a Guaranteed pod with whole CPUs, which numalign can then divide',
    'insist (besideKubelet: true, --beside-kubelet)',
  ];
  return { reserved, own: ownCpus, ways };
}

/** @throws ERR_KUBELET_CONFLICT if there is a {@link kubeletConflict} */
export function checkBesideKubelet(
  facts: KubeletFacts,
  universe: CpuSet,
  online: CpuSet,
  record: RecordedKubelet | null,
): void {
  const conflict = kubeletConflict(facts, universe, online, record);
  if (!conflict) return;
  const { reserved, own, ways } = conflict;
  throw new NumalignError(
    'ERR_KUBELET_CONFLICT',
    `a kubelet manages this machine (${facts.found.join(', ')}) and may give CPUs ${universe} to others; ${ways.join('; or ')}`,
    {
      value: universe.toString(),
      valid: [reserved, own].filter((cpus) => !cpus.isEmpty).map(String),
      found: facts.found,
      strictlyReserved: reserved.toString(),
      ownExclusive: own.toString(),
    },
  );
}
