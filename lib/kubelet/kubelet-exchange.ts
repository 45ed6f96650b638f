// Takes the pods of the kubelet's state files over into a state. Pure.
import { type Assignments, findPod } from '../account/assignments.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { withAdopted } from '../adoption/adopted-state.js';
import { NumalignError } from '../base/errors.js';
import type { Topology } from '../machine/topology.js';
import { bookingConflicts, poolConflicts, refuse } from './import-conflicts.js';
import { bookedWith, podsOf } from './kubelet-pods.js';
import type { ImportFacts, KubeletStates } from './kubelet-states.js';

/**
 * The state with the pods of the kubelet's files, and which they are. What the files do not say is
 * as it is for a pod that nobody knows more of: named by its uid, running, persistent.
 * @throws ERR_POD_CONFLICT where a grant of a pod's uid is on record; ERR_KUBELET_IMPORT where what
 *   the files say contradicts itself, the machine, or what others hold: then nothing is taken over
 */
export function withKubeletPods(
  state: Assignments,
  topology: Topology,
  states: KubeletStates,
  facts: ImportFacts,
): { readonly next: Assignments; readonly pods: readonly PodAssignment[] } {
  const pods = podsOf(states, facts);
  const known = pods.find(({ uid }) => findPod(state, uid));
  if (known) {
    throw new NumalignError('ERR_POD_CONFLICT', `pod ${known.uid} is admitted already: release it first`, {
      value: known.uid,
      valid: 'uids that no grant has',
    });
  }
  const booked = bookedWith(state.memory, states.memory);
  const { conflicts, ...adopted } = withAdopted(state, topology, pods, booked, facts.present);
  refuse([...bookingConflicts(pods, states), ...poolConflicts(pods, states), ...conflicts]);
  return adopted;
}
