// The Topology Manager: one way from a request to a committed grant, and back.
import { randomUUID } from 'node:crypto';
import type { SharedMembers } from '../cgroups/shared-members.js';
import type { Placement } from '../config.js';
import { CpuSet } from '../cpu-set.js';
import { NumalignError } from '../errors.js';
import { ANY_NODES, type TopologyHint } from '../hints.js';
import { native } from '../native.js';
import type { AcquireRequest } from '../request.js';
import {
  type Assignments,
  addPod,
  findPod,
  type OwnerRecord,
  type PodAssignment,
  removePods,
  sharedPool,
} from '../state/assignments.js';
import type { Checkpoint } from '../state/checkpoint.js';
import type { Commit, Ledger } from '../state/ledger.js';
import type { Topology } from '../topology.js';
import { allocateCpus } from './cpu-manager.js';

/** Where admission happens: a machine, its state, and who runs in its shared pool. */
export interface Site {
  readonly topology: Topology;
  readonly ledger: Ledger;
  readonly members: SharedMembers;
  readonly lockTimeoutMs: number;
}

/** Lock, reload, decide, shared members leave, commit. @throws ERR_INSUFFICIENT_CPUS, ERR_SHARED_POOL_EMPTY, and the ledger's errors. */
export function admit(site: Site, request: AcquireRequest, signal?: AbortSignal): Promise<PodAssignment> {
  const { topology, ledger, members } = site;
  return transact(site, signal, async (state, commit) => {
    const owner = request.owner === 'process' ? ledger.owners.ownRecord() : PERSISTENT_OWNER;
    const pod = decide({ topology, state, request, owner, uid: randomUUID(), now: new Date() });
    const next = addPod(state, pod);
    const leaving = members.confineTo(sharedPool(next, topology.cpus));
    if (leaving) await leaving;
    try {
      ledger.owners.claim(pod);
      await commit(next, true);
    } catch (error) {
      ledger.owners.disclaim(pod);
      throw error;
    }
    return pod;
  });
}

/** What {@link decide} looks at: all of it is input, nothing is read from the machine. */
export interface Question {
  readonly topology: Topology;
  readonly state: Assignments;
  readonly request: AcquireRequest;
  readonly owner: OwnerRecord;
  readonly uid: string;
  readonly now: Date;
}

/** Hints, merge, allocate. Pure. */
export function decide({ topology, state, request, owner, uid, now }: Question): PodAssignment {
  const hint: TopologyHint = ANY_NODES; // the policy `none`: no provider is asked
  const cpus = allocateCpus(topology, state, request, hint, topology.allowed);
  return {
    uid,
    name: request.name ?? uid,
    containers: [
      {
        name: 'main',
        kind: 'app',
        started: true,
        request: { cpu: request.cpu },
        cpus,
        held: CpuSet.EMPTY,
        hint,
        memory: [],
        devices: {},
        reusable: { cpus: CpuSet.EMPTY, memory: [], devices: {} },
        unknown: {},
      },
    ],
    policy: 'none',
    scope: 'container',
    options: policyOptions(request.placement),
    owner,
    enforcement: { level: 'recorded', target: null },
    admittedAt: now.toISOString(),
    unknown: {},
  };
}

/** How a grant ends: threads of this process leave its CPUs for the shared pool, and come back where that was in vain. */
export interface Vacate<T> {
  leave(pool: CpuSet): T;
  comeBack(left: T): void;
}

/**
 * Ends a grant: threads leave, commit. They leave first, under the lock: until the commit the CPUs are theirs, after it they may be anybody's.
 * @throws ERR_UNKNOWN_GRANT (the threads have left all the same), ERR_OWNER_ALIVE, and the ledger's errors.
 */
export function release<T>(site: Site, uid: string, vacate: Vacate<T>): Promise<T> {
  const { topology, ledger } = site;
  return transact(site, undefined, async (state, commit, recorded) => {
    const pod = findPod(recorded, uid);
    if (pod) checkReleasable(site, pod);
    const next = removePods(state, new Set([uid]));
    const left = vacate.leave(sharedPool(next, topology.cpus));
    if (!pod) throw unknownGrant(uid, state, ledger.path);
    try {
      await commit(next, true);
    } catch (error) {
      vacate.comeBack(left);
      throw error;
    }
    ledger.owners.disclaim(pod);
    return left;
  });
}

