// PublishedVersions: the versions of an object that this process has written, so that the watch
// does not take them for those of others.
import { isDeepStrictEqual } from 'node:util';
import type { KubernetesObject } from '../api-server/resource.js';
import type { NodeResourceTopology } from './node-resource-topology.js';

// A watch lags behind by fewer versions.
const MOST = 64;

export class PublishedVersions {
  readonly #versions = new Set<string>();
  #writing: NodeResourceTopology | undefined;

  get isWriting(): boolean {
    return this.#writing !== undefined;
  }

  /** The watch may show a version before the request for it is answered. */
  async during<T>(object: NodeResourceTopology, write: () => Promise<T>): Promise<T> {
    this.#writing = object;
    try {
      return await write();
    } finally {
      this.#writing = undefined;
    }
  }

  add({ metadata: { resourceVersion } }: KubernetesObject): void {
    if (resourceVersion === undefined) return;
    this.#versions.add(resourceVersion);
    const [oldest] = this.#versions;
    if (this.#versions.size > MOST) this.#versions.delete(oldest!);
  }

  /** Whether it is one of these versions, or equals the one being written. */
  has(object: KubernetesObject): boolean {
    if (this.#versions.has(object.metadata.resourceVersion ?? '')) return true;
    return this.#writing !== undefined && isSame(object, this.#writing);
  }
}

/** Whether two objects describe the same machine state, whatever their metadata. */
export function isSame(object: KubernetesObject, topology: NodeResourceTopology): boolean {
  const { attributes, topologyPolicies, zones } = object;
  return isDeepStrictEqual({ ...topology, attributes, topologyPolicies, zones }, topology);
}
