// QuietSettings: whether the kernel settings that quiet grants have changed are as these need them.
import type { Assignments } from '../account/assignments.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import type { Host } from '../admission/host.js';
import type { Comparison } from '../enforcement/drift.js';
import { quietPods } from '../quiet/kernel/demands.js';

const NOTHING: Comparison = { checked: 0, drifts: [] };

/**
 * Compares the kernel settings with what quiet grants need. If living processes own all these
 * grants, only the owners compare: it takes several reads for each interrupt of the machine, which
 * no other process should pay.
 */
export async function compareQuiet(host: Host, state: Assignments): Promise<Comparison> {
  const pods = quietPods(state.pods);
  if (pods.length === 0 && state.quiet === null) return NOTHING;
  const { owners } = host.ledger;
  const isOurs = ({ owner }: PodAssignment) => owner.kind !== 'process' || owners.isOwn(owner);
  const hasLeftover = state.quiet?.settings.some(({ isLeftover }) => isLeftover) ?? false;
  const isAbandoned = pods.length === 0 || hasLeftover;
  return isAbandoned || pods.some(isOurs) ? host.quieter.compare(state) : NOTHING;
}

/**
 * Whether the kernel or the record must be put right. A process may have ended before it wrote what
 * a remaining grant asks for, or before it restored the rest. Follows {@link compareQuiet}.
 */
export async function isQuietUnsettled(host: Host, state: Assignments): Promise<boolean> {
  // These settings could not be restored.
  if (state.quiet !== null && quietPods(state.pods).length === 0) return true;
  return (await compareQuiet(host, state)).drifts.length > 0;
}
