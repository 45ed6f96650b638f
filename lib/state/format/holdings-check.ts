// Checks that a state gives out nothing twice. Pure.
import type { Assignments } from '../../account/assignments.js';
import { heldCpus } from '../../account/cpus-of-pods.js';
import { deviceKeysOf, devicesOfPods } from '../../account/held-devices.js';
import { bookingFlaw } from '../../account/memory-of-pods.js';
import type { PodAssignment } from '../../account/pod-assignment.js';
import { cpusOf } from '../../account/pod-holdings.js';
import type { Steps } from '../../base/steps.js';
import { corrupt } from './sealed-json.js';

/**
 * @throws ERR_STATE_CORRUPT if two pods hold the same thing, or the booked memory differs from what
 *   pods hold
 */
export function checkHoldings({ pods, memory }: Pick<Assignments, 'pods' | 'memory'>): void {
  const clash = clashOf(pods);
  if (clash)
    corrupt(`${clash.what} is held by both ${clash.pods.map(({ uid }) => uid).join(' and ')}`, clash.what);
  const flaw = bookingFlaw(memory, pods);
  if (flaw !== undefined) corrupt(flaw, memory);
}

/** Like {@link checkHoldings}, in steps for a long list. @throws the same codes */
export function* holdingsSteps(assignments: Pick<Assignments, 'pods' | 'memory'>): Steps<void> {
  // Each call caches its result for the list.
  heldCpus(assignments.pods);
  yield;
  devicesOfPods(assignments.pods);
  yield;
  checkHoldings(assignments);
}

// Something that two pods hold. numalign never writes such a state. `what`: for example `CPU 3`.
function clashIn<T>(
  pods: readonly PodAssignment[],
  heldBy: (pod: PodAssignment) => Iterable<T>,
  nameOf: (item: T) => string,
) {
  const holder = new Map<T, PodAssignment>();
  for (const pod of pods) {
    for (const item of heldBy(pod)) {
      const other = holder.get(item);
      if (other) return { what: nameOf(item), pods: [other, pod] as const };
      holder.set(item, pod);
    }
  }
  return undefined;
}

/** The first CPU or device that two pods hold. Searches for it only if there is one. */
export function clashOf(pods: readonly PodAssignment[]) {
  return (
    (heldCpus(pods).isDisjoint ? undefined : clashIn(pods, cpusOf, (cpu) => `CPU ${cpu}`)) ??
    (devicesOfPods(pods).isDisjoint ? undefined : clashIn(pods, deviceKeysOf, (key) => `device ${key}`))
  );
}
