// Substitute: a grant of which CPUs have gone offline, or that moves when the kubelet takes some, gets
// others for them; where there is no room it makes do with what is left until they are back.
import type { Assignments } from '../../account/assignments.js';
import { cpusNow } from '../../account/cpus-now.js';
import { kubeletCpus } from '../../account/kubelet-record.js';
import type { ContainerAssignment, PodAssignment } from '../../account/pod-assignment.js';
import { removePods, replacePod } from '../../account/pod-changes.js';
import { cpusOf, movesWhenTaken, poolOf, runningCpus } from '../../account/pod-holdings.js';
import { sharedPool } from '../../account/pools.js';
import { NumalignError } from '../../base/errors.js';
import { Refusal } from '../../base/refusal.js';
import { checkRoom, checkSharedPool } from '../../decision/cpus/cpu-limits.js';
import {
  allocateCpus,
  type CpuAllocation,
  cpusLeft,
  cpusOfNodes,
  onlineCpusKept,
} from '../../decision/cpus/cpu-manager.js';
import { type Draft, firstDraft, withKept } from '../../decision/cpus/draft.js';
import { type Placement, placementUnder, recordedPlacement } from '../../input/placement.js';
import { guaranteedPod } from '../../input/pods/pod-request.js';
import { MILLI } from '../../input/pods/resource-amounts.js';
import { CpuSet } from '../../machine/cpu-set.js';
import { onlineCpus } from '../../machine/online-cpus.js';
import type { GrantThreads } from '../../threads/followers.js';
import { assignmentsOf } from '../on-record.js';
import type { Site } from '../site.js';
import { transact } from '../transact.js';
import { findGrant, heldGrant } from './held-grant.js';

/** What has become of a grant whose CPUs came or went. */
export interface Substitution<T> {
  /** As it is on record now. */
  readonly pod: PodAssignment;
  /** CPUs that it ran on and that are offline, or the kubelet's. */
  readonly lost: CpuSet;
  /** What it has for them. */
  readonly substitutes: CpuSet;
  /**
   * Those of `lost` that nothing was found for: on record they are the grant's as before, and its
   * own again once they are back.
   */
  readonly revoked: CpuSet;
  /** CPUs that were revoked, and are online again. */
  readonly returned: CpuSet;
  /** Why nothing was found; else null. */
  readonly error: NumalignError | null;
  /**
   * Nothing is left of the grant for the time being: the threads of this process wait in the shared
   * pool.
   */
  readonly isParked: boolean;
  /** What became of the threads of this process. */
  readonly followed: T;
}

// Lost CPUs without substitutes by the grant's id, as they were told last: each loss is told once.
const revocations = () => new Map<string, CpuSet>();

/**
 * Looks whether CPUs that a grant runs on have gone offline, or were taken by the kubelet where it is
 * to move then (`onTaken`), and gives it as many others for them:
 * of the same pool, by the options it was placed with, near those that it has; with the policies
 * restricted and single-numa-node only on the NUMA nodes of its hint. What its containers share
 * they go on sharing. Held SMT siblings come and go with their CPUs. A container for which there is
 * no room keeps what it has on record, and is tried again each time; its threads run on what is
 * left of it, or wait in the shared pool. Threads of this process follow; no other process's do:
 * where they would have to, nothing is given up. `defaults`: for what is not on record of its
 * placement.
 * @returns undefined where nothing has changed since the last look, or the grant is about to be
 *   changed by a resize or a transfer
 * @throws ERR_OWNER_ALIVE where it is somebody else's, the ledger's errors
 */
export async function substituteLostCpus<T>(
  site: Site,
  grant: PodAssignment,
  defaults: Placement,
  threads: GrantThreads<T>,
): Promise<Substitution<T> | undefined> {
  // Without the lock: who has no room looks again and again.
  const { ledger } = site;
  const recorded = assignmentsOf(site, ledger.read());
  const state = removePods(recorded, new Set(ledger.owners.deadPods(recorded.pods).map(({ uid }) => uid)));
  const pod = settledGrant(state, grant);
  if (!pod) {
    if (!findGrant(state, grant)) site.ledger.registry.of(revocations).delete(grant.uid);
    return undefined;
  }
  const { lost, error, ...outlook } = substituted(site, state, pod, defaults);
  if (outlook.pod !== pod) return carryOut(site, grant, defaults, threads);
  return revoke(site, state, pod, lost, error, threads);
}

