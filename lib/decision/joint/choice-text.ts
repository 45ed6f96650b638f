// Explains to people why a pod is on its NUMA nodes. Pure.
import type { NodePreference } from '../../input/policies.js';
import type { NodeSet } from '../../machine/cpu-set.js';
import type { MergeResult, NodeChoice } from '../hints/merge-hints.js';

/** The choice for a container, or for the whole pod (null). */
interface Chosen {
  readonly container: string | null;
  readonly merged: MergeResult;
}

/** One line per choice. `joint` is undefined if the kubelet's way was better. */
export function choiceText(
  joint: { readonly within: NodeSet | undefined } | undefined,
  all: readonly Chosen[],
  prefer: NodePreference,
): string {
  if (!joint) return 'as the kubelet chooses: a joint choice finds no fewer or nearer nodes';
  const kept = joint.within
    ? [`the pod stays on ${named(joint.within)}, the fewest nodes that hold all of it`]
    : [];
  return [...kept, ...all.flatMap((chosen) => lineOf(chosen, prefer))].join('\n');
}

const named = (nodes: NodeSet) => `NUMA node${nodes.size === 1 ? '' : 's'} ${nodes}`;

function lineOf({ container, merged: { hint, choice } }: Chosen, prefer: NodePreference): string[] {
  if (!choice || !hint.nodes) return [];
  const { size } = hint.nodes;
  return [`${container ?? 'the pod'}: ${named(hint.nodes)}: ${reasons(choice, size, prefer).join(', ')}`];
}

function reasons({ sets, nearest, tightest }: NodeChoice, size: number, prefer: NodePreference): string[] {
  const what = size === 1 ? (n: number) => (n === 1 ? 'node' : 'nodes') : setsOf(size);
  if (sets === 1) return [`the only ${what(1)} that has all of it`];
  const found = [`${sets} ${what(sets)} have all of it`];
  if (nearest < sets) found.push(nearest === 1 ? 'this one is the nearest' : `${nearest} are the nearest`);
  if (nearest > 1 && tightest < nearest)
    found.push(tightest === 1 ? ROOM[prefer].one : `${tightest} ${ROOM[prefer].many}`);
  if (tightest > 1) found.push('it is the lowest of these');
  return found;
}

const ROOM = {
  packed: { one: 'it leaves the least free there', many: 'leave the least free there' },
  spread: { one: 'it has the most free', many: 'have the most free' },
} as const;

const setsOf = (size: number) => (n: number) => (n === 1 ? `set of ${size} nodes` : `sets of ${size} nodes`);
