// The merge of topology hints as the kubelet walks it: every combination of one hint per list, one
// after the other. Slow, and plain to read: the results of lib/decision/hints/merge-hints.ts, which
// uses a formula, are compared with it.

export interface WalkedHint {
  /** null: no restriction on nodes. */
  readonly nodes: Iterable<number> | null;
  readonly preferred: boolean;
}

/**
 * The hints of one resource. null: the provider does not care; an empty list: nothing can satisfy
 * the request.
 */
export type HintList = Iterable<WalkedHint> | null;

export interface WalkedResult {
  readonly hint: { readonly nodes: number[] | null; readonly preferred: boolean };
  readonly admitted: boolean;
}

// One combination of hints, or one hint, with its nodes as a set; null as above.
interface Hint {
  readonly nodes: ReadonlySet<number> | null;
  readonly preferred: boolean;
}

interface Candidate {
  readonly nodes: ReadonlySet<number>;
  readonly preferred: boolean;
}

type Policy = 'none' | 'best-effort' | 'restricted' | 'single-numa-node';

function hintsOf(list: HintList): Hint[] {
  if (list === null) return [{ nodes: null, preferred: true }];
  const hints = Array.from(list, ({ nodes, preferred }) => ({ nodes: nodes && new Set(nodes), preferred }));
  return hints.length === 0 ? [{ nodes: null, preferred: false }] : hints;
}

function* combinations(lists: readonly Hint[][]): Generator<Hint[]> {
  const [first, ...others] = lists;
  if (!first) yield [];
  else for (const hint of first) for (const rest of combinations(others)) yield [hint, ...rest];
}

const isSame = (a: ReadonlySet<number>, b: ReadonlySet<number>) =>
  a.size === b.size && [...a].every((x) => b.has(x));

const binaryValue = (nodes: ReadonlySet<number>) =>
  [...nodes].reduce((sum, node) => sum + 2n ** BigInt(node), 0n);

/**
 * The nodes that all hints have in common; preferred where every hint is, and all that name nodes
 * name the same.
 */
function intersect(combination: readonly Hint[], allNodes: readonly number[]): Candidate {
  const masks = combination.flatMap(({ nodes }) => (nodes === null ? [] : [nodes]));
  return {
    nodes: new Set(allNodes.filter((node) => masks.every((mask) => mask.has(node)))),
    preferred: combination.every((hint) => hint.preferred) && masks.every((mask) => isSame(mask, masks[0]!)),
  };
}

/**
 * The widest of the lists' narrowest masks: the number of nodes that a hint which is not preferred
 * should have.
 */
function bestCount(lists: readonly Hint[][]): number {
  const narrowest = lists.map((hints) =>
    Math.min(...hints.flatMap(({ nodes }) => (nodes === null ? [] : [nodes.size]))),
  );
  return Math.max(0, ...narrowest.filter(Number.isFinite));
}

/**
 * Merges lists as the kubelet's Topology Manager does. `distances`: rows and columns by ascending
 * node id; only with `preferClosest`. A provider without any list counts as the list null.
 */
export function walkedMerge(
  lists: readonly HintList[],
  numaNodes: Iterable<number>,
  policy: Policy,
  preferClosest = false,
  distances: readonly (readonly number[])[] | null = null,
): WalkedResult {
  if (policy === 'none') return { hint: { nodes: null, preferred: false }, admitted: true };
  const allNodes = [...new Set(numaNodes)].sort((a, b) => a - b);
  let all = lists.map(hintsOf);
  if (policy === 'single-numa-node') {
    all = all.map((hints) =>
      hints.filter(({ nodes, preferred }) => preferred && (nodes === null || nodes.size === 1)),
    );
  }

  const meanDistance = (nodes: ReadonlySet<number>) => {
    let sum = 0;
    for (const a of nodes)
      for (const b of nodes) sum += distances![allNodes.indexOf(a)]![allNodes.indexOf(b)]!;
    return sum / nodes.size ** 2;
  };
  const isNarrower = (a: ReadonlySet<number>, b: ReadonlySet<number>) => {
    if (a.size !== b.size) return a.size < b.size;
    if (preferClosest && meanDistance(a) !== meanDistance(b)) return meanDistance(a) < meanDistance(b);
    return binaryValue(a) < binaryValue(b);
  };

  const wanted = bestCount(all);
  const isBetter = (candidate: Candidate, best: Candidate) => {
    if (candidate.preferred !== best.preferred) return candidate.preferred;
    const [n, m] = [candidate.nodes.size, best.nodes.size];
    // Of hints that are not preferred: as many nodes as wanted, else fewer (but as many as
    // possible), else more (but as few as possible).
    if (!candidate.preferred && n !== m && m <= wanted) return n <= wanted && n > m;
    return isNarrower(candidate.nodes, best.nodes);
  };

  let best: Candidate | undefined;
  for (const combination of combinations(all)) {
    const candidate = intersect(combination, allNodes);
    if (candidate.nodes.size > 0 && (!best || isBetter(candidate, best))) best = candidate;
  }
  const { nodes, preferred } = best ?? { nodes: new Set(allNodes), preferred: false };
  const isAnywhere = policy === 'single-numa-node' && nodes.size === allNodes.length;
  return {
    hint: { nodes: isAnywhere ? null : [...nodes].sort((a, b) => a - b), preferred },
    admitted: policy === 'best-effort' || preferred,
  };
}