/** A grant on record that nobody is about to change. */
function settledGrant(state: Assignments, grant: PodAssignment): PodAssignment | undefined {
  const pod = findGrant(state, grant);
  return pod && pod.upcoming === null && pod.transfer === null && pod.formerOwner === null ? pod : undefined;
}

// Nothing can be given for what is lost, if anything is.
function revoke<T>(
  site: Site,
  state: Assignments,
  pod: PodAssignment,
  lost: CpuSet,
  error: NumalignError | null,
  threads: GrantThreads<T>,
): Substitution<T> | undefined {
  const before = site.ledger.registry.of(revocations).get(pod.uid) ?? CpuSet.EMPTY;
  const taken = takenFrom(pod, state);
  if (lost.equals(before)) return undefined;
  if (lost.isEmpty) site.ledger.registry.of(revocations).delete(pod.uid);
  else site.ledger.registry.of(revocations).set(pod.uid, lost);
  const cpus = runningCpus(pod);
  const isParked = cpus.isSubsetOf(lost);
  const followed = isParked
    ? threads.park(sharedPool(state, cpusNow(site.topology)))
    : threads.widen(cpus.difference(taken), pod);
  const returned = before.difference(lost).intersection(cpus);
  return { pod, lost, substitutes: CpuSet.EMPTY, revoked: lost, returned, error, isParked, followed };
}

function carryOut<T>(
  site: Site,
  grant: PodAssignment,
  defaults: Placement,
  threads: GrantThreads<T>,
): Promise<Substitution<T> | undefined> {
  return transact(site, undefined, async (state, commit) => {
    if (commit.refusal) throw commit.refusal;
    if (!settledGrant(state, grant)) return undefined;
    const before = heldGrant(site, state, grant);
    const { pod, lost, error } = substituted(site, state, before, defaults);
    // Somebody was faster, or the CPUs are back.
    if (pod === before) return revoke(site, state, before, lost, error, threads);
    const present = cpusNow(site.topology);
    const [cpus, after] = [runningCpus(before), runningCpus(pod)];
    const left = cpus.intersection(present.online);
    const next = replacePod(state, pod);
    const kept = left.intersection(after);
    try {
      // What is online and given up all the same, such as the other thread of a core, may be
      // somebody's after the commit.
      if (!kept.equals(left) && !kept.isEmpty) threads.narrow(kept);
      if (!left.isEmpty && kept.isEmpty) {
        threads.checkCanLeave();
        threads.park(sharedPool(next, present));
      }
    } catch (failure) {
      if (!(failure instanceof NumalignError)) throw failure;
      return revoke(site, state, before, lost, failure, threads);
    }
    try {
      await commit(next, true);
    } catch (failure) {
      if (!left.isEmpty) threads.widen(cpus, before);
      throw failure;
    }
    const revoked = after.intersection(lost);
    if (revoked.isEmpty) site.ledger.registry.of(revocations).delete(pod.uid);
    else site.ledger.registry.of(revocations).set(pod.uid, revoked);
    const isParked = after.isSubsetOf(lost);
    const followed = isParked
      ? threads.park(sharedPool(next, present))
      : threads.widen(after.difference(takenFrom(pod, state)), pod);
    const substitutes = after.difference(cpus);
    return { pod, lost, substitutes, revoked, returned: CpuSet.EMPTY, error, isParked, followed };
  });
}

interface Outlook {
  /** The same where nothing is lost, or can be given. */
  readonly pod: PodAssignment;
  readonly lost: CpuSet;
  /** Why a container gets nothing. */
  readonly error: NumalignError | null;
}

/** CPUs of the kubelet's, where the pod is to leave them. */
const takenFrom = (pod: PodAssignment, { kubelet }: Assignments): CpuSet =>
  movesWhenTaken(pod) ? kubeletCpus(kubelet) : CpuSet.EMPTY;

