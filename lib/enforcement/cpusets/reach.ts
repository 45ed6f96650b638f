// Reach: the CPUs that cpusets leave a process, and those that numalign could let it use. In a
// container, a group may be outside of the mounted hierarchy: then nothing is known of it.
import { dirname } from 'node:path';
import { cpusOfSome } from '../../account/cpus-of-pods.js';
import type { PodAssignment } from '../../account/pod-assignment.js';
import { unlessRefused } from '../../base/errors.js';
import { CpuSet } from '../../machine/cpu-set.js';
import { podsInPartition } from '../layout/layout.js';
import type { Cpusets } from './cpusets.js';

/** The CPUs that threads of a process may use; undefined if it has ended. */
export function cpusetOf({ hierarchy }: Cpusets, pid: number): CpuSet | undefined {
  return unlessRefused(() => hierarchy.effectiveCpusOf(hierarchy.folderOf(pid)));
}

/** The CPUs that threads on no grant may use; undefined if that cannot be seen. */
export function cpusOutsideGrants(cpusets: Cpusets, pid: number): CpuSet | undefined {
  const path = cpusets.pathOf(pid);
  if (path === undefined) return undefined;
  return unlessRefused(() => {
    const isInGrant = !cpusets.shared.contains(path) && cpusets.grants.contain(path);
    return cpusets.hierarchy.effectiveCpusOf(isInGrant ? cpusets.home : path);
  });
}

/**
 * The CPUs that a process could use if only numalign's groups changed: those of its cpuset, and
 * those that only the group of a grant, the shared group or the partition of these grants keeps
 * from it.
 */
export function cpusWithinReach(cpusets: Cpusets, pid: number, pods: readonly PodAssignment[]): CpuSet {
  const { hierarchy } = cpusets;
  const cpuset = cpusetOf(cpusets, pid);
  if (!cpuset) return CpuSet.EMPTY;
  const inPartition = cpusets.isPartition ? cpusOfSome(podsInPartition(pods)) : CpuSet.EMPTY;
  if (cpusets.isOfPools(hierarchy.folderOf(pid))) {
    return cpuset.union(hierarchy.effectiveCpusOf(dirname(hierarchy.rootPath))).union(inPartition);
  }
  return cpuset.equals(hierarchy.effectiveCpusOf(hierarchy.mount)) ? cpuset.union(inPartition) : cpuset;
}

/**
 * Whether a cpuset below the root, and not a partition, keeps a process in the shared pool while it
 * is on no grant.
 */
export function isHeldInPool(cpusets: Cpusets, pid: number): boolean {
  return cpusets.isPlain || (!cpusets.isPartition && cpusets.isOurs(cpusets.pathOf(pid) ?? ''));
}
