// Lists of objects, as the API server answers them.
import { ApiError } from './api-error.js';
import { type KubernetesObject, pathOf, queryOf, type Resource } from './resource.js';

export interface ObjectList {
  readonly objects: readonly KubernetesObject[];
  /** From which a watch goes on. */
  readonly version: string;
}

/** Chooses the object of a name. */
export const selectorOf = (name: string | undefined) =>
  name === undefined ? undefined : `metadata.name=${name}`;

/** An object has metadata; that of a bookmark has a version alone. */
export function isObject(value: unknown): value is KubernetesObject {
  const metadata = (value as { metadata?: unknown } | null | undefined)?.metadata;
  return typeof metadata === 'object' && metadata !== null;
}

/** How a resource is listed, all of it or the object of a name, and how the answer is read. */
export function listOf(resource: Resource, name?: string) {
  const path = pathOf(resource) + queryOf({ fieldSelector: selectorOf(name) });
  /** @throws ERR_API_ANSWER */
  const read = (answer: { items?: unknown; metadata?: { resourceVersion?: unknown } }): ObjectList => {
    const { items, metadata } = answer;
    const version = metadata?.resourceVersion;
    if (Array.isArray(items) && typeof version === 'string' && items.every(isObject))
      return { objects: items, version };
    throw new ApiError('ERR_API_ANSWER', `GET ${path}: the answer is no list of objects`);
  };
  return { path, read };
}
