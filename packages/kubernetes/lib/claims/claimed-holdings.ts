// ClaimedHoldings: what the claims of a container give it, by numalign's record.
import { CpuSet, type Manager, NodeSet, type Pod } from 'numalign';
import { isNumalignError } from 'numalign/tools';
import { NodeError } from '../base/errors.js';
import { claimOfGrant } from './claim-names.js';

/** A claim that the DRA driver has prepared. */
export interface PreparedClaim {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** The uids of the pods that it is reserved for. */
  readonly pods: readonly string[];
}

/** The prepared claim with this uid. */
export type FindClaim = (uid: string) => PreparedClaim | undefined;

/** What several parts of claims give together. */
export interface ClaimedHoldings {
  /** Null: no CPUs. */
  readonly cpus: CpuSet | null;
  /** The NUMA nodes of their memory. */
  readonly memoryNodes: NodeSet;
}

type Record = Pick<Manager, 'pod'>;

/** Null if one of them is not on record. */
export function claimedHoldings(manager: Record, grants: readonly string[]): ClaimedHoldings | null {
  const containers = grants.map((uid) => recorded(manager, uid)?.containers[0]);
  if (!containers.every((each) => each !== undefined)) return null;
  const cpus = containers.reduce((all, each) => (each.cpus ? all.union(each.cpus) : all), CpuSet.EMPTY);
  return {
    cpus: cpus.isEmpty ? null : cpus,
    memoryNodes: NodeSet.from(containers.flatMap(({ memory }) => memory.flatMap(({ nodes }) => nodes))),
  };
}

function recorded(manager: Record, uid: string): Pod | undefined {
  try {
    return manager.pod(uid);
  } catch (error) {
    if (isNumalignError(error, 'ERR_UNKNOWN_GRANT')) return undefined;
    throw error;
  }
}

/** Whether none of the claims is known to be of other pods. */
export const mayBeOf = (
  findClaim: FindClaim | undefined,
  podUid: string,
  grants: readonly string[],
): boolean => grants.every((grant) => findClaim?.(claimOfGrant(grant)!)?.pods.includes(podUid) ?? true);

/**
 * Checks that claims are prepared, and for this pod: a pod may set any environment.
 * @throws ERR_CLAIM_UNKNOWN, ERR_CLAIM_SHARED
 */
export function checkClaims(
  findClaim: FindClaim | undefined,
  podUid: string,
  grants: readonly string[],
): void {
  for (const uid of new Set(grants.map((grant) => claimOfGrant(grant)!))) {
    const claim = findClaim?.(uid);
    if (!claim)
      throw new NodeError('ERR_CLAIM_UNKNOWN', `claim ${uid} of the container is not prepared here`, {
        value: uid,
        valid: findClaim ? 'a claim that the kubelet has prepared' : 'numalign-node --dra',
      });
    if (!claim.pods.includes(podUid))
      throw new NodeError(
        'ERR_CLAIM_SHARED',
        `claim ${claim.namespace}/${claim.name} is reserved for pod ${claim.pods.join(', ')}, not for ${podUid}: its CPUs are for one pod`,
        { value: podUid, valid: 'a claim of its own, such as from a ResourceClaimTemplate' },
      );
  }
}
