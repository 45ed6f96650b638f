// The settings of the kernel that quiet grants have changed: whether they are as these need them.
import type { Assignments } from '../account/assignments.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import type { Site } from '../admission/site.js';
import type { Comparison } from '../enforcement/drift.js';
import { quietPods } from '../quiet/kernel/demands.js';

const NOTHING: Comparison = { checked: 0, found: [] };

/**
 * Left to the owners of quiet grants as far as these are processes that live: to look takes several
 * reads for each interrupt of the machine, which no bystander must pay.
 */
export async function compareQuiet(site: Site, state: Assignments): Promise<Comparison> {
  const pods = quietPods(state.pods);
  if (pods.length === 0 && state.quiet === null) return NOTHING;
  const { owners } = site.ledger;
  const isOurs = ({ owner }: PodAssignment) => owner.kind !== 'process' || owners.isOwn(owner);
  const hasLeftover = state.quiet?.settings.some(({ isLeftover }) => isLeftover) ?? false;
  const isAbandoned = pods.length === 0 || hasLeftover;
  return isAbandoned || pods.some(isOurs) ? site.quieter.compare(state) : NOTHING;
}

/**
 * Whether the kernel or the record is to be put right: a process may have ended before it wrote what a
 * grant asks for that lives on, or before it restored the rest. As {@link compareQuiet}.
 */
export async function isQuietUnsettled(site: Site, state: Assignments): Promise<boolean> {
  // What could not be restored.
  if (state.quiet !== null && quietPods(state.pods).length === 0) return true;
  return (await compareQuiet(site, state)).found.length > 0;
}
