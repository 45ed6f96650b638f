// PodCondition: a condition of a pod, which says whether numalign has a place for its containers.
// Pure.
import type { KubernetesObject } from '../api-server/resource.js';

export const CONDITION = 'numalign.io/Placed';

const LONGEST_MESSAGE = 1024;

/** A strategic merge patch of a pod's status: other conditions stay. */
export function conditionPatch(status: 'True' | 'False', reason: string, message: string, now = new Date()) {
  const lastTransitionTime = now.toISOString().replace(/\.\d+Z$/, 'Z');
  const text = message.slice(0, LONGEST_MESSAGE);
  return {
    status: { conditions: [{ type: CONDITION, status, reason, message: text, lastTransitionTime }] },
  };
}

/** The message of the condition of a pod that has no place; undefined for any other pod. */
export function refusalIn({ status }: KubernetesObject): string | undefined {
  const { conditions = [] } = (status ?? {}) as { conditions?: readonly Record<string, string>[] };
  const found = conditions.find(({ type, status }) => type === CONDITION && status === 'False');
  return found && (found.message ?? '');
}
