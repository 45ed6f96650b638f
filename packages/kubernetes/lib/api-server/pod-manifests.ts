// PodManifests: the pods of the API server, for a container that waits.
import { ApiError } from './api-error.js';
import { ApiServer, type ApiServerOptions } from './api-server.js';
import type { KubernetesObject } from './resource.js';

// A runtime waits for a plugin at most 2 s, and the plugin for the lock of the state 1 s.
const DEADLINE_MS = 500;

export class PodManifests {
  readonly #apiServer: ApiServer;

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
      return await this.#apiServer.get(pods, name);
    } catch (error) {
      if (error instanceof ApiError && error.code === 'ERR_API_NOT_FOUND') return null;
      throw error;
    }
  };

  close(): void {
    this.#apiServer.close();
  }
}
