// Why a pod is on the NUMA nodes that it is on, for people. Pure.
import type { NodeSet } from '../../machine/cpu-set.js';
import type { MergeResult, NodeChoice } from '../hints/merge-hints.js';

/** What was chosen for a container, or (null) for the whole pod. */
interface Chosen {
  readonly container: string | null;
  readonly merged: MergeResult;
}

/** A line for each choice. `joint`: undefined: the kubelet's was better. */
export function choiceText(
  joint: { readonly within: NodeSet | undefined } | undefined,
  all: readonly Chosen[],
): string {
  if (!joint) return 'as the kubelet chooses: no nodes that are chosen jointly are fewer or nearer';
  const kept = joint.within ? [`the pod is kept to ${named(joint.within)}, as few as hold all of it`] : [];
  return [...kept, ...all.flatMap(lineOf)].join('\n');
}

const named = (nodes: NodeSet) => `NUMA node${nodes.size === 1 ? '' : 's'} ${nodes}`;

function lineOf({ container, merged: { hint, choice } }: Chosen): string[] {
  if (!choice || !hint.nodes) return [];
  const { size } = hint.nodes;
  return [`${container ?? 'the pod'}: ${named(hint.nodes)}: ${reasons(choice, size).join(', ')}`];
}

function reasons({ sets, nearest, tightest }: NodeChoice, size: number): string[] {
  const what = size === 1 ? (n: number) => (n === 1 ? 'node' : 'nodes') : setsOf(size);
  if (sets === 1) return [`the only ${what(1)} that has all of it`];
  const found = [`${sets} ${what(sets)} have all of it`];
  if (nearest < sets) found.push(nearest === 1 ? 'this one is the nearest' : `${nearest} are the nearest`);
  if (nearest > 1 && tightest < nearest)
    found.push(tightest === 1 ? 'it leaves the least free there' : `${tightest} leave the least free there`);
  if (tightest > 1) found.push('it is the lowest of these');
  return found;
}

const setsOf = (size: number) => (n: number) => (n === 1 ? `set of ${size} nodes` : `sets of ${size} nodes`);
