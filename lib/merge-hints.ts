// The merge of topology hints under a policy: what the Topology Manager decides. The core does it without walking the cross product.
import { checkOptions, invalidOption } from './check-options.js';
import {
  parseTopologyPolicy,
  parseTopologyPolicyOptions,
  TOPOLOGY_MANAGER_POLICIES,
  type TopologyManagerPolicy,
  type TopologyManagerPolicyOptions,
} from './config.js';
import { NodeSet } from './cpu-set.js';
import { NumalignError } from './errors.js';
import { HintFamily, MAX_HINT_NODES, nodesAt, type TopologyHint } from './hints.js';
import { native, type Words } from './native.js';

/** What one hint provider answers: for each resource its hints, null for no preference, an empty list where it cannot be met; null: nothing to say. */
export type ProviderHints = Readonly<Record<string, HintFamily | Iterable<TopologyHint> | null>> | null;

export interface MergeOptions {
  /** The machine's NUMA nodes: at most 64. */
  numaNodes: Iterable<number>;
  policy: TopologyManagerPolicy;
  policyOptions?: TopologyManagerPolicyOptions;
  /** A row for each node with a distance to each node, both by ascending id. Without it `prefer-closest-numa-nodes` has no effect. */
  distances?: readonly (readonly number[])[];
}

export interface MergeResult {
  /** `nodes: null` with the policy `none`, and with `single-numa-node` where no provider has a preference. */
  readonly hint: TopologyHint;
  readonly admitted: boolean;
  /** False: on more than 16 nodes the search ran out of its budget, or devices are near several nodes; a better hint may exist. */
  readonly exact: boolean;
}

const MERGE_OPTIONS = ['numaNodes', 'policy', 'policyOptions', 'distances'] as const;

/** The machine as the merge sees it. */
export interface MergeSite {
  /** Ascending. */
  readonly numaNodes: readonly number[];
  readonly policy: TopologyManagerPolicy;
  /** Row by row; undefined: distances do not count. */
  readonly distances: Words | undefined;
}

/** Merges packed hints. REQUIRES: families of these NUMA nodes, 1 to 64 of them. */
export function mergeFamilies(
  families: readonly HintFamily[],
  { numaNodes, policy, distances }: MergeSite,
): MergeResult {
  const [low, high, flags] = native.mergeHints(
    // What has no preference plays no part.
    families.filter(({ isAny }) => !isAny).map((family) => family.words),
    numaNodes.length,
    TOPOLOGY_MANAGER_POLICIES.indexOf(policy),
    distances,
  ) as unknown as [number, number, number];
  return {
    hint: Object.freeze({ nodes: flags & 1 ? null : nodesAt([low, high], numaNodes), preferred: (flags & 2) !== 0 }),
    admitted: (flags & 4) !== 0,
    exact: (flags & 8) !== 0,
  };
}

/** The hints of one provider, packed. @throws ERR_INVALID_ARGUMENT */
export function packHints(hints: ProviderHints, numaNodes: readonly number[]): Record<string, HintFamily> {
  if (hints === null || hints === undefined) return {};
  if (typeof hints !== 'object' || Array.isArray(hints)) {
    throw new NumalignError('ERR_INVALID_ARGUMENT', 'the hints of a provider must be an object by resource, or null', {
      value: hints,
      valid: '{ [resource]: hints }',
    });
  }
  return Object.fromEntries(
    Object.entries(hints).map(([resource, given]) => {
      if (!(given instanceof HintFamily)) return [resource, HintFamily.from(given, numaNodes)];
      const isOfMachine =
        given.numaNodes.length === numaNodes.length && given.numaNodes.every((id, i) => id === numaNodes[i]);
      const isFamily = given.words instanceof Uint32Array && native.isHintFamily(given.words, numaNodes.length);
      if (isOfMachine && isFamily) return [resource, given];
      throw new NumalignError('ERR_INVALID_ARGUMENT', `the hints for ${resource} are of another machine, or none`, {
        value: given.numaNodes,
        valid: numaNodes,
      });
    }),
  );
}

function parseDistances(distances: unknown, count: number): Words {
  const isRight =
    Array.isArray(distances) &&
    distances.length === count &&
    distances.every(
      (row) =>
        Array.isArray(row) && row.length === count && row.every((d) => Number.isInteger(d) && d >= 0 && d <= 0xffff),
    );
  if (!isRight) invalidOption('distances', distances, `${count} rows of ${count} numbers`);
  return Uint32Array.from((distances as number[][]).flat());
}

/**
 * Merges the hints of all providers under a policy, as the kubelet's Topology Manager does.
 * @throws ERR_INVALID_OPTION, ERR_INVALID_ARGUMENT for hints of another shape or other nodes
 */
export function mergeHints(providers: readonly ProviderHints[], options: MergeOptions): MergeResult {
  if (!Array.isArray(providers)) invalidOption('providers', providers, 'a list of what each provider answers');
  checkOptions(options, MERGE_OPTIONS, 'mergeHints');
  const numaNodes = NodeSet.from(options.numaNodes).toArray();
  if (numaNodes.length < 1 || numaNodes.length > MAX_HINT_NODES) {
    invalidOption('numaNodes', numaNodes, `1 to ${MAX_HINT_NODES} NUMA nodes`);
  }
  const policy = parseTopologyPolicy(options.policy);
  const { preferClosest, maxNumaNodes } = parseTopologyPolicyOptions(options.policyOptions);
  if (policy !== 'none' && numaNodes.length > maxNumaNodes) {
    invalidOption('numaNodes', numaNodes, `at most ${maxNumaNodes} NUMA nodes`);
  }
  const distances =
    preferClosest && options.distances ? parseDistances(options.distances, numaNodes.length) : undefined;
  const families = providers.flatMap((hints) => Object.values(packHints(hints, numaNodes)));
  return mergeFamilies(families, { numaNodes, policy, distances });
}
