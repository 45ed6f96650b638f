// hint-merge: one hint out of those of all providers. Replayed through mergeHints.
import type { TopologyManagerPolicy } from '../../../lib/entries/kubelet.js';
import type { ProviderHints } from '../../../lib/entries/topology.js';
import { type Case, type Context, compareFields, failed, type Kind, type Result } from '../case.js';
import { packageHint, type RecordedHint, recordedHint } from '../hint.js';

type RecordedProvider = Readonly<Record<string, readonly RecordedHint[] | null>> | null;

interface HintMergeCase extends Case {
  readonly numaNodes: readonly number[];
  readonly distances: readonly (readonly number[])[] | null;
  readonly policy: TopologyManagerPolicy;
  readonly preferClosest: boolean;
  readonly providers: readonly RecordedProvider[];
}

// So many nodes are always merged exactly; more may be approximated, which the answer then says.
const EXACT_NODES = 8;

function run(theCase: Case, { numalign }: Context): Result {
  const vector = theCase as HintMergeCase;
  const { numaNodes, policy, preferClosest, distances } = vector;
  const providers = vector.providers.map((provider): ProviderHints => {
    if (provider === null) return null;
    const lists = Object.entries(provider).map(([resource, hints]) => [
      resource,
      hints?.map((hint) => packageHint(hint, numalign)) ?? null,
    ]);
    return Object.fromEntries(lists);
  });
  const { hint, admitted, exact } = numalign.mergeHints(providers, {
    numaNodes,
    policy,
    policyOptions: { 'prefer-closest-numa-nodes': preferClosest },
    ...(distances && { distances }),
  });
  if (!exact && numaNodes.length <= EXACT_NODES) return failed('an exact merge', 'one that is not');
  return compareFields(vector, { hint: recordedHint(hint), admit: admitted });
}

export const hintMerge: Kind = {
  name: 'hint-merge',

  matches({ numaNodes, policy, providers }) {
    return Array.isArray(numaNodes) && typeof policy === 'string' && Array.isArray(providers);
  },

  run,
};
