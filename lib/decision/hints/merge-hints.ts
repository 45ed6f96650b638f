// Merges topology hints under a policy, as the Topology Manager does. The core avoids walking the
// cross product.
import { types } from 'node:util';
import { checkOptions, invalidOption } from '../../base/check-options.js';
import { NumalignError } from '../../base/errors.js';
import { native } from '../../base/native.js';
import type { HintQuestion, MergeRules } from '../../base/native-hints.js';
import type { AnswerReader, Words } from '../../base/words.js';
import { parsePlacement } from '../../input/placement.js';
import { PLACEMENT_OPTIONS } from '../../input/placement-options.js';
import { TOPOLOGY_MANAGER_POLICIES, type TopologyManagerPolicy } from '../../input/policies.js';
import type { TopologyManagerPolicyOptions } from '../../input/policy-options.js';
import { NodeSet } from '../../machine/cpu-set.js';
import { MAX_HINT_NODES } from '../../machine/hint-masks.js';
import { familyAt, HintFamily, hintAt, type TopologyHint, unorderedHints } from '../../machine/hints.js';

/**
 * The answer of one hint provider. By resource: its hints; null for no preference; an empty list if
 * the request does not fit. Null: no answer.
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
   * Options of the Topology Manager. Provisional ones have no effect here.
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
   * `nodes` is null under the policy `none`, and under `single-numa-node` if no provider has a
   * preference.
   */
  readonly hint: TopologyHint;
  /** Whether the policy admits a pod with this hint. */
  readonly admitted: boolean;
  /**
   * False if a better hint may exist: on more than 16 nodes the search ran out of its budget, or
   * devices are near several nodes.
   */
  readonly exact: boolean;
  /** How a joint choice was made. Absent if the hints were merged, or all nodes are equal. */
  readonly choice?: NodeChoice;
}

/** The sets of NUMA nodes that a joint choice had. */
export interface NodeChoice {
  /** Sets that hold the whole request on the fewest nodes. */
  readonly sets: number;
  /** Those of them whose nodes are as near to each other as the chosen ones. */
  readonly nearest: number;
  /** Those of the nearest that have as little free. */
  readonly tightest: number;
}

const MERGE_OPTIONS = ['numaNodes', 'policy', 'policyOptions', 'distances'] as const;

/** A policy as the core has it. */
export const policyAt = (policy: TopologyManagerPolicy): number => TOPOLOGY_MANAGER_POLICIES.indexOf(policy);

/** Packed hints, or a question to the core that yields them. */
export type Hints = HintFamily | HintQuestion;

/** The hints of one resource that went into a merge. */
export interface OfferedHints {
  /** The custom provider's name; null for numalign itself. */
  readonly provider: string | null;
  /** `cpu`, a memory type such as `hugepages-2Mi`, or the name of a device or custom resource. */
  readonly resource: string;
  /** The sets of NUMA nodes that could serve the request. */
  readonly hints: HintFamily;
}

/** The same before the merge. Types of memory have one question, in turn. */
export type AskedHints = Pick<OfferedHints, 'provider' | 'resource'> & { readonly hints: Hints };

function resultOf(answer: AnswerReader, { numaNodes }: MergeRules): MergeResult {
  const mask = [answer.word(), answer.word()];
  const isAny = answer.flag();
  const hint = hintAt(isAny ? null : mask, answer.flag(), numaNodes);
  const [admitted, exact] = [answer.flag(), answer.flag()];
  const [sets, nearest, tightest] = [answer.word(), answer.word(), answer.word()];
  // Only a joint choice has sets.
  return sets === 0
    ? { hint, admitted, exact }
    : { hint, admitted, exact, choice: { sets, nearest, tightest } };
}

const NOT_LISTED: Merged['offered'] = [];

/** The result of a merge, and what was merged, in its order; nothing if it is not listed. */
export interface Merged {
  readonly merged: MergeResult;
  readonly offered: readonly OfferedHints[];
}

/**
 * Merges hints. The core answers the questions among them in the same call. REQUIRES: hints of these 1
 * to 64 NUMA nodes.
 */
export const mergeOffered = (asked: readonly AskedHints[], rules: MergeRules): Merged =>
  readMerged(native.mergeHints(asked, rules), asked, rules);

/** `isListed`: whether the answer has the hints. */
export function readMerged(
  answer: AnswerReader,
  asked: readonly AskedHints[],
  rules: MergeRules,
  isListed = true,
): Merged {
  const merged = resultOf(answer, rules);
  if (!isListed) return { merged, offered: NOT_LISTED };
  // Allocated at full length: a growing array takes several times as long.
  const offered = new Array<OfferedHints>(asked.length);
  for (let i = 0; i < asked.length; i++) {
    const { provider, resource, hints } = asked[i]!;
    let family = hints instanceof HintFamily ? hints : undefined;
    if (i > 0 && hints === asked[i - 1]!.hints) family = offered[i - 1]!.hints;
    offered[i] = { provider, resource, hints: family ?? readFamily(answer, rules) };
  }
  return { merged, offered };
}

