// Finds grants on record, and checks their owners.
import { type Assignments, findPod } from '../../account/assignments.js';
import type { OwnerRecord, PodAssignment } from '../../account/pod-assignment.js';
import { startContainer } from '../../account/pod-changes.js';
import { display } from '../../base/check-options.js';
import { NumalignError } from '../../base/errors.js';
import { survivorsOf } from '../../enforcement/members/survivors.js';
import { hasEnded } from '../../processes/process-identity.js';
import { recordedState } from '../on-record.js';
import type { ReadOnlySite, Site } from '../site.js';
import { type EnforcedCommit, FEW_CGROUPS, transact } from '../transact.js';

/** The grant as it is on record; undefined if it ended, even if another one has its uid now. */
export function findGrant(state: Assignments, { uid, admittedAt }: PodAssignment): PodAssignment | undefined {
  const pod = findPod(state, uid);
  return pod?.admittedAt === admittedAt ? pod : undefined;
}

/** The same. @throws ERR_UNKNOWN_GRANT; ERR_OWNER_ALIVE if another living process owns it */
export function heldGrant(site: Site, state: Assignments, grant: PodAssignment): PodAssignment {
  const pod = findGrant(state, grant);
  if (!pod) throw unknownGrant(grant.uid, state, site.ledger.path);
  checkReleasable(site, pod);
  return pod;
}

/**
 * Records that a container has started, and returns the pod with that.
 * @throws ERR_UNKNOWN_GRANT, ERR_OWNER_ALIVE
 */
export function markStarted(site: Site, grant: PodAssignment, container: string): Promise<PodAssignment> {
  const start = async (state: Assignments, commit: EnforcedCommit) => {
    const pod = heldGrant(site, state, grant);
    const next = startContainer(state, pod, container);
    const started = findPod(next, pod.uid)!;
    if (started.containers.some((each, i) => each !== pod.containers[i])) await commit(next, true);
    return started;
  };
  return transact(site, undefined, start, FEW_CGROUPS);
}

/** @throws ERR_OWNER_ALIVE if another living process owns the grant, or still hands it over */
export function checkReleasable({ ledger }: Site, { uid, owner, formerOwner }: PodAssignment): void {
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
export function findOnRecord(site: ReadOnlySite, uid: string): PodAssignment {
  const state = recordedState(site);
  const pod = findPod(state, uid);
  if (!pod) throw unknownGrant(uid, state, site.ledger.path);
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
