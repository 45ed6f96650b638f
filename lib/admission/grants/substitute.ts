// Substitute: replaces CPUs of a grant that went offline, or that the kubelet took. Without room
// the grant makes do with its other CPUs until the lost ones are back.
import type { Assignments } from '../../account/assignments.js';
import { cpusNow } from '../../account/cpus-now.js';
import { kubeletCpus } from '../../account/kubelet-record.js';
import type { ContainerAssignment, PodAssignment } from '../../account/pod-assignment.js';
import { replacePod } from '../../account/pod-changes.js';
import { cpusOf, isSettled, movesWhenTaken, poolOf, runningCpus } from '../../account/pod-holdings.js';
import { sharedPool } from '../../account/pools.js';
import { NumalignError } from '../../base/errors.js';
import { Refusal } from '../../base/refusal.js';
import { checkRoom, checkSharedPool } from '../../decision/cpus/cpu-limits.js';
import {
  allocateCpus,
  type CpuAllocation,
  cpuFit,
  cpusLeft,
  cpusOfNodes,
  onlineCpusKept,
} from '../../decision/cpus/cpu-manager.js';
import { type Draft, firstDraft, withKept } from '../../decision/draft/draft.js';
import type { Hotplug } from '../../enforcement/drift.js';
import { type Placement, placementUnder, recordedPlacement } from '../../input/placement.js';
import { guaranteedPod } from '../../input/pods/pod-request.js';
import { MILLI } from '../../input/values/quantity.js';
import { CpuSet } from '../../machine/cpu-set.js';
import { onlineCpus } from '../../machine/online-cpus.js';
import type { ParkableFollowers } from '../../threads/followers.js';
import type { Host } from '../host.js';
import { livingState } from '../on-record.js';
import { transact } from '../transact.js';
import { findGrant, heldGrant } from './held-grant.js';

/** How a grant changed when it lost CPUs, or got them back. */
export interface Substitution<T> extends Omit<Hotplug, 'uid' | 'cpus'> {
  /** The grant as it is on record now. */
  readonly pod: PodAssignment;
  /** How the threads of this process followed. */
  readonly followed: T;
}

// Lost CPUs without substitutes by the grant's uid, as last reported: each loss is reported once.
const revocations = () => new Map<string, CpuSet>();

function noteRevoked({ ledger }: Host, uid: string, revoked: CpuSet): void {
  if (revoked.isEmpty) ledger.registry.of(revocations).delete(uid);
  else ledger.registry.of(revocations).set(uid, revoked);
}

/**
 * Replaces CPUs of a grant that went offline, or that the kubelet took if the grant then moves
 * (`onTaken`). It chooses substitutes from the same pool, by the options of the grant, near its
 * other CPUs; with the policies restricted and single-numa-node only on the NUMA nodes of its hint.
 * Containers go on sharing what they share. Held SMT siblings come and go with their CPUs. A
 * container without room keeps what it has on record, and the next call tries again; its threads
 * run on its other CPUs, or wait in the shared pool. Threads of this process follow. If threads of
 * other processes would have to, the grant gives nothing up. `defaults` completes its recorded
 * placement.
 * @returns undefined if nothing has changed since the last look, or if a resize or transfer is
 *   about to change the grant
 * @throws ERR_OWNER_ALIVE if another living process owns the grant, the ledger's errors
 */
export async function substituteLostCpus<T>(
  host: Host,
  grant: PodAssignment,
  defaults: Placement,
  threads: ParkableFollowers<T>,
): Promise<Substitution<T> | undefined> {
  // It looks without the lock: a grant without room looks often.
  const state = livingState(host);
  const pod = settledGrant(state, grant);
  if (!pod) {
    if (!findGrant(state, grant)) noteRevoked(host, grant.uid, CpuSet.EMPTY);
    return undefined;
  }
  const outlook = substituted(host, state, pod, defaults);
  if (outlook.pod !== pod) return carryOut(host, grant, defaults, threads);
  return revoke(host, state, outlook, threads);
}

