// Subject: what a grant's audit is about: its CPUs, and the processes that run on them.
import { join } from 'node:path';
import type { OwnerRecord, PodAssignment } from '../account/pod-assignment.js';
import { memoryOf, presentCpus } from '../account/pod-holdings.js';
import { childNames, readIfThere } from '../cgroups/files/cgroup-files.js';
import { type CpuSet, NodeSet } from '../machine/cpu-set.js';
import type { Topology } from '../machine/topology.js';

/** The grant whose CPUs are audited. */
export interface Subject {
  readonly cpus: CpuSet;
  /**
   * Processes whose threads, and whose children's threads, belong to the grant if they are confined
   * to its CPUs.
   */
  readonly roots: readonly number[];
  /** Processes that had such threads at the last look. */
  readonly knownPids: readonly number[];
  /**
   * True if it is this process's own grant: then its threads count even while none is confined.
   * (The owner's pid may belong to another pid namespace.)
   */
  readonly isOwn: boolean;
  readonly memoryNodes: NodeSet;
}

/**
 * `isOwn`: this process owns the grant, or has pinned threads for it. `before`: the grant's threads
 * at the last look.
 */
export function subjectOf(
  topology: Topology,
  pod: PodAssignment,
  isOwn: boolean,
  before: readonly { readonly pid: number }[],
): Subject {
  const cpus = presentCpus(pod);
  const booked = NodeSet.from(memoryOf(pod).flatMap(({ nodes }) => nodes));
  return {
    cpus,
    roots: isOwn ? ownRoots(pod) : processesOf(pod.owner),
    knownPids: before.map(({ pid }) => pid),
    isOwn,
    memoryNodes: booked.isEmpty ? topology.nodesOf(cpus) : booked,
  };
}

/** The processes of a grant that this process has. */
export const ownRoots = ({ owner }: Pick<PodAssignment, 'owner'>): number[] => [
  ...processesOf(owner),
  process.pid,
];

/**
 * The process that owns a grant, or those in the cgroup that owns it. Empty for a persistent owner,
 * whose processes are unknown, and for an owner that cannot be seen from here. The scan finds their
 * children.
 */
function processesOf({ kind, pid, cgroup }: OwnerRecord): number[] {
  if (kind === 'cgroup' && cgroup) return processesIn(cgroup.path);
  return pid === null ? [] : [pid];
}

/** The processes in a cgroup and below it, if it still exists, of this pid namespace. */
function processesIn(folder: string): number[] {
  try {
    const ownPids = readIfThere(join(folder, 'cgroup.procs')) ?? '';
    const childPids = childNames(folder).flatMap((name) => processesIn(join(folder, name)));
    // 0 stands for a process of another pid namespace.
    return [
      ...ownPids
        .split('\n')
        .map(Number)
        .filter((pid) => pid > 0),
      ...childPids,
    ];
  } catch {
    return [];
  }
}
