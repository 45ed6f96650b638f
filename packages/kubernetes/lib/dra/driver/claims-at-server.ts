// ClaimsAtServer: ResourceClaims of the API server, in the newest version that it has.
import { ApiError } from '../../api-server/api-error.js';
import type { ApiServer } from '../../api-server/api-server.js';
import type { KubernetesObject, Resource } from '../../api-server/resource.js';
import type { ClaimName } from '../protocol/dra-server.js';

// Allocations are the same in all of them.
const VERSIONS = ['v1', 'v1beta2', 'v1beta1'] as const;

export class ClaimsAtServer {
  readonly #apiServer: Pick<ApiServer, 'get'>;
  // The one that has had a claim.
  #version: string | undefined;

  constructor(apiServer: Pick<ApiServer, 'get'>) {
    this.#apiServer = apiServer;
  }

  /** @throws ApiError: ERR_API_NOT_FOUND if there is no such claim, or no such resource */
  readonly read = async ({
    namespace,
    name,
  }: Pick<ClaimName, 'namespace' | 'name'>): Promise<KubernetesObject> => {
    let missing: unknown;
    for (const version of this.#version === undefined ? VERSIONS : [this.#version]) {
      const claims: Resource = { group: 'resource.k8s.io', version, plural: 'resourceclaims', namespace };
      try {
        const claim = await this.#apiServer.get(claims, name);
        this.#version = version;
        return claim;
      } catch (error) {
        if (!(error instanceof ApiError) || error.code !== 'ERR_API_NOT_FOUND') throw error;
        missing ??= error;
      }
    }
    // A server may have been upgraded, and have this version no more.
    this.#version = undefined;
    throw missing;
  };
}