/** The grant on record, unless it is about to change. */
function settledGrant(state: Assignments, grant: PodAssignment): PodAssignment | undefined {
  const pod = findGrant(state, grant);
  return pod && isSettled(pod) ? pod : undefined;
}

// There is no substitute for the lost CPUs, if any are lost.
function revoke<T>(
  host: Host,
  state: Assignments,
  { pod, lost, error }: Outlook,
  threads: ParkableFollowers<T>,
): Substitution<T> | undefined {
  const before = host.ledger.registry.of(revocations).get(pod.uid) ?? CpuSet.EMPTY;
  const taken = cpusToLeave(pod, state);
  if (lost.equals(before)) return undefined;
  noteRevoked(host, pod.uid, lost);
  const cpus = runningCpus(pod);
  const isParked = cpus.isSubsetOf(lost);
  const followed = isParked
    ? threads.park(sharedPool(state, cpusNow(host.topology)))
    : threads.widen(cpus.difference(taken), pod);
  const returned = before.difference(lost).intersection(cpus);
  return { pod, lost, substitutes: CpuSet.EMPTY, revoked: lost, returned, error, isParked, followed };
}

function carryOut<T>(
  host: Host,
  grant: PodAssignment,
  defaults: Placement,
  threads: ParkableFollowers<T>,
): Promise<Substitution<T> | undefined> {
  return transact(host, undefined, async (state, commit) => {
    if (commit.refusal) throw commit.refusal;
    if (!settledGrant(state, grant)) return undefined;
    const before = heldGrant(host, state, grant);
    const { pod, lost, error } = substituted(host, state, before, defaults);
    // Another process was faster, or the CPUs are back.
    if (pod === before) return revoke(host, state, { pod, lost, error }, threads);
    const present = cpusNow(host.topology);
    const [cpus, after] = [runningCpus(before), runningCpus(pod)];
    const left = cpus.intersection(present.online);
    const next = replacePod(state, pod);
    const kept = left.intersection(after);
    try {
      // The grant may give up online CPUs too, such as the SMT sibling of a lost one. After the
      // commit these may belong to another grant.
      if (!kept.equals(left) && !kept.isEmpty) threads.narrow(kept);
      if (!left.isEmpty && kept.isEmpty) {
        threads.checkCanLeave();
        threads.park(sharedPool(next, present));
      }
    } catch (failure) {
      if (!(failure instanceof NumalignError)) throw failure;
      return revoke(host, state, { pod: before, lost, error: failure }, threads);
    }
    try {
      await commit(next, true);
    } catch (failure) {
      if (!left.isEmpty) threads.widen(cpus, before);
      throw failure;
    }
    const revoked = after.intersection(lost);
    noteRevoked(host, pod.uid, revoked);
    const isParked = after.isSubsetOf(lost);
    const followed = isParked
      ? threads.park(sharedPool(next, present))
      : threads.widen(after.difference(cpusToLeave(pod, state)), pod);
    const substitutes = after.difference(cpus);
    return { pod, lost, substitutes, revoked, returned: CpuSet.EMPTY, error, isParked, followed };
  });
}

interface Outlook {
  /** The same object if nothing is lost, or nothing can replace it. */
  readonly pod: PodAssignment;
  readonly lost: CpuSet;
  /** Why a container gets no substitutes. */
  readonly error: NumalignError | null;
}

/** The kubelet's CPUs, if the pod must leave them. */
const cpusToLeave = (pod: PodAssignment, { kubelet }: Assignments): CpuSet =>
  movesWhenTaken(pod) ? kubeletCpus(kubelet) : CpuSet.EMPTY;

