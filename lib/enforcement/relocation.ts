// Relocation: moves other processes on a grant to other CPUs of the grant. These are processes that
// are attached to it or have pinned threads for it, those that its owner has started, and those of
// the cgroup that owns it. Processes in groups of numalign move with the group, others by their
// masks.
import type { Assignments } from '../account/assignments.js';
import type { OwnerRecord, PodAssignment } from '../account/pod-assignment.js';
import {
  type Booked,
  cpusOf,
  type MovingPod,
  presentCpus,
  runningCpus,
  threadShares,
} from '../account/pod-holdings.js';
import { NumalignError, unlessRefused } from '../base/errors.js';
import { native } from '../base/native.js';
import { moveProcess } from '../machine/affinity.js';
import type { CpuSet } from '../machine/cpu-set.js';
import { isCgroupHere } from '../processes/cgroup-owner.js';
import type { Enforcer, Machine } from './enforcer.js';
import { childrenOf } from './members/descent.js';
import { processesIn } from './members/member-processes.js';
import { survivorsOf } from './members/survivors.js';

interface Tenant {
  readonly pid: number;
  /** The CPUs of a place that it may run on. */
  readonly cpusIn: (place: Booked) => CpuSet;
}

const ofAll = (place: Booked) => threadShares(place)[0].cpus;

const ofContainer = (container: string | null | undefined) => (place: Booked) =>
  place.containers.find(({ name }) => name === container)?.cpus ?? ofAll(place);

// Another cgroup may have the path now.
const processesOfOwner = ({ cgroup }: OwnerRecord): readonly number[] =>
  cgroup !== null && isCgroupHere(cgroup) ? processesIn(cgroup.path) : [];

/** `children`: the pids that this process has started. */
function tenantsOf(enforcer: Enforcer, pod: PodAssignment, children: readonly number[]): readonly Tenant[] {
  const { uid, owner } = pod;
  const registered = enforcer.members?.registry.look() ?? [];
  const attached = registered.flatMap(({ entry, doubt }) => {
    if (entry.kind !== 'process' || entry.pid === process.pid || doubt !== undefined) return [];
    if (entry.grant === uid) return [{ pid: entry.pid, cpusIn: ofContainer(entry.container) }];
    return entry.pinned?.includes(uid) ? [{ pid: entry.pid, cpusIn: ofAll }] : [];
  });
  const inCgroup = enforcer.mayMoveOwner(owner) ? processesOfOwner(owner) : [];
  const survivors = survivorsOf([owner]).get(owner.uuid) ?? [];
  const others = [...children, ...inCgroup, ...survivors.map(({ pid }) => pid)];
  const found = [...attached, ...others.map((pid) => ({ pid, cpusIn: ofAll }))];
  const visitedPids = new Set([process.pid]);
  const all: Tenant[] = [];
  // Children are wherever their parents are.
  for (let next = found; next.length > 0; ) {
    const fresh = next.filter(({ pid }) => !visitedPids.has(pid) && visitedPids.add(pid));
    all.push(...fresh);
    next = fresh.flatMap(({ pid, cpusIn }) => childrenOf(pid).map((child) => ({ pid: child, cpusIn })));
  }
  return all;
}

interface Relocation {
  readonly from: CpuSet;
  readonly to: Booked;
  /** The pids that this process has started. */
  readonly children?: readonly number[];
}

/**
 * Moves these processes off the CPUs that only `from` has. REQUIRES: the state's lock, and a record
 * in which the grant has both places.
 * @throws ERR_SYSCALL if one cannot move; ERR_ENFORCEMENT if those of the owner's cgroup must not
 */
export function relocate(
  { enforcer }: Pick<Machine, 'enforcer'>,
  pod: PodAssignment,
  { from, to, children = [] }: Relocation,
): void {
  const abandoned = from.difference(presentCpus(to));
  if (abandoned.isEmpty) return;
  const { owner } = pod;
  if (!enforcer.mayMoveOwner(owner) && processesOfOwner(owner).length > 0) {
    const message = `grant ${pod.uid} cannot move: others than root can write the state, which names the cgroup ${owner.cgroup!.path} that owns it`;
    const valid = 'a cgroup below the cgroup root, or a state that only root can write';
    throw new NumalignError('ERR_ENFORCEMENT', message, { value: owner.cgroup!.path, valid });
  }
  for (const { pid, cpusIn } of tenantsOf(enforcer, pod, children)) moveProcess(pid, abandoned, cpusIn(to));
}

/**
 * Calls a move off. Moves everything on the grant to where its containers are, before the other
 * CPUs of the move are given to others. REQUIRES: the state's lock.
 */
export function recall(machine: Machine, state: Assignments, pod: MovingPod): void {
  if (machine.topology.isSimulated) return;
  for (const { part, cpus } of threadShares(pod)) native.followGrant(pod.uid, part, cpus.words);
  machine.enforcer.apply(state);
  // The next round of reconciling reports what cannot leave.
  unlessRefused(() => relocate(machine, pod, { from: cpusOf(pod), to: pod }));
}

/** The pids of the other processes on a grant. */
export const tenantPids = (
  { enforcer }: Pick<Machine, 'enforcer'>,
  pod: PodAssignment,
  children: readonly number[],
): readonly number[] => tenantsOf(enforcer, pod, children).map(({ pid }) => pid);

/** @throws ERR_SYSCALL if a thread of this process is not on its share of a place */
export function checkThreads(uid: string, place: Booked): void {
  for (const { part, cpus } of threadShares(place)) {
    const [stray] = native.strayThreads(uid, part, cpus.words);
    if (!stray) continue;
    throw new NumalignError('ERR_SYSCALL', `thread ${stray.tid} has not moved to CPUs ${cpus}`, {
      syscall: 'sched_setaffinity',
      value: stray.tid,
      valid: runningCpus(place).toString(),
    });
  }
}
