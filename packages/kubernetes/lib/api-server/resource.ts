// Resource: resources of Kubernetes' API, and their objects.

/** A kind of objects, as in paths. */
export interface Resource {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  /** Left out for cluster-wide objects. */
  readonly namespace?: string;
  /** A part of an object with a path of its own, such as `status`. */
  readonly subresource?: string;
}

/** The known part of any object. */
export interface KubernetesObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: {
    readonly name: string;
    readonly uid?: string;
    readonly resourceVersion?: string;
    readonly [field: string]: unknown;
  };
  readonly [field: string]: unknown;
}

/** The path of a resource, or of one of its objects. */
export function pathOf(resource: Resource, name?: string): string {
  const { group, version, plural, namespace, subresource } = resource;
  const parts = [
    ...(group === '' ? ['api', version] : ['apis', group, version]),
    ...(namespace === undefined ? [] : ['namespaces', namespace]),
    plural,
    ...(name === undefined ? [] : [name]),
    ...(name === undefined || subresource === undefined ? [] : [subresource]),
  ];
  return parts.map((part) => `/${encodeURIComponent(part)}`).join('');
}

/** The query of a list or watch. */
export function queryOf(fields: Readonly<Record<string, string | undefined>>): string {
  const defined = Object.entries(fields).filter((field): field is [string, string] => field[1] !== undefined);
  return defined.length === 0 ? '' : `?${new URLSearchParams(defined)}`;
}
