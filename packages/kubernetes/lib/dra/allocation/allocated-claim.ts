// AllocatedClaim: what a scheduler has allocated to a ResourceClaim, of one driver's devices. Pure.
import type { KubernetesObject } from '../../api-server/resource.js';
import { NodeError } from '../../base/errors.js';
import type { ClaimConfig } from '../devices.js';

/** A device, or a part of it. */
export interface AllocationResult {
  /** The request of the claim; of several alternatives `REQUEST/ALTERNATIVE`. */
  readonly request: string;
  readonly pool: string;
  readonly device: string;
  readonly shareId: string | undefined;
  /** The amounts of it, as quantities by capacity; undefined: the whole device. */
  readonly amounts: Readonly<Record<string, unknown>> | undefined;
  /** How many CPUs the request asks for, as a quantity; undefined: it does not say. */
  readonly asked: unknown;
  /** Whether others may have it, too. */
  readonly isAdmin: boolean;
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

/** As in the status of a claim. */
export interface ResultFields {
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

interface RequestFields {
  readonly name: string;
  readonly exactly?: RequestFields;
  readonly firstAvailable?: readonly RequestFields[];
  readonly capacity?: { readonly requests?: Readonly<Record<string, unknown>> };
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

const statusOf = ({ status }: KubernetesObject) => (status ?? {}) as StatusFields;

/** The devices of a driver that a claim has. */
export const devicesOf = (claim: KubernetesObject, driver: string): readonly ResultFields[] =>
  (statusOf(claim).allocation?.devices?.results ?? []).filter((result) => result.driver === driver);

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
  const { allocation, reservedFor = [] } = statusOf(object);
  const results = devicesOf(object, driver);
  if (results.length === 0)
    throw new NodeError('ERR_CLAIM_NOT_ALLOCATED', `${title} has no devices of ${driver}`, {
      value: uid,
      valid: `an allocation with devices of ${driver}`,
    });
  const asked = askedCpus(object);
  const pods = reservedFor.filter(({ resource }) => resource === 'pods');
  return {
    ...{ namespace: String(metadata.namespace), name: metadata.name, uid },
    pods: pods.map((pod) => ({ name: pod.name, uid: pod.uid })),
    results: results.map((result) => resultOf(result, asked)),
    configs: (allocation?.devices?.config ?? [])
      .filter(({ opaque }) => opaque?.driver === driver)
      .map(({ requests = [], opaque }) => ({ requests, value: opaque!.parameters })),
  };
}

/** By request, or alternative. */
function askedCpus({ spec }: KubernetesObject): ReadonlyMap<string, unknown> {
  const { devices } = (spec ?? {}) as { devices?: { requests?: readonly RequestFields[] } };
  return new Map(
    (devices?.requests ?? []).flatMap((request) => {
      const { name, exactly = request, firstAvailable } = request;
      const all = firstAvailable?.map((each) => [`${name}/${each.name}`, each] as const);
      return (all ?? [[name, exactly] as const]).map(([key, { capacity }]) => [key, capacity?.requests?.cpu]);
    }),
  );
}

const resultOf = (
  { request, pool, device, shareID, adminAccess = false, consumedCapacity }: ResultFields,
  asked: ReadonlyMap<string, unknown>,
): AllocationResult => ({
  ...{ request, pool, device, shareId: shareID, amounts: consumedCapacity },
  ...{ asked: asked.get(request), isAdmin: adminAccess },
});
