// ClaimsAtServer: ResourceClaims of the API server, in the newest version that it has.
import { ApiError } from '../../api-server/api-error.js';
import type { ApiServer, CallOptions } from '../../api-server/api-server.js';
import type { KubernetesObject, Resource } from '../../api-server/resource.js';
import type { ClaimName } from '../protocol/dra-server.js';

type Named = Pick<ClaimName, 'namespace' | 'name'>;

// Allocations are the same in all of them.
const VERSIONS = ['v1', 'v1beta2', 'v1beta1'] as const;

const GROUP = 'resource.k8s.io';

/** The claims of a namespace, in a version such as `resource.k8s.io/v1`. */
export const claimsIn = (apiVersion: string | undefined, namespace: string): Resource => ({
  ...{ group: GROUP, version: apiVersion?.slice(GROUP.length + 1) ?? VERSIONS[0] },
  ...{ plural: 'resourceclaims', namespace },
});

/** Whether an error says that there is no such claim, and not only no such resource. */
const isMissing = (error: unknown, name: string): boolean =>
  error instanceof ApiError && error.code === 'ERR_API_NOT_FOUND' && error.message.includes(`"${name}"`);

export class ClaimsAtServer {
  readonly #apiServer: Pick<ApiServer, 'get'>;
  // The one that the server has.
  #version: string | undefined;

  constructor(apiServer: Pick<ApiServer, 'get'>) {
    this.#apiServer = apiServer;
  }

  /** @throws ApiError: ERR_API_NOT_FOUND if there is no such claim, or no such resource */
  readonly read = async (
    { namespace, name }: Named,
    options: CallOptions = {},
  ): Promise<KubernetesObject> => {
    let failure: unknown;
    for (const version of this.#version === undefined ? VERSIONS : [this.#version]) {
      try {
        const claim = await this.#apiServer.get(claimsIn(`${GROUP}/${version}`, namespace), name, options);
        this.#version = version;
        return claim;
      } catch (error) {
        const isOther = error instanceof ApiError && error.code === 'ERR_API_NOT_FOUND';
        if (!isOther || isMissing(error, name)) throw error;
        failure ??= error;
      }
    }
    // A server may have been upgraded, and have this version no more.
    this.#version = undefined;
    throw failure;
  };

  /** @throws ApiError if it is not known */
  readonly isGone = async (claim: ClaimName): Promise<boolean> => {
    try {
      return (await this.read(claim)).metadata.uid !== claim.uid;
    } catch (error) {
      if (isMissing(error, claim.name)) return true;
      throw error;
    }
  };
}
