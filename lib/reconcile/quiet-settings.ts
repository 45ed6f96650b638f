// The settings of the kernel that quiet grants have changed: whether they are as these need them.
import type { Assignments } from '../account/assignments.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import type { Site } from '../admission/site.js';
import type { Comparison } from '../enforcement/drift.js';
import { quietPods } from '../quiet/kernel/demands.js';

const NOTHING: Comparison = { checked: 0, found: [] };

/**
 * Left to the owners of quiet grants as far as these are processes that live: to look takes a read
 * for each interrupt of the machine, which no bystander must pay.
 */
export async function compareQuiet(site: Site, state: Assignments): Promise<Comparison> {
  const pods = quietPods(state.pods);
  if (pods.length === 0 && state.quiet === null) return NOTHING;
  const { owners } = site.ledger;
  const isOurs = ({ owner }: PodAssignment) => owner.kind !== 'process' || owners.isOwn(owner);
  return pods.length === 0 || pods.some(isOurs) ? site.quieter.compare(state) : NOTHING;
}
