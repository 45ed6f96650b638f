// AllocatedClaim: what a scheduler has allocated to a ResourceClaim, of one driver's devices. Pure.
import type { KubernetesObject } from '../../api-server/resource.js';
import { NodeError } from '../../base/errors.js';

/** A device, or a part of it. */
export interface AllocationResult {
  /** The request of the claim; of several alternatives `REQUEST/ALTERNATIVE`. */
  readonly request: string;
  readonly pool: string;
  readonly device: string;
  readonly shareId: string | undefined;
  /** The amounts of it, as quantities by capacity; undefined: the whole device. */
  readonly amounts: Readonly<Record<string, unknown>> | undefined;
}

/** Opaque parameters, and the requests that they are for; none: all of the claim. */
export interface ClaimConfig {
  readonly requests: readonly string[];
  readonly parameters: unknown;
}

export interface ClaimedPod {
  readonly name: string;
  readonly uid: string;
}

export interface AllocatedClaim {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** The pods that it is reserved for. */
  readonly pods: readonly ClaimedPod[];
  readonly results: readonly AllocationResult[];
  /** Later ones take precedence. */
  readonly configs: readonly ClaimConfig[];
}

interface ResultFields {
  readonly request: string;
  readonly driver: string;
  readonly pool: string;
  readonly device: string;
  readonly shareID?: string;
  readonly adminAccess?: boolean;
  readonly consumedCapacity?: Readonly<Record<string, unknown>>;
}

interface ConfigFields {
  readonly requests?: readonly string[];
  readonly opaque?: { readonly driver: string; readonly parameters: unknown };
}

interface StatusFields {
  readonly allocation?: {
    readonly devices?: {
      readonly results?: readonly ResultFields[];
      readonly config?: readonly ConfigFields[];
    };
  };
  readonly reservedFor?: readonly {
    readonly resource: string;
    readonly name: string;
    readonly uid: string;
  }[];
}

/** The name of a request without that of its alternative, as containers name it. */
export const baseRequest = (request: string): string => request.split('/')[0]!;

const titleOf = ({ metadata }: KubernetesObject) => `claim ${metadata.namespace}/${metadata.name}`;

/**
 * `uid`: the claim that the kubelet means; another one may have its name by now.
 * @throws ERR_CLAIM_REPLACED, ERR_CLAIM_NOT_ALLOCATED, ERR_CLAIM_DEVICE
 */
export function allocatedClaim(object: KubernetesObject, driver: string, uid: string): AllocatedClaim {
  const { metadata } = object;
  const title = titleOf(object);
  if (metadata.uid !== uid)
    throw new NodeError('ERR_CLAIM_REPLACED', `${title} was replaced by another one of its name`, {
      value: uid,
      valid: metadata.uid,
    });
  const { allocation, reservedFor = [] } = (object.status ?? {}) as StatusFields;
  const results = (allocation?.devices?.results ?? []).filter((result) => result.driver === driver);
  if (results.length === 0)
    throw new NodeError('ERR_CLAIM_NOT_ALLOCATED', `${title} has no devices of ${driver}`, {
      value: uid,
      valid: `an allocation with devices of ${driver}`,
    });
  const pods = reservedFor.filter(({ resource }) => resource === 'pods');
  return {
    ...{ namespace: String(metadata.namespace), name: metadata.name, uid },
    pods: pods.map((pod) => ({ name: pod.name, uid: pod.uid })),
    results: results.map((result) => resultOf(result, title)),
    configs: (allocation?.devices?.config ?? [])
      .filter(({ opaque }) => opaque?.driver === driver)
      .map(({ requests = [], opaque }) => ({ requests, parameters: opaque!.parameters })),
  };
}

function resultOf(
  { request, pool, device, shareID, adminAccess, consumedCapacity }: ResultFields,
  title: string,
): AllocationResult {
  if (adminAccess)
    throw new NodeError('ERR_CLAIM_DEVICE', `${title} asks for ${device} with adminAccess`, {
      value: request,
      valid: 'left out: CPUs have nothing to administrate',
    });
  return { request, pool, device, shareId: shareID, amounts: consumedCapacity };
}
