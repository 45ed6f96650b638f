// The merge of topology hints under a policy: what the Topology Manager decides. The core does it
// without walking the cross product.
import { types } from 'node:util';
import { checkOptions, invalidOption } from '../../base/check-options.js';
import { NumalignError } from '../../base/errors.js';
import { native } from '../../base/native.js';
import type { HintQuestion, JointCall } from '../../base/native-surface.js';
import type { Words } from '../../base/words.js';
import { parseTopologyPolicy, parseTopologyPolicyOptions } from '../../input/placement.js';
import {
  TOPOLOGY_MANAGER_POLICIES,
  type TopologyManagerPolicy,
  type TopologyManagerPolicyOptions,
} from '../../input/policies.js';
import { NodeSet } from '../../machine/cpu-set.js';
import { MAX_HINT_NODES } from '../../machine/hint-masks.js';
import { familyAt, HintFamily, hintAt, type TopologyHint, unorderedHints } from '../../machine/hints.js';

/**
 * What one hint provider answers: for each resource its hints, null for no preference, an empty
 * list where it cannot be met; null: nothing to say.
 */
export type ProviderHints = Readonly<Record<string, HintFamily | Iterable<TopologyHint> | null>> | null;

/** The options of {@link mergeHints}. */
export interface MergeOptions {
  /**
   * The NUMA nodes of the machine, at most 64.
   * @default required
   */
  numaNodes: Iterable<number>;
  /**
   * The policy to merge under.
   * @default required
   */
  policy: TopologyManagerPolicy;
  /**
   * Options of the Topology Manager.
   * @default none
   */
  policyOptions?: TopologyManagerPolicyOptions;
  /**
   * A row for each node with its distance to each node, both by ascending id.
   * `prefer-closest-numa-nodes` needs it.
   * @default none
   */
  distances?: readonly (readonly number[])[];
}

/** The result of {@link mergeHints}. */
export interface MergeResult {
  /**
   * `nodes: null` with the policy `none`, and with `single-numa-node` where no provider has a
   * preference.
   */
  readonly hint: TopologyHint;
  readonly admitted: boolean;
  /**
   * False: on more than 16 nodes the search ran out of its budget, or devices are near several
   * nodes; a better hint may exist.
   */
  readonly exact: boolean;
  /** How a joint choice was made; absent: the hints were merged, or all nodes are the same. */
  readonly choice?: NodeChoice;
}

/** Which sets of NUMA nodes a joint choice was made of. */
export interface NodeChoice {
  /** Those that have all of what is asked for, on as few nodes as can be. */
  readonly sets: number;
  /** Those of them whose nodes are as near to each other as the chosen ones. */
  readonly nearest: number;
  /** And that have as little free. */
  readonly tightest: number;
}

// Words of the merge's answer before the families.
const MERGED = 6;
const MERGE_OPTIONS = ['numaNodes', 'policy', 'policyOptions', 'distances'] as const;

/** The machine as the merge sees it. */
export interface MergeSite {
  /** Ascending. */
  readonly numaNodes: readonly number[];
  readonly policy: TopologyManagerPolicy;
  /** Row by row; undefined: distances do not count. */
  readonly distances: Words | undefined;
  /** For a joint choice; undefined: a merge as the kubelet's. */
  readonly joint?: JointCall | undefined;
}

/** Hints that are packed, or what the core is asked by for them. */
export type Hints = HintFamily | HintQuestion;

// The core's answer, good until the next call.
function askToMerge(hints: readonly Hints[], { numaNodes, policy, distances, joint }: MergeSite): Words {
  return native.mergeHints({
    hints,
    nodes: numaNodes.length,
    policy: TOPOLOGY_MANAGER_POLICIES.indexOf(policy),
    distances,
    joint,
  });
}

function resultOf(answer: Words, { numaNodes }: MergeSite): MergeResult {
  const flags = answer[2]!;
  const hint = hintAt(flags & 1 ? null : answer, (flags & 2) !== 0, numaNodes);
  const merged = { hint, admitted: (flags & 4) !== 0, exact: (flags & 8) !== 0 };
  const sets = answer[3]!;
  // Only of a joint choice; to spread an object takes many times as long as to make one.
  return sets === 0 ? merged : { ...merged, choice: { sets, nearest: answer[4]!, tightest: answer[5]! } };
}

/**
 * Merges hints. What the core is asked by becomes a family in the same step: `families` are all of
 * them, in the order of `hints`. REQUIRES: hints of these NUMA nodes, 1 to 64 of them.
 */
