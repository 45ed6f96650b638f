// Why a pod is on the NUMA nodes that it is on, for people. Pure.
import type { NodeChoice } from '../hints/merge-hints.js';
import type { Offer, Progress } from '../progress.js';

/** A line for each choice; null: the kubelet's way was asked for. */
export function choiceText({ question, joint, offers }: Progress): string | null {
  if (question.request.placement.choice !== 'joint') return null;
  if (!joint) return 'as the kubelet chooses: no nodes that are chosen jointly are fewer or nearer';
  const kept = joint.within ? [`the pod is kept to NUMA nodes ${joint.within}, as few as hold it`] : [];
  return [...kept, ...offers.flatMap(lineOf)].join('\n');
}

function lineOf({ container, merged: { hint, choice } }: Offer): string[] {
  if (!choice || !hint.nodes) return [];
  const { size } = hint.nodes;
  const where = `NUMA node${size === 1 ? '' : 's'} ${hint.nodes}`;
  return [`${container ?? 'the pod'}: ${where}: ${reasons(choice, size).join(', ')}`];
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
