// Hints as cases record them, and from and to what the package has.
import type { TopologyHint } from '../../lib/entries/topology.js';
import type { Numalign } from './case.js';

export interface RecordedHint {
  /** null: no restriction on nodes. */
  readonly nodes: readonly number[] | null;
  readonly preferred: boolean;
}

export function recordedHint({ nodes, preferred }: TopologyHint): RecordedHint {
  return { nodes: nodes === null ? null : [...nodes], preferred };
}

export function packageHint({ nodes, preferred }: RecordedHint, { NodeSet }: Numalign): TopologyHint {
  return { nodes: nodes === null ? null : NodeSet.from(nodes), preferred };
}
