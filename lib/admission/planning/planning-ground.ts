// PlanningGround: the state and the CPUs that pods are planned on.
import { randomUUID } from 'node:crypto';
import type { Assignments } from '../../account/assignments.js';
import { cpusNow } from '../../account/cpus-now.js';
import type { PodAssignment } from '../../account/pod-assignment.js';
import { removePods } from '../../account/pod-changes.js';
import type { CpuSnapshot } from '../../account/pools.js';
import { NEVER, type Question } from '../../decision/question.js';
import type { AdmissionRequest } from '../../input/requests/request.js';
import { freeForStrict } from '../free-hugepages.js';
import { knownCheckpoint } from '../on-record.js';
import { PERSISTENT_OWNER } from '../placed-pod.js';
import type { ReadOnlySite } from '../site.js';

/** What pods are planned on: the state on record, without the grants of dead owners. */
export interface PlanningGround {
  readonly generation: number;
  readonly state: Assignments;
  readonly present: CpuSnapshot;
}

/** @throws ERR_STATE_CORRUPT if a living owner may hold more than is known */
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

// Returns the same object while the same owners are dead, so that derived values stay cached.
function withoutDead(assignments: Assignments, dead: readonly PodAssignment[]): Assignments {
  const last = remainders.get(assignments);
  if (last?.dead.length === dead.length && dead.every((pod, i) => pod === last.dead[i])) return last.state;
  const state = removePods(assignments, new Set(dead.map(({ uid }) => uid)));
  remainders.set(assignments, { dead, state });
  return state;
}

/** `uid` identifies the planned pod; custom providers get a random one instead. */
export function planningQuestion(
  { topology, resources, providers }: ReadOnlySite,
  { state, present }: PlanningGround,
  request: AdmissionRequest,
  uid: string,
): Question {
  // Providers may hold something for a pod of this uid that is just being admitted: that must stay.
  const planUid = providers.isEmpty ? uid : randomUUID();
  // Lists the members: a spread object with some more takes many times as long.
  return {
    topology,
    present,
    state,
    request,
    resources,
    providers: providers.list,
    owner: PERSISTENT_OWNER,
    uid: planUid,
    trialUid: planUid,
    now: NEVER,
    dryRun: true,
    hugepages: freeForStrict(request, topology),
  };
}