function substituted(host: Host, state: Assignments, pod: PodAssignment, defaults: Placement): Outlook {
  const cpus = runningCpus(pod);
  const lost = cpus.difference(onlineCpus(host.topology)).union(cpus.intersection(cpusToLeave(pod, state)));
  const placement = placementUnder(state.settings.kubeletVersion, recordedPlacement(pod, defaults));
  let now = pod;
  let error: NumalignError | null = null;
  for (let i = 0; i < pod.containers.length; i++) {
    const container = now.containers[i]!;
    if (!container.cpus.intersects(lost)) continue;
    try {
      const allocation = allocationFor(host, replacePod(state, now), now, { container, placement });
      now = withAllocation(now, container, allocation);
    } catch (failure) {
      if (!(failure instanceof Refusal)) throw failure;
      error ??= failure as NumalignError;
    }
  }
  return { pod: now, lost, error };
}

/**
 * The CPUs of a container after a loss: those that are left, and others for the rest.
 * @throws {@link Refusal}
 */
function allocationFor(
  { topology, resources }: Host,
  state: Assignments,
  pod: PodAssignment,
  { container, placement }: { readonly container: ContainerAssignment; readonly placement: Placement },
): CpuAllocation {
  const now = cpusNow(topology, state.pods);
  // CPUs that the kubelet took count as offline.
  const taken = cpusToLeave(pod, state);
  const present = taken.isEmpty ? now : { ...now, online: now.online.difference(taken) };
  const { name, kind, cpus, held, memory, devices } = container;
  const nodes = container.hint.nodes ?? topology.nodesOf(cpus);
  // An aligned container must stay aligned: its memory and devices do not move.
  const mustStay =
    placement.topologyPolicy === 'restricted' || placement.topologyPolicy === 'single-numa-node';
  const usable = pod.owner.kind === 'process' ? topology.allowed : topology.cpus;
  const near = cpusOfNodes(topology, nodes, placement.alignBySocket);
  const request = { name, kind, requests: { cpu: cpus.size * MILLI } };
  const first = firstDraft(
    { topology, present, state, resources },
    {
      placement,
      pool: poolOf(pod),
      pod: guaranteedPod(pod, request),
      allowed: mustStay ? usable.intersection(near) : usable,
    },
  );
  const kept = onlineCpusKept(first, { cpus, held });
  // All that the pod has is taken in `state`, so that none of it is allocated twice.
  const draft: Draft = withKept(first, { ...kept, memory, devices }, cpusOf(pod));
  const allocation = allocateCpus(draft, cpuFit(draft, request), { nodes });
  const left = { ...draft, ...cpusLeft(draft, request, allocation) };
  checkSharedPool(left);
  checkRoom(left);
  return allocation;
}

/** Replaces the CPUs of one container, in all that share them and in the booking. */
function withAllocation(
  pod: PodAssignment,
  { cpus, held }: ContainerAssignment,
  allocation: CpuAllocation,
): PodAssignment {
  const lost = cpus.union(held).difference(allocation.cpus).difference(allocation.held);
  const addedHeld = allocation.held.difference(held);
  const added = [...allocation.cpus.difference(cpus)];
  const substitutes = new Map([...cpus.difference(allocation.cpus)].map((cpu, i) => [cpu, added[i]!]));
  const replaced = (set: CpuSet) => CpuSet.from([...set].map((cpu) => substitutes.get(cpu) ?? cpu));
  const after = <Has extends CpuAllocation>(has: Has): Has => {
    const running = replaced(has.cpus);
    return { ...has, cpus: running, held: has.held.difference(lost).union(addedHeld.difference(running)) };
  };
  const containers = pod.containers.map((each) => {
    if (!each.cpus.union(each.held).intersects(lost)) return each;
    const next = after(each);
    const isLeft = !each.reusable.cpus.isEmpty;
    const reusable = { ...each.reusable, cpus: isLeft ? next.cpus.union(next.held) : CpuSet.EMPTY };
    return { ...next, reusable };
  });
  return { ...pod, containers, booking: pod.booking && after(pod.booking) };
}
