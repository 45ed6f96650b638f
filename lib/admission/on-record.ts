// Reads what is on record at a site.
import { type Assignments, findPod } from '../account/assignments.js';
import { cpusNow } from '../account/cpus-now.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { removePods } from '../account/pod-changes.js';
import { NumalignError } from '../base/errors.js';
import { type FlagInputs, flagInputs } from '../decision/flags/flag-inputs.js';
import { type Flag, flagsOf, flagsOfEach } from '../decision/flags/flags.js';
import { type GrantInfo, grantInfo } from '../decision/grant-info.js';
import type { PodRequest } from '../input/pods/pod-resources.js';
import { podUnder } from '../input/pods/pod-resources.js';
import type { Checkpoint } from '../state/format/checkpoint.js';
import { freeOfBooked } from './free-hugepages.js';
import type { ReadOnlySite } from './site.js';

/** The present flags of a pod; none if it is off the record. */
export function flagsNow(site: ReadOnlySite, { uid, admittedAt }: PodAssignment): readonly Flag[] {
  const { topology, resources } = site;
  const state = recordedState(site);
  const pod = findPod(state, uid);
  if (pod?.admittedAt !== admittedAt) return [];
  const hugepages = freeOfBooked(state, topology);
  return flagsOf(pod, { state, topology, resources, present: cpusNow(topology), hugepages });
}

/**
 * The assignments on record.
 * @throws ERR_STATE_CORRUPT if a living owner may hold more than is known
 */
export function knownAssignments(site: ReadOnlySite): Assignments {
  return knownCheckpoint(site).assignments;
}

export function knownCheckpoint(site: ReadOnlySite): Checkpoint {
  const checkpoint = currentCheckpoint(site);
  if (checkpoint.refusal?.code === 'ERR_STATE_CORRUPT') throw checkpoint.refusal;
  return checkpoint;
}

/** The newest checkpoint, even a damaged one. @throws ERR_STATE_CORRUPT if it was removed */
export function currentCheckpoint(site: ReadOnlySite): Checkpoint {
  return presentCheckpoint(site, site.ledger.read());
}

/** What is on record now, also if it is damaged. @throws ERR_STATE_CORRUPT if it was removed */
export const recordedState = (site: ReadOnlySite): Assignments => currentCheckpoint(site).assignments;

/** What is on record now, without the grants of dead owners. @throws as {@link recordedState} */
export const livingState = (site: ReadOnlySite): Assignments => withoutDead(site, recordedState(site));

interface Remainder {
  readonly dead: readonly PodAssignment[];
  readonly state: Assignments;
}

const remainders = new WeakMap<Assignments, Remainder>();

/**
 * A state without the grants of dead owners: the same object while the same owners are dead, so that
 * derived values stay cached.
 */
export function withoutDead({ ledger }: ReadOnlySite, assignments: Assignments): Assignments {
  const dead = ledger.owners.deadPods(assignments.pods);
  if (dead.length === 0) return assignments;
  const last = remainders.get(assignments);
  if (last?.dead.length === dead.length && dead.every((pod, i) => pod === last.dead[i])) return last.state;
  const state = removePods(assignments, new Set(dead.map(({ uid }) => uid)));
  remainders.set(assignments, { dead, state });
  return state;
}

/** The assignments of a checkpoint. @throws ERR_STATE_CORRUPT if there is none */
export function assignmentsOf(site: ReadOnlySite, checkpoint: Checkpoint | undefined): Assignments {
  return presentCheckpoint(site, checkpoint).assignments;
}

function presentCheckpoint({ ledger }: ReadOnlySite, checkpoint: Checkpoint | undefined): Checkpoint {
  if (checkpoint) return checkpoint;
  throw new NumalignError(
    'ERR_STATE_CORRUPT',
    `the state file in ${ledger.path} was removed while it was in use; nothing is granted without it`,
  );
}

/** A pod as the kubelet of the settings takes it. @throws ERR_INVALID_POD, ERR_STATE_CORRUPT */
export function managedPod(site: ReadOnlySite, pod: PodRequest): PodRequest {
  return pod.resources ? podUnder(recordedState(site).settings, pod) : pod;
}

const flagFactsNow = ({ topology, resources }: ReadOnlySite, state: Assignments) => ({
  state,
  topology,
  resources,
  present: cpusNow(topology, state.pods),
  hugepages: freeOfBooked(state, topology),
});

/** What the flags of the state's grants depend on now. */
export const flagInputsNow = (site: ReadOnlySite, state: Assignments): FlagInputs =>
  flagInputs(flagFactsNow(site, state));

/** The facts of some grants of a state. */
export function grantInfos(
  site: ReadOnlySite,
  pods: readonly PodAssignment[],
  state: Assignments,
): GrantInfo[] {
  const dead = new Set(site.ledger.owners.deadPods(pods));
  const facts = flagFactsNow(site, state);
  // For some grants only, preparing to judge all of them would cost more than it saves.
  const flags = pods === state.pods ? flagsOfEach(facts) : (pod: PodAssignment) => flagsOf(pod, facts);
  return pods.map((pod) => grantInfo(pod, facts, { alive: !dead.has(pod), flags: flags(pod) }));
}
