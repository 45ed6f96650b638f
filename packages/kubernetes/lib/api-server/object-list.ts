// ObjectList: lists of objects in the API server's answers.
import { ApiError } from './api-error.js';
import { type KubernetesObject, pathOf, queryOf, type Resource } from './resource.js';

export interface ObjectList {
  readonly objects: readonly KubernetesObject[];
  /** The version from which a watch continues. */
  readonly version: string;
}

/** The field selector for an object's name, or the one given. */
export const selectorOf = ({ name, fieldSelector }: { name?: string; fieldSelector?: string }) =>
  name === undefined ? fieldSelector : `metadata.name=${name}`;

/** An object has metadata; that of a bookmark only has a version. */
export function isObject(value: unknown): value is KubernetesObject {
  const metadata = (value as { metadata?: unknown } | null | undefined)?.metadata;
  return typeof metadata === 'object' && metadata !== null;
}

/** How to list a resource, completely or only what is selected, and how to read the answer. */
export function listOf(resource: Resource, fieldSelector?: string) {
  const path = pathOf(resource) + queryOf({ fieldSelector });
  /** @throws ERR_API_ANSWER */
  const read = (answer: { items?: unknown; metadata?: { resourceVersion?: unknown } }): ObjectList => {
    const { items, metadata } = answer;
    const version = metadata?.resourceVersion;
    if (Array.isArray(items) && typeof version === 'string' && items.every(isObject))
      return { objects: items, version };
    throw new ApiError('ERR_API_ANSWER', `GET ${path}: the answer is not a list of objects`);
  };
  return { path, read };
}
