// RefusalRules: which refusals concern the place, and which pods may be evicted because of them. Pure.
import type { ErrorCode } from 'numalign';
import { isShortage } from 'numalign/tools';
import type { KubernetesObject } from '../api-server/resource.js';
import { REFUSAL_ANNOTATION } from '../placement/annotations.js';

// Another node may have what is missing here. A mistake in the request is one there, too.
export const isOfPlace = (error: unknown): error is Error & { readonly code: ErrorCode } =>
  error instanceof Error && isShortage((error as { code?: ErrorCode }).code);

/** What is looked at of a Pod. */
interface PodObject {
  readonly metadata: {
    readonly uid?: string;
    readonly deletionTimestamp?: string;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly ownerReferences?: readonly { kind: string; name: string; uid: string; controller?: boolean }[];
  };
  readonly status?: { readonly phase?: string };
}

export interface Evictable {
  /** Of its controller, which replaces it; the pod's own without one. */
  readonly owner: string;
}

/** Why a pod whose container was refused must stay; or what to know for its eviction. */
export function evictable(object: KubernetesObject, uid: string): Evictable | string {
  const { metadata, status } = object as unknown as PodObject;
  const choice = metadata.annotations?.[REFUSAL_ANNOTATION];
  const owner = metadata.ownerReferences?.find(({ controller }) => controller);
  if (metadata.uid !== uid) return 'it has been replaced';
  if (metadata.deletionTimestamp !== undefined) return 'it is being deleted';
  if (choice === 'keep') return `its annotation ${REFUSAL_ANNOTATION} says so`;
  if (status?.phase !== 'Pending') return 'it has run';
  if (owner?.kind === 'Node') return 'it is a static pod';
  if (owner?.kind === 'DaemonSet') return 'its DaemonSet would replace it on this node';
  if (!owner && choice !== 'evict') return 'no controller would replace it';
  return { owner: owner?.uid ?? uid };
}