function readFamily(answer: AnswerReader, { numaNodes }: MergeRules): HintFamily {
  const length = answer.word();
  return familyAt(answer.words, answer.skip(length), length, numaNodes);
}

function noFamily(
  resource: string,
  { numaNodes: value }: HintFamily,
  numaNodes: readonly number[],
): NumalignError {
  return new NumalignError(
    'ERR_INVALID_ARGUMENT',
    `the hints for ${resource} are not hints of this machine`,
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

const isFamilyOf = ({ words, numaNodes: nodes }: HintFamily, numaNodes: readonly number[]) =>
  isSameList(nodes, numaNodes) && types.isUint32Array(words) && native.isHintFamily(words, numaNodes.length);

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

/** Packs the hints of one provider. @throws ERR_INVALID_ARGUMENT */
export function packHints(hints: ProviderHints, numaNodes: readonly number[]): Record<string, HintFamily> {
  return Object.fromEntries(
    Object.entries(checkHints(hints)).map(([resource, list]) => {
      const family = list instanceof HintFamily ? list : HintFamily.from(list, numaNodes);
      if (isFamilyOf(family, numaNodes)) return [resource, family];
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
 * Merges the hints of all providers under a policy, like the kubelet's Topology Manager.
 * @throws ERR_INVALID_OPTION, ERR_INVALID_ARGUMENT for hints of another shape or of other nodes
 */
export function mergeHints(providers: readonly ProviderHints[], options: MergeOptions): MergeResult {
  if (!Array.isArray(providers))
    invalidOption('providers', providers, 'a list of what each provider answers');
  checkOptions(options, MERGE_OPTIONS, 'mergeHints');
  const numaNodes = nodeIds(options.numaNodes);
  if (numaNodes.length < 1 || numaNodes.length > MAX_HINT_NODES) {
    invalidOption('numaNodes', numaNodes, `1 to ${MAX_HINT_NODES} NUMA nodes`);
  }
  const policy = PLACEMENT_OPTIONS.policy.check(options.policy, 'policy');
  const { preferClosest, maxNumaNodes } = parsePlacement({
    topologyManagerPolicyOptions: options.policyOptions,
  });
  if (policy !== 'none' && numaNodes.length > maxNumaNodes) {
    invalidOption('numaNodes', numaNodes, `at most ${maxNumaNodes} NUMA nodes`);
  }
  const distances =
    preferClosest && options.distances ? parseDistances(options.distances, numaNodes.length) : undefined;
  const families: { readonly hints: HintFamily }[] = [];
  for (const hints of providers) {
    const lists = checkHints(hints);
    for (const resource of Object.keys(lists)) {
      const list = lists[resource]!;
      const family = list instanceof HintFamily ? list : unorderedHints(list, numaNodes);
      families.push({ hints: family });
      if (!isSameList(family.numaNodes, numaNodes)) throw wrongFamily(providers, families, numaNodes)!;
    }
  }
  try {
    const rules = { numaNodes, policy: policyAt(policy), distances };
    return resultOf(native.mergeHints(families, rules), rules);
  } catch (error) {
    // The merge itself checks the words of families.
    throw wrongFamily(providers, families, numaNodes) ?? error;
  }
}

// The error for the first family that is not one of these nodes.
function wrongFamily(
  providers: readonly ProviderHints[],
  families: readonly { readonly hints: HintFamily }[],
  numaNodes: readonly number[],
): NumalignError | undefined {
  const wrong = families.findIndex(({ hints }) => !isFamilyOf(hints, numaNodes));
  if (wrong < 0) return undefined;
  const resources = providers.flatMap((hints) => Object.keys(checkHints(hints)));
  return noFamily(resources[wrong]!, families[wrong]!.hints, numaNodes);
}

// Ascending, without duplicates.
function nodeIds(nodes: Iterable<number>): readonly number[] {
  return isAscending(nodes) ? nodes.slice() : NodeSet.from(nodes).toArray();
}

function isAscending(nodes: unknown): nodes is readonly number[] {
  if (!Array.isArray(nodes) || nodes.length === 0) return false;
  let last = -1;
  for (let i = 0; i < nodes.length; i++) {
    if (!Number.isInteger(nodes[i]) || nodes[i] <= last) return false;
    last = nodes[i];
  }
  return last <= NodeSet.MAX_ID;
}