/** Gives this process's share of a grant up: true where a child still lives by it, else the grant is released. @throws ERR_OWNER_SHARED */
export function handOver<T>(site: Site, uid: string, vacate: Vacate<T>): Promise<boolean> {
  const { topology, ledger } = site;
  return transact(site, undefined, async (state, commit) => {
    const pod = findPod(state, uid);
    if (!pod) return false;
    const isAlive = ledger.owners.handOver(uid);
    vacate.leave(sharedPool(state, topology.cpus));
    if (!isAlive) await commit(removePods(state, new Set([uid])), true);
    return isAlive;
  });
}

function checkReleasable({ ledger }: Site, { uid, owner }: PodAssignment): void {
  if (owner.kind !== 'process' || ledger.owners.isOwn(owner) || !ledger.owners.isAlive(owner)) return;
  throw ownerAlive(uid, owner);
}

/** The error where somebody else's live grant was to be touched. */
export function ownerAlive(uid: string, { pid, command }: OwnerRecord): NumalignError {
  return new NumalignError(
    'ERR_OWNER_ALIVE',
    `grant ${uid} belongs to process ${pid} (${command}), which still runs on its CPUs: end that process, and they are free`,
    { value: uid, pid, command },
  );
}

export function unknownGrant(uid: string, { pods }: Assignments, path: string): NumalignError {
  return new NumalignError('ERR_UNKNOWN_GRANT', `there is no grant ${uid} in ${path}`, {
    value: uid,
    valid: pods.map((pod) => pod.uid),
  });
}

const PERSISTENT_OWNER: OwnerRecord = { kind: 'persistent', uuid: '', pid: null, command: null, unknown: {} };

function policyOptions(placement: Placement): Record<string, boolean> {
  return {
    'distribute-cpus-across-cores': placement.distributeAcrossCores,
    'distribute-cpus-across-numa': placement.distributeAcrossNuma,
    'prefer-align-cpus-by-uncorecache': placement.preferAlignByUncoreCache,
  };
}

/**
 * One step on the state for all processes: on `state`, without the grants of dead owners; `recorded` still has them. An opener has written the
 * first state, so that there always is one.
 */
export function transact<T>(
  site: Site,
  signal: AbortSignal | undefined,
  step: (state: Assignments, commit: Commit, recorded: Assignments) => Promise<T>,
): Promise<T> {
  const { ledger, topology, lockTimeoutMs } = site;
  return ledger.transact({ signal, lockTimeoutMs }, (checkpoint, commit) => {
    const recorded = assignmentsOf(site, checkpoint);
    const write: Commit = (next, isLast) => commit(withIdentities(next, topology), isLast);
    return step(withoutDead(site, recorded), write, recorded);
  });
}

/** The assignments of a checkpoint. @throws ERR_STATE_CORRUPT where there is none */
export function assignmentsOf({ ledger }: Site, checkpoint: Checkpoint | undefined): Assignments {
  if (checkpoint) return checkpoint.assignments;
  throw new NumalignError(
    'ERR_STATE_CORRUPT',
    `the state file in ${ledger.path} was removed while it was in use; nothing is granted without it`,
  );
}

/** The state with the machine's CPUs as they are now. */
export function withIdentities(state: Assignments, topology: Topology): Assignments {
  return { ...state, cpus: topology.locations.map((at) => [at.cpu, at.core, at.package, at.node]) };
}

/** The state less the grants of dead owners. Threads that ended Workers have left on their grants' CPUs move to the shared pool first. */
export function withoutDead({ ledger, topology }: Site, state: Assignments): Assignments {
  const { owners } = ledger;
  const pool = sharedPool(state, topology.cpus);
  for (const { uid, owner } of owners.orphans(state.pods)) {
    native.undoPin(uid, pool.words);
    native.closeOrphanedOwner(owner.uuid);
  }
  return removePods(state, new Set(owners.deadPods(state.pods).map((pod) => pod.uid)));
}