export function mergeOffered(
  hints: readonly Hints[],
  site: MergeSite,
): { readonly merged: MergeResult; readonly families: readonly HintFamily[] } {
  const answer = askToMerge(hints, site);
  // As long as it will be: one that grows takes several times as much.
  const families = new Array<HintFamily>(hints.length);
  let at = MERGED;
  for (let i = 0; i < hints.length; i++) {
    const each = hints[i]!;
    if (each instanceof HintFamily) {
      families[i] = each;
      continue;
    }
    const length = answer[at]!;
    families[i] = familyAt(answer, at + 1, length, site.numaNodes);
    at += 1 + length;
  }
  return { merged: resultOf(answer, site), families };
}

function noFamily(
  resource: string,
  { numaNodes: value }: HintFamily,
  numaNodes: readonly number[],
): NumalignError {
  return new NumalignError(
    'ERR_INVALID_ARGUMENT',
    `the hints for ${resource} are of another machine, or none`,
    {
      value,
      valid: numaNodes,
    },
  );
}

function isSameList(a: readonly number[], b: readonly number[]): boolean {
  if (a === b) return true;
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

const isFamily = ({ words, numaNodes: own }: HintFamily, numaNodes: readonly number[]) =>
  isSameList(own, numaNodes) && types.isUint32Array(words) && native.isHintFamily(words, numaNodes.length);

function checkHints(hints: ProviderHints): Exclude<ProviderHints, null> {
  if (hints === null || hints === undefined) return {};
  if (typeof hints === 'object' && !Array.isArray(hints)) return hints;
  throw new NumalignError(
    'ERR_INVALID_ARGUMENT',
    'the hints of a provider must be an object by resource, or null',
    {
      value: hints,
      valid: '{ [resource]: hints }',
    },
  );
}

/** The hints of one provider, packed. @throws ERR_INVALID_ARGUMENT */
export function packHints(hints: ProviderHints, numaNodes: readonly number[]): Record<string, HintFamily> {
  return Object.fromEntries(
    Object.entries(checkHints(hints)).map(([resource, given]) => {
      const family = given instanceof HintFamily ? given : HintFamily.from(given, numaNodes);
      if (isFamily(family, numaNodes)) return [resource, family];
      throw noFamily(resource, family, numaNodes);
    }),
  );
}

function parseDistances(distances: unknown, count: number): Words {
  const isRight =
    Array.isArray(distances) &&
    distances.length === count &&
    distances.every(
      (row) =>
        Array.isArray(row) &&
        row.length === count &&
        row.every((d) => Number.isInteger(d) && d >= 0 && d <= 0xffff),
    );
  if (!isRight) invalidOption('distances', distances, `${count} rows of ${count} numbers`);
  return Uint32Array.from((distances as number[][]).flat());
}

/**
 * Merges the hints of all providers under a policy, as the kubelet's Topology Manager does.
 * @throws ERR_INVALID_OPTION, ERR_INVALID_ARGUMENT for hints of another shape or other nodes
 */
export function mergeHints(providers: readonly ProviderHints[], options: MergeOptions): MergeResult {
  if (!Array.isArray(providers))
    invalidOption('providers', providers, 'a list of what each provider answers');
  checkOptions(options, MERGE_OPTIONS, 'mergeHints');
  const numaNodes = nodeIds(options.numaNodes);
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
  const families: HintFamily[] = [];
  for (const hints of providers) {
    const lists = checkHints(hints);
    for (const resource of Object.keys(lists)) {
      const given = lists[resource]!;
      const family = given instanceof HintFamily ? given : unorderedHints(given, numaNodes);
      families.push(family);
      if (!isSameList(family.numaNodes, numaNodes)) throw wrongFamily(providers, families, numaNodes)!;
    }
  }
  try {
    const site = { numaNodes, policy, distances };
    return resultOf(askToMerge(families, site), site);
  } catch (error) {
    // The words of families are looked at by the merge, where it gets them.
    throw wrongFamily(providers, families, numaNodes) ?? error;
  }
}

// The first of these families, which are the first that the providers gave, that is none.
function wrongFamily(
  providers: readonly ProviderHints[],
  families: readonly HintFamily[],
  numaNodes: readonly number[],
): NumalignError | undefined {
  const wrong = families.findIndex((family) => !isFamily(family, numaNodes));
  if (wrong < 0) return undefined;
  const resources = providers.flatMap((hints) => Object.keys(checkHints(hints)));
  return noFamily(resources[wrong]!, families[wrong]!, numaNodes);
}

// Ascending, each once.
function nodeIds(given: Iterable<number>): readonly number[] {
  return isAscending(given) ? given.slice() : NodeSet.from(given).toArray();
}

function isAscending(given: unknown): given is readonly number[] {
  if (!Array.isArray(given) || given.length === 0) return false;
  let last = -1;
  for (let i = 0; i < given.length; i++) {
    if (!Number.isInteger(given[i]) || given[i] <= last) return false;
    last = given[i];
  }
  return last <= NodeSet.MAX_ID;
}
