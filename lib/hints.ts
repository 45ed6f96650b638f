// TopologyHint: what a hint provider answers and what the merge decides.
import type { NodeSet } from './cpu-set.js';

/** A set of NUMA nodes from which a request can be met, and whether it is as narrow as it could ever be. */
export interface TopologyHint {
  /** null: no restriction on nodes. */
  readonly nodes: NodeSet | null;
  readonly preferred: boolean;
}

/** What a provider without a preference answers, and what the policy `none` decides. */
export const ANY_NODES: TopologyHint = Object.freeze({ nodes: null, preferred: false });
