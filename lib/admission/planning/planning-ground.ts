// What pods are planned on.
import { randomUUID } from 'node:crypto';
import type { Assignments } from '../../account/assignments.js';
import { cpusNow } from '../../account/cpus-now.js';
import type { PodAssignment } from '../../account/pod-assignment.js';
import { removePods } from '../../account/pod-changes.js';
import type { CpuSnapshot } from '../../account/pools.js';
import { NEVER, type Question } from '../../decision/question.js';
import type { AdmissionRequest } from '../../input/request.js';
import { freeForStrict } from '../free-hugepages.js';
import { knownCheckpoint } from '../on-record.js';
import { PERSISTENT_OWNER } from '../placed-pod.js';
import type { ReadOnlySite } from '../site.js';

/** What pods are planned on: what is on record, without the grants of dead owners. */
export interface PlanningGround {
  readonly generation: number;
  readonly state: Assignments;
  readonly present: CpuSnapshot;
}

/** @throws ERR_STATE_CORRUPT where somebody who lives may hold more than is known */
export function planningGround(site: ReadOnlySite): PlanningGround {
  const { generation, assignments } = knownCheckpoint(site);
  const dead = site.ledger.owners.deadPods(assignments.pods);
  const state = dead.length === 0 ? assignments : withoutDead(assignments, dead);
  return { generation, state, present: cpusNow(site.topology, assignments.pods) };
}

interface Remainder {
  readonly dead: readonly PodAssignment[];
  readonly state: Assignments;
}

const remainders = new WeakMap<Assignments, Remainder>();

// The same object as long as the same are dead: what follows from it need not be found once more.
function withoutDead(assignments: Assignments, dead: readonly PodAssignment[]): Assignments {
  const last = remainders.get(assignments);
  if (last?.dead.length === dead.length && dead.every((pod, i) => pod === last.dead[i])) return last.state;
  const state = removePods(assignments, new Set(dead.map(({ uid }) => uid)));
  remainders.set(assignments, { dead, state });
  return state;
}

/** `uid`: by which the pod would be on record, where no custom provider must know it by another. */
export function planningQuestion(
  { topology, resources, providers }: ReadOnlySite,
  { state, present }: PlanningGround,
  request: AdmissionRequest,
  uid: string,
): Question {
  // A pod of this uid may be on its way to be admitted, and what providers hold for it must stay.
  const ownUid = providers.isEmpty ? uid : randomUUID();
  // Member by member: to add some to a spread object takes many times as long.
  return {
    topology,
    present,
    state,
    request,
    resources,
    providers: providers.list,
    owner: PERSISTENT_OWNER,
    uid: ownUid,
    trialUid: ownUid,
    now: NEVER,
    dryRun: true,
    hugepages: freeForStrict(request, topology),
  };
}
