// PodManifests: the pods of the API server, for a container that waits.
import type { Condition } from '../base/condition.js';
import { ApiError } from './api-error.js';
import { ApiServer, type ApiServerOptions } from './api-server.js';
import type { KubernetesObject } from './resource.js';

// A runtime waits for a plugin at most 2 s, and the plugin for the lock of the state 1 s.
const DEADLINE_MS = 500;

export class PodManifests {
  readonly #apiServer: ApiServer;
  // Of the last request.
  #flaw: string | undefined;

  /** @throws like ApiServer */
  constructor(options: ApiServerOptions = {}) {
    this.#apiServer = new ApiServer({ deadlineMs: DEADLINE_MS, patienceMs: 0, ...options });
  }

  /** Null if there is no such pod. @throws ApiError */
  readonly find = async ({
    namespace,
    name,
  }: {
    readonly namespace: string;
    readonly name: string;
  }): Promise<KubernetesObject | null> => {
    const pods = { group: '', version: 'v1', plural: 'pods', namespace };
    try {
      const manifest = await this.#apiServer.get(pods, name);
      this.#flaw = undefined;
      return manifest;
    } catch (error) {
      const isNone = error instanceof ApiError && error.code === 'ERR_API_NOT_FOUND';
      this.#flaw = isNone ? undefined : (error as Error).message;
      if (isNone) return null;
      throw error;
    }
  };

  /** Without manifests, containers are placed one by one. */
  get condition(): Condition {
    const text = this.#flaw ?? 'manifests of pods are found';
    return { part: 'whole-pods', isMet: this.#flaw === undefined, isVital: false, text };
  }

  async start(): Promise<void> {}

  async close(): Promise<void> {
    this.#apiServer.close();
  }
}
