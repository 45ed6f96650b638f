// Subject: of what a grant's audit tells: its CPUs, and the processes that run on them.
import { join } from 'node:path';
import type { OwnerRecord, PodAssignment } from '../account/pod-assignment.js';
import { memoryOf, presentCpus } from '../account/pod-holdings.js';
import { childNames, readIfThere } from '../cgroups/files/cgroup-files.js';
import { type CpuSet, NodeSet } from '../machine/cpu-set.js';
import type { Topology } from '../machine/topology.js';

/** Whose CPUs are looked at. */
export interface Subject {
  readonly cpus: CpuSet;
  /**
   * Processes whose threads, and whose children's, are the grant's as far as they are confined to
   * its CPUs.
   */
  readonly roots: readonly number[];
  /** Processes that had such threads when last looked at. */
  readonly known: readonly number[];
  /**
   * Whether it is this process's own: then its threads count also while none of them is confined.
   * (The owner's pid may be one of another pid namespace.)
   */
  readonly isOwn: boolean;
  readonly memoryNodes: NodeSet;
}

/**
 * `isOwn`: this process owns the grant, or has pinned threads for it. `before`: the grant's threads
 * when last looked at.
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
    roots: isOwn ? [...processesOf(pod.owner), process.pid] : processesOf(pod.owner),
    known: before.map(({ pid }) => pid),
    isOwn,
    memoryNodes: booked.isEmpty ? topology.nodesOf(cpus) : booked,
  };
}

/**
 * The process that owns a grant, or those in the cgroup that does; none for a persistent owner, of
 * which nobody knows who runs there, and for an owner that is not to be seen from here. Their
 * children are found by the scan.
 */
function processesOf({ kind, pid, cgroup }: OwnerRecord): number[] {
  if (kind === 'cgroup' && cgroup) return processesIn(cgroup.path);
  return pid === null ? [] : [pid];
}

/** In a cgroup and below it, as far as they are still there and of this pid namespace. */
function processesIn(folder: string): number[] {
  try {
    const here = readIfThere(join(folder, 'cgroup.procs')) ?? '';
    const below = childNames(folder).flatMap((name) => processesIn(join(folder, name)));
    // 0: of another pid namespace.
    return [
      ...here
        .split('\n')
        .map(Number)
        .filter((pid) => pid > 0),
      ...below,
    ];
  } catch {
    return [];
  }
}