function substituted(site: Site, state: Assignments, pod: PodAssignment, defaults: Placement): Outlook {
  const cpus = runningCpus(pod);
  const lost = cpus.difference(onlineCpus(site.topology)).union(cpus.intersection(takenFrom(pod, state)));
  let now = pod;
  let error: NumalignError | null = null;
  for (let i = 0; i < pod.containers.length; i++) {
    const container = now.containers[i]!;
    if (!container.cpus.intersects(lost)) continue;
    try {
      const allocation = allocationFor(site, replacePod(state, now), now, container, defaults);
      now = withAllocation(now, container, allocation);
    } catch (failure) {
      if (!(failure instanceof Refusal)) throw failure;
      error ??= failure;
    }
  }
  return { pod: now, lost, error };
}

/**
 * What a container has for its CPUs: those that are online, and others for the rest.
 * @throws {@link Refusal}
 */
function allocationFor(
  { topology, resources }: Site,
  state: Assignments,
  pod: PodAssignment,
  container: ContainerAssignment,
  defaults: Placement,
): CpuAllocation {
  const now = cpusNow(topology, state.pods);
  // As if what is taken were offline.
  const taken = takenFrom(pod, state);
  const present = taken.isEmpty ? now : { ...now, online: now.online.difference(taken) };
  const placement = placementUnder(state.settings.kubeletVersion, recordedPlacement(pod, defaults));
  const { name, kind, cpus, held, memory, devices } = container;
  const nodes = container.hint.nodes ?? topology.nodesOf(cpus);
  // An aligned container must stay so: its memory and devices are where they are.
  const mustStay =
    placement.topologyPolicy === 'restricted' || placement.topologyPolicy === 'single-numa-node';
  const usable = pod.owner.kind === 'process' ? topology.allowed : topology.cpus;
  const near = cpusOfNodes(topology, nodes, placement.alignBySocket);
  const request = { name, kind, requests: { cpu: cpus.size * MILLI } };
  const first = firstDraft({
    ...{ topology, present, state, placement, resources, pool: poolOf(pod) },
    pod: guaranteedPod(pod, request),
    allowed: mustStay ? usable.intersection(near) : usable,
  });
  const kept = onlineCpusKept(first, { cpus, held });
  // All that the pod has is taken in `state`: nothing of it can be given anew.
  const draft: Draft = withKept(first, { ...kept, memory, devices }, cpusOf(pod));
  const allocation = allocateCpus(draft, request, { ...container.hint, nodes });
  const left = { ...draft, ...cpusLeft(draft, request, allocation) };
  checkSharedPool(left);
  checkRoom(left);
  return allocation;
}

/** The pod with one container's CPUs replaced, in every container that shares them, and where they are booked. */
function withAllocation(
  pod: PodAssignment,
  { cpus, held }: ContainerAssignment,
  given: CpuAllocation,
): PodAssignment {
  const gone = cpus.union(held).difference(given.cpus).difference(given.held);
  const more = given.held.difference(held);
  const fresh = [...given.cpus.difference(cpus)];
  const substitutes = new Map([...cpus.difference(given.cpus)].map((cpu, i) => [cpu, fresh[i]!]));
  const replaced = (set: CpuSet) => CpuSet.from([...set].map((cpu) => substitutes.get(cpu) ?? cpu));
  const after = <Has extends CpuAllocation>(has: Has): Has => {
    const running = replaced(has.cpus);
    return { ...has, cpus: running, held: has.held.difference(gone).union(more.difference(running)) };
  };
  const containers = pod.containers.map((each) => {
    if (!each.cpus.union(each.held).intersects(gone)) return each;
    const next = after(each);
    const isLeft = !each.reusable.cpus.isEmpty;
    const reusable = { ...each.reusable, cpus: isLeft ? next.cpus.union(next.held) : CpuSet.EMPTY };
    return { ...next, reusable };
  });
  return { ...pod, containers, booking: pod.booking && after(pod.booking) };
}
