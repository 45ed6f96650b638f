// ReadStatus: reads a StateStatus. Only looks: makes, locks and changes nothing.
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Assignments } from '../account/assignments.js';
import { type CpusNow, cpusNow } from '../account/cpus-now.js';
import { mortalOwners } from '../account/owners-of-pods.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { withoutPods } from '../account/pod-changes.js';
import { hasParts } from '../account/pod-holdings.js';
import { freeCpus, sharedPool } from '../account/pools.js';
import { freeOfBooked } from '../admission/free-hugepages.js';
import type { ReadOnlyHost } from '../admission/host.js';
import { podContainer } from '../admission/pod-container.js';
import { lapsedGrants, settingWarnings } from '../admission/warnings.js';
import { encodeName } from '../cgroups/files/cgroup-path.js';
import { flagsOfEach } from '../decision/flags/flags.js';
import { grantInfo } from '../decision/grant-info.js';
import { settingsNow } from '../decision/machine-settings.js';
import { memoryTables } from '../decision/memory/memory-tables.js';
import { ALL_CONTAINERS } from '../enforcement/layout/layout.js';
import { survivorsOf } from '../enforcement/members/survivors.js';
import { memoryBindings } from '../enforcement/memory-binding.js';
import { kubeletStatus } from '../kubelet/record/kubelet-status.js';
import { readingIn, readingWithout, type StateReading } from './state-reading.js';
import type { GrantCgroup, GrantStatus, StateStatus } from './status.js';

/**
 * The state of a host now. Always reads the file; of a damaged one, what can be recovered.
 * @throws ERR_STATE_FOLDER if this process may not open the folder, ERR_STATE_CORRUPT if nothing
 *   can be recovered, ERR_STATE_VERSION
 */
export function readStatus(host: ReadOnlyHost): StateStatus {
  return statusOf(host, (host.ledger.scope !== 'memory' && readingIn(host)) || readingWithout(host));
}

function statusOf(host: ReadOnlyHost, found: StateReading): StateStatus {
  const { ledger, topology } = host;
  const { exists, isOfEarlierBoot, damage, checkpoint, members, waiting } = found;
  const { generation, assignments, refusal } = checkpoint;
  const state = isOfEarlierBoot ? withoutPods(assignments) : assignments;
  const present = cpusNow(topology, state.pods);
  const { managedCPUs, isolatedCPUs } = state.settings;
  return {
    stateDir: ledger.scope === 'memory' ? '' : ledger.path,
    scope: ledger.scope,
    exists,
    generation,
    isOfEarlierBoot,
    settings: {
      ...settingsNow(state.settings, present),
      managesAll: managedCPUs === null,
      isolatedByKernel: isolatedCPUs === null,
    },
    sharedPool: sharedPool(state, present),
    free: freeCpus(state, present),
    freeIsolated: freeCpus(state, present, 'isolated'),
    memory: memoryTables(state, topology),
    kubelet: kubeletStatus(state.kubelet, found.isProcessAlive),
    grants: grantsOf(host, state, present, found.isAlive),
    sharedMembers: members,
    waiting,
    damage,
    refusal: refusal ?? null,
    lapsed: isOfEarlierBoot ? lapsedGrants(assignments) : [],
    warnings: settingWarnings(state, topology, present.online),
  };
}

// All grants of a state. `isAlive`: whether a grant's owner lives.
function grantsOf(
  { topology, resources, quieter }: ReadOnlyHost,
  state: Assignments,
  present: CpusNow,
  isAlive: StateReading['isAlive'],
): GrantStatus[] {
  // A dead owner has none: to look for them is to look at all files that all processes have open.
  const survivors = survivorsOf(mortalOwners(state.pods.filter(isAlive)));
  const hugepages = freeOfBooked(state, topology);
  const flagsOf = flagsOfEach({ state, topology, resources, present, hugepages });
  return state.pods.map((pod) =>
    // A copy of so many members takes longer than all of them.
    Object.assign(grantInfo(pod, { topology, present }, { alive: isAlive(pod), flags: flagsOf(pod) }), {
      containers: pod.containers.map(podContainer),
      survivors: survivors.get(pod.owner.uuid) ?? [],
      cgroups: cgroupsOf(pod),
      memoryEnforcement: memoryBindings(pod),
      quiet: pod.quiet ? quieter.outcome(state, pod.uid) : null,
    }),
  );
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
