// Finds grants on record, checks their owners, and gives them others.
import { type Assignments, findPod } from '../../account/assignments.js';
import type { CgroupIdentity, OwnerRecord, PodAssignment } from '../../account/pod-assignment.js';
import { removePods, replacePod, startContainer } from '../../account/pod-changes.js';
import { display } from '../../base/check-options.js';
import { NumalignError } from '../../base/errors.js';
import { survivorsOf } from '../../enforcement/members/survivors.js';
import type { LastingOwner } from '../../input/requests/owner.js';
import { hasEnded } from '../../processes/process-identity.js';
import type { Host, ReadOnlyHost } from '../host.js';
import { recordedState } from '../on-record.js';
import { type EnforcedCommit, FEW_CGROUPS, transact } from '../transact.js';

/** The grant as it is on record; undefined if it ended, even if another one has its uid now. */
export function findGrant(state: Assignments, { uid, admittedAt }: PodAssignment): PodAssignment | undefined {
  const pod = findPod(state, uid);
  return pod?.admittedAt === admittedAt ? pod : undefined;
}

/** The same. @throws ERR_UNKNOWN_GRANT; ERR_OWNER_ALIVE if another living process owns it */
export function heldGrant(host: Host, state: Assignments, grant: PodAssignment): PodAssignment {
  const pod = findGrant(state, grant);
  if (!pod) throw unknownGrant(grant.uid, state, host.ledger.path);
  checkReleasable(host, pod);
  return pod;
}

/**
 * Records that a container has started, and returns the pod with that.
 * @throws ERR_UNKNOWN_GRANT, ERR_OWNER_ALIVE
 */
export function markStarted(host: Host, grant: PodAssignment, container: string): Promise<PodAssignment> {
  const start = async (state: Assignments, commit: EnforcedCommit) => {
    const pod = heldGrant(host, state, grant);
    const next = startContainer(state, pod, container);
    const started = findPod(next, pod.uid)!;
    if (started.containers.some((each, i) => each !== pod.containers[i])) await commit(next, true);
    return started;
  };
  return transact(host, undefined, start, FEW_CGROUPS);
}

/** @throws ERR_OWNER_ALIVE if another living process owns the grant, or still hands it over */
export function checkReleasable({ ledger }: Host, { uid, owner, formerOwner }: PodAssignment): void {
  if (formerOwner !== null && ledger.owners.isProcessAlive(formerOwner)) {
    throw new NumalignError(
      'ERR_OWNER_ALIVE',
      `grant ${uid} is being handed over: threads of the process that had it before may still be on its CPUs`,
      { value: uid },
    );
  }
  if (owner.kind !== 'process' || ledger.owners.isOwn(owner) || !ledger.owners.isAlive(owner)) return;
  throw ownerAlive(uid, owner);
}

/** The error for a change of a grant that another living process owns. */
export function ownerAlive(uid: string, owner: OwnerRecord): NumalignError {
  const { pid, command } = owner;
  const survivors = survivorsOf([owner]).get(owner.uuid);
  if (survivors) {
    const left = hasEnded(pid!) ? 'has ended' : 'has given it up';
    const named = survivors.map((each) => `process ${each.pid} (${each.command})`).join(', ');
    return new NumalignError(
      'ERR_OWNER_ALIVE',
      `grant ${uid} belongs to process ${pid} (${command}), which ${left}, but what it started still runs on its CPUs: ${named}. End that to free them`,
      { value: uid, pid, command, survivors },
    );
  }
  return new NumalignError(
    'ERR_OWNER_ALIVE',
    `grant ${uid} belongs to process ${pid} (${command}), which still runs on its CPUs: end that process to free them`,
    { value: uid, pid, command },
  );
}

/** A grant on record by its uid. @throws ERR_UNKNOWN_GRANT; ERR_INVALID_ARGUMENT for no string */
export function findOnRecord(host: ReadOnlyHost, uid: string): PodAssignment {
  const state = recordedState(host);
  const pod = findPod(state, uid);
  if (!pod) throw unknownGrant(uid, state, host.ledger.path);
  return pod;
}

export function unknownGrant(uid: unknown, { pods }: Assignments, path: string): NumalignError {
  const valid = pods.map((pod) => pod.uid);
  if (typeof uid !== 'string') {
    const message = `the uid of a grant must be a string, not ${display(uid)}`;
    return new NumalignError('ERR_INVALID_ARGUMENT', message, { value: uid, valid });
  }
  const named = pods.filter(({ name }) => name === uid).map((pod) => pod.uid);
  const hint = named.length === 0 ? '' : `: that is the name of ${named.join(' and ')}; give the uid`;
  return new NumalignError('ERR_UNKNOWN_GRANT', `there is no grant "${uid}" in ${path}${hint}`, {
    value: uid,
    valid,
  });
}

/**
 * Records another owner, and returns the pod with it. It withdraws an offered transfer: there is no
 * process any more that could hand the grant over.
 * @throws ERR_INVALID_OPTION, ERR_UNKNOWN_GRANT, ERR_OWNER_ALIVE, the ledger's errors
 */
export function setOwner(host: Host, grant: PodAssignment, choice: LastingOwner): Promise<PodAssignment> {
  const { ledger } = host;
  const change = async (state: Assignments, commit: EnforcedCommit) => {
    const pod = heldGrant(host, state, grant);
    // This step has not checked all owners.
    if (!ledger.owners.isAlive(pod.owner))
      throw unknownGrant(pod.uid, removePods(state, new Set([pod.uid])), ledger.path);
    const owner = ledger.owners.recordFor(choice);
    if (isSameOwner(owner, pod.owner)) return pod;
    const owned = { ...pod, owner, transfer: null };
    await commit(replacePod(state, owned), true);
    return owned;
  };
  return transact(host, undefined, change, FEW_CGROUPS);
}

// It ignores the uuids, which always differ.
const isSameOwner = (a: OwnerRecord, b: OwnerRecord) =>
  a.kind === b.kind && keyOf(a.cgroup) === keyOf(b.cgroup);

const keyOf = (cgroup: CgroupIdentity | null) => cgroup && `${cgroup.device}:${cgroup.inode}`;
