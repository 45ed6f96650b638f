// GrantStatus: the grants of a status.
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Assignments } from '../account/assignments.js';
import type { CpusNow } from '../account/cpus-now.js';
import { mortalOwners } from '../account/owners-of-pods.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { hasParts } from '../account/pod-holdings.js';
import { freeOfBooked } from '../admission/free-hugepages.js';
import type { ReadOnlyHost } from '../admission/host.js';
import { podContainer } from '../admission/pod-container.js';
import { encodeName } from '../cgroups/files/cgroup-path.js';
import { flagsOfEach } from '../decision/flags/flags.js';
import { grantInfo } from '../decision/grant-info.js';
import { ALL_CONTAINERS } from '../enforcement/layout/layout.js';
import { survivorsOf } from '../enforcement/members/survivors.js';
import { memoryBindings } from '../enforcement/memory-binding.js';
import type { StateReading } from './state-reading.js';
import type { GrantCgroup, GrantStatus } from './status.js';

/** All grants of a state. `isAlive`: whether a grant's owner lives. */
export function grantsOf(
  { topology, resources, quieter }: ReadOnlyHost,
  state: Assignments,
  present: CpusNow,
  isAlive: StateReading['isAlive'],
): GrantStatus[] {
  const survivors = survivorsOf(mortalOwners(state.pods));
  const hugepages = freeOfBooked(state, topology);
  const flagsOf = flagsOfEach({ state, topology, resources, present, hugepages });
  return state.pods.map((pod) => ({
    ...grantInfo(pod, { topology, present }, { alive: isAlive(pod), flags: flagsOf(pod) }),
    containers: pod.containers.map(podContainer),
    survivors: survivors.get(pod.owner.uuid) ?? [],
    cgroups: cgroupsOf(pod),
    memoryEnforcement: memoryBindings(pod),
    quiet: pod.quiet ? quieter.outcome(state, pod.uid) : null,
  }));
}

// The cgroups of a grant. The record only has the first container's, or that of a grant with parts.
function cgroupsOf(pod: PodAssignment): GrantCgroup[] {
  const { uid, containers, enforcement } = pod;
  const { target } = enforcement;
  if (target === null) return [];
  const of = (container: string | null) => {
    const path = join(dirname(target), encodeName(`${uid}/${container ?? ALL_CONTAINERS}`));
    return { container, path, isMade: existsSync(path) };
  };
  const all = of(null);
  if (hasParts(pod)) return [all];
  return [
    ...containers.filter(({ cpus }) => !cpus.isEmpty).map(({ name }) => of(name)),
    ...(all.isMade ? [all] : []),
  ];
}
