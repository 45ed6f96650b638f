// KubeletExchange: imports the pods of the kubelet's state files into a state. Pure.
import { type Assignments, findPod } from '../account/assignments.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { withAdopted } from '../adoption/adopted-state.js';
import { NumalignError } from '../base/errors.js';
import type { Topology } from '../machine/topology.js';
import { bookingConflicts, poolConflicts, refuse } from './import-conflicts.js';
import { bookedWith, podsOf } from './kubelet-pods.js';
import type { ImportFacts, KubeletStates } from './kubelet-states.js';

/**
 * The state with the pods of the kubelet's files, and these pods. What the files do not say has
 * defaults: each pod is named by its uid, running and persistent.
 * @throws ERR_POD_CONFLICT if a grant with a pod's uid is on record; ERR_KUBELET_IMPORT if the
 *   files contradict themselves, the machine, or what others hold: then nothing is imported
 */
export function withKubeletPods(
  state: Assignments,
  topology: Topology,
  states: KubeletStates,
  facts: ImportFacts,
): { readonly next: Assignments; readonly pods: readonly PodAssignment[] } {
  const pods = podsOf(states, facts);
  const conflict = pods.find(({ uid }) => findPod(state, uid));
  if (conflict) {
    throw new NumalignError('ERR_POD_CONFLICT', `pod ${conflict.uid} is admitted already: release it first`, {
      value: conflict.uid,
      valid: 'uids that no grant has',
    });
  }
  const booked = bookedWith(state.memory, states.memory);
  const { conflicts, ...adopted } = withAdopted(state, pods, booked, {
    topology,
    present: facts.present,
  });
  refuse([...bookingConflicts(pods, states), ...poolConflicts(pods, states), ...conflicts]);
  return adopted;
}
