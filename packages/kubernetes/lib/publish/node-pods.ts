// NodePods: the pods of a node, as the API server knows them, for their fingerprint.
import type { ApiError } from '../api-server/api-error.js';
import type { ApiServer } from '../api-server/api-server.js';
import type { KubernetesObject, Resource } from '../api-server/resource.js';
import { type CountedPod, countedPod, isCounted } from './counted-pods.js';
import { podFingerprint } from './pod-fingerprint.js';

const PODS: Resource = { group: '', version: 'v1', plural: 'pods' };

const REFUSALS: ReadonlySet<string> = new Set(['ERR_API_FORBIDDEN', 'ERR_API_UNAUTHORIZED']);

const keyOf = ({ metadata }: KubernetesObject) => `${String(metadata.namespace)}/${metadata.name}`;

export interface NodePodsOptions {
  readonly apiServer: ApiServer;
  readonly nodeName: string;
  readonly changed: () => void;
  readonly failed: (error: ApiError) => void;
  readonly signal: AbortSignal;
}

export class NodePods {
  readonly #options: NodePodsOptions;
  readonly #pods = new Map<string, CountedPod>();
  #isListed = false;

  constructor(options: NodePodsOptions) {
    this.#options = options;
  }

  /** Whether the API server has listed the pods, and does not refuse to. */
  get isKnown(): boolean {
    return this.#isListed;
  }

  /**
   * The fingerprint beside zones with these resources. Undefined while the pods are unknown.
   */
  fingerprint(zoneResources: ReadonlySet<string>): string | undefined {
    if (!this.#isListed) return undefined;
    const counted = [...this.#pods.values()].filter((pod) => isCounted(pod, zoneResources));
    return podFingerprint(counted.map(({ hash }) => hash));
  }

  /** Follows the pods until the signal. Never throws. */
  async watch(): Promise<void> {
    const { apiServer, nodeName, signal, changed, failed } = this.#options;
    const onError = (error: ApiError) => {
      if (REFUSALS.has(error.code)) this.#isListed = false;
      failed(error);
      changed();
    };
    const options = { fieldSelector: `spec.nodeName=${nodeName}`, signal, failed: onError };
    for await (const event of apiServer.watch(PODS, options)) {
      if (event.type === 'LISTED') {
        this.#pods.clear();
        for (const object of event.objects) this.#put(object);
        this.#isListed = true;
      } else if (event.type === 'DELETED') this.#pods.delete(keyOf(event.object));
      else this.#put(event.object);
      changed();
    }
  }

  #put(object: KubernetesObject): void {
    this.#pods.set(keyOf(object), countedPod(object));
  }
}
