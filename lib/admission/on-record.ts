// Reads what is on record at a host.
import { type Assignments, findPod } from '../account/assignments.js';
import { cpusNow } from '../account/cpus-now.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { removePods } from '../account/pod-changes.js';
import { NumalignError } from '../base/errors.js';
import { type FlagInputs, flagInputs } from '../decision/flags/flag-inputs.js';
import { type Flag, flagsOf, flagsOfEach } from '../decision/flags/flags.js';
import { type GrantInfo, grantInfo } from '../decision/grant-info.js';
import { type PodRequest, podUnder } from '../input/pods/pod-resources.js';
import type { Checkpoint } from '../state/format/checkpoint.js';
import { freeOfBooked } from './free-hugepages.js';
import type { ReadOnlyHost } from './host.js';

/** The present flags of a pod; none if it is off the record. */
export function flagsNow(host: ReadOnlyHost, { uid, admittedAt }: PodAssignment): readonly Flag[] {
  const { topology, resources } = host;
  const state = recordedState(host);
  const pod = findPod(state, uid);
  if (pod?.admittedAt !== admittedAt) return [];
  const hugepages = freeOfBooked(state, topology);
  return flagsOf(pod, { state, topology, resources, present: cpusNow(topology), hugepages });
}

/**
 * The assignments on record.
 * @throws ERR_STATE_CORRUPT if a living owner may hold more than is known
 */
export function knownAssignments(host: ReadOnlyHost): Assignments {
  return knownCheckpoint(host).assignments;
}

export function knownCheckpoint(host: ReadOnlyHost): Checkpoint {
  const checkpoint = currentCheckpoint(host);
  if (checkpoint.refusal?.code === 'ERR_STATE_CORRUPT') throw checkpoint.refusal;
  return checkpoint;
}

/** The newest checkpoint, even a damaged one. @throws ERR_STATE_CORRUPT if it was removed */
export function currentCheckpoint(host: ReadOnlyHost): Checkpoint {
  return presentCheckpoint(host, host.ledger.read());
}

/** What is on record now, also if it is damaged. @throws ERR_STATE_CORRUPT if it was removed */
export const recordedState = (host: ReadOnlyHost): Assignments => currentCheckpoint(host).assignments;

/** What is on record now, without the grants of dead owners. @throws as {@link recordedState} */
export const livingState = (host: ReadOnlyHost): Assignments => withoutDead(host, recordedState(host));

interface Remainder {
  readonly dead: readonly PodAssignment[];
  readonly state: Assignments;
}

const remainders = new WeakMap<Assignments, Remainder>();

/**
 * A state without the grants of dead owners: the same object while the same owners are dead, so that
 * derived values stay cached.
 */
export function withoutDead({ ledger }: ReadOnlyHost, assignments: Assignments): Assignments {
  const dead = ledger.owners.deadPods(assignments.pods);
  if (dead.length === 0) return assignments;
  const last = remainders.get(assignments);
  if (last?.dead.length === dead.length && dead.every((pod, i) => pod === last.dead[i])) return last.state;
  const state = removePods(assignments, new Set(dead.map(({ uid }) => uid)));
  remainders.set(assignments, { dead, state });
  return state;
}

/** The assignments of a checkpoint. @throws ERR_STATE_CORRUPT if there is none */
export function assignmentsOf(host: ReadOnlyHost, checkpoint: Checkpoint | undefined): Assignments {
  return presentCheckpoint(host, checkpoint).assignments;
}

function presentCheckpoint({ ledger }: ReadOnlyHost, checkpoint: Checkpoint | undefined): Checkpoint {
  if (checkpoint) return checkpoint;
  throw new NumalignError(
    'ERR_STATE_CORRUPT',
    `the state file in ${ledger.path} was removed while it was in use; nothing is granted without it`,
  );
}

/** A pod as the kubelet of the settings takes it. @throws ERR_INVALID_POD, ERR_STATE_CORRUPT */
export function managedPod(host: ReadOnlyHost, pod: PodRequest): PodRequest {
  return pod.resources ? podUnder(recordedState(host).settings, pod) : pod;
}

const flagFactsNow = ({ topology, resources }: ReadOnlyHost, state: Assignments) => ({
  state,
  topology,
  resources,
  present: cpusNow(topology, state.pods),
  hugepages: freeOfBooked(state, topology),
});

/** What the flags of the state's grants depend on now. */
export const flagInputsNow = (host: ReadOnlyHost, state: Assignments): FlagInputs =>
  flagInputs(flagFactsNow(host, state));

/** The facts of some grants of a state. */
export function grantInfos(
  host: ReadOnlyHost,
  pods: readonly PodAssignment[],
  state: Assignments,
): GrantInfo[] {
  const dead = new Set(host.ledger.owners.deadPods(pods));
  const facts = flagFactsNow(host, state);
  // For some grants only, preparing to judge all of them would cost more than it saves.
  const flags = pods === state.pods ? flagsOfEach(facts) : (pod: PodAssignment) => flagsOf(pod, facts);
  return pods.map((pod) => grantInfo(pod, facts, { alive: !dead.has(pod), flags: flags(pod) }));
}
