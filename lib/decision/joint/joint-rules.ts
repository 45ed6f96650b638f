// JointRules: the input to a joint choice of NUMA nodes. Pure.
import type { NodeSet } from '../../machine/cpu-set.js';
import { maskOf } from '../../machine/hint-masks.js';
import type { Draft } from '../draft/draft.js';
import type { MergeRules } from '../hints/merge-hints.js';
import { roomsOf } from './rooms.js';

/** `within`: the nodes to choose from; undefined: all. */
export function jointRules(
  draft: Draft,
  policy: MergeRules['policy'],
  within: NodeSet | undefined,
): MergeRules {
  const { numaNodes, distances } = draft.topology;
  const joint = { within: maskOf(within ?? numaNodes, numaNodes), rooms: roomsOf(draft) };
  return { numaNodes, policy, distances, joint };
}
