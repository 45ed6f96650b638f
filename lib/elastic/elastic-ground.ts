// The state and machine on which decisions about elastic grants are based.
import type { Assignments } from '../account/assignments.js';
import { cpusNow } from '../account/cpus-now.js';
import { removePods } from '../account/pod-changes.js';
import { assignmentsOf } from '../admission/on-record.js';
import type { Site } from '../admission/site.js';
import type { ResizeFacts } from '../decision/resized-pod.js';

/** The recorded state without the grants of dead owners. */
export function livingState(site: Site): Assignments {
  const { ledger } = site;
  const recorded = assignmentsOf(site, ledger.read());
  return removePods(recorded, new Set(ledger.owners.deadPods(recorded.pods).map(({ uid }) => uid)));
}

export const groundOf = ({ topology, resources }: Site, state: Assignments): ResizeFacts => ({
  ...{ topology, resources, state },
  present: cpusNow(topology, state.pods),
});
