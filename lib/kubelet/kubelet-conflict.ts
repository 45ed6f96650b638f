// Whether numalign may hand out CPUs beside a kubelet, from what was found of it. Pure.
import { NumalignError } from '../base/errors.js';
import { CpuSet } from '../machine/cpu-set.js';
import type { CpuManagerState } from './cpu-manager-state.js';

/** The pod that a process runs in, as its cgroup's path tells. */
export interface PodOfProcess {
  readonly uid: string;
  readonly qosClass: 'Guaranteed' | 'Burstable' | 'BestEffort';
}

/** What can be known of a kubelet on this machine, and of this process. */
export interface KubeletFacts {
  /** What shows that there is one; empty where nothing does. */
  readonly found: readonly string[];
  /**
   * What its CPU file says; undefined where it was not found, cannot be read, or is not to be
   * trusted.
   */
  readonly cpu: CpuManagerState | undefined;
  /**
   * Undefined where the cgroup's path does not tell: outside of pods, and in a cgroup namespace of
   * one's own.
   */
  readonly pod: PodOfProcess | undefined;
  /** In a pod, or in a cgroup namespace that is not the machine's. */
  readonly isInContainer: boolean;
  /** The CPUs that this process may use. */
  readonly allowed: CpuSet;
  /** How many CPUs its cgroup may use at most at a time; undefined: no limit, or unknown. */
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

/** CPUs that the kubelet neither shares nor gives to anybody: it has them reserved strictly. */
export function strictlyReserved({ cpu }: KubeletFacts, online: CpuSet): CpuSet {
  // A file that names no CPU at all is one that is not filled yet.
  if (cpu?.policyName !== 'static' || (cpu.defaultCpuSet.isEmpty && cpu.entries.size === 0))
    return CpuSet.EMPTY;
  const given = [...cpu.entries.values()].flatMap((pod) => [...pod.values()]);
  return given.reduce((rest, cpus) => rest.difference(cpus), online.difference(cpu.defaultCpuSet));
}

/**
 * The CPUs that the kubelet has given to this very container alone, as far as that can be known.
 */
export function ownExclusive(
  { cpu, pod, isInContainer, allowed, cpuLimit }: KubeletFacts,
  online: CpuSet,
): CpuSet {
  if (!isInContainer || allowed.isEmpty) return CpuSet.EMPTY;
  if (cpu) {
    const pods = pod ? [cpu.entries.get(pod.uid)] : [...cpu.entries.values()];
    const sets = pods.flatMap((containers) => [...(containers?.values() ?? [])]);
    return sets.find((cpus) => allowed.isSubsetOf(cpus)) ?? CpuSet.EMPTY;
  }
  // Without the file: only a Guaranteed container of whole CPUs has as many CPUs as its limit says,
  // and others than the machine's all.
  const isSized = pod?.qosClass === 'Guaranteed' && cpuLimit === allowed.size && allowed.size < online.size;
  return isSized ? allowed : CpuSet.EMPTY;
}

/** What is on record of what the kubelet has given out, as KubeletStatus has it. */
export interface RecordedKubelet {
  readonly cpus: CpuSet;
  readonly keeper: {
    readonly pid: number | null;
    readonly command: string | null;
    readonly alive: boolean;
  };
}

/** The CPUs that the kubelet's file says are a container's alone; as far as it can be read. */
function givenOut({ cpu }: KubeletFacts): CpuSet {
  const containers = [...(cpu?.entries.values() ?? [])].flatMap((pod) => [...pod.values()]);
  const pods = [...(cpu?.podEntries?.values() ?? [])].map(({ cpuSet }) => cpuSet);
  return [...containers, ...pods].reduce((all, cpus) => all.union(cpus), CpuSet.EMPTY);
}

// How a record would do; undefined where it does.
function wayByRecord(
  facts: KubeletFacts,
  universe: CpuSet,
  record: RecordedKubelet | null,
): string | undefined {
  if (!record) return 'have `numalign-node` keep on record what it gives out';
  const { pid, command, alive } = record.keeper;
  if (!alive) {
    return `start \`numalign-node\` again: process ${pid} (${command}), which kept on record what it gives out, has ended`;
  }
  const missing = givenOut(facts).intersection(universe).difference(record.cpus);
  return missing.isEmpty
    ? undefined
    : `try again: CPUs ${missing}, which it has given out, are not on record yet`;
}

/** CPUs that a kubelet may give to others as numalign may. */
export interface KubeletConflict {
  readonly reserved: CpuSet;
  readonly own: CpuSet;
  /** How it can be ended, any of these. */
  readonly ways: readonly string[];
}

/**
 * Undefined where no kubelet was found, numalign hands out and shares (`universe`) only what it
 * leaves to us, or a process that lives keeps on record what it gives out.
 */
export function kubeletConflict(
  facts: KubeletFacts,
  universe: CpuSet,
  online: CpuSet,
  record: RecordedKubelet | null,
): KubeletConflict | undefined {
  if (facts.found.length === 0) return undefined;
  const [reserved, own] = [strictlyReserved(facts, online), ownExclusive(facts, online)];
  if ([reserved, own].some((cpus) => universe.isSubsetOf(cpus))) return undefined;
  const byRecord = wayByRecord(facts, universe, record);
  if (byRecord === undefined) return undefined;
  const ways = [
    ...(reserved.isEmpty ? [] : [`set managedCPUs within ${reserved}, which it has strictly reserved`]),
    ...(own.isEmpty ? [] : [`set managedCPUs within ${own}, which are this container's alone`]),
    byRecord,
    'run in a Guaranteed pod with whole CPUs of its own, of which numalign then hands out parts',
    'insist (besideKubelet: true, --beside-kubelet)',
  ];
  return { reserved, own, ways };
}

/** @throws ERR_KUBELET_CONFLICT where there is a {@link kubeletConflict} */
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
