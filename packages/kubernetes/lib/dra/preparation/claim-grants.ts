// ClaimGrants: what claims have on numalign's record. A grant belongs to its claim alone: it
// outlives processes and containers, and ends when the claim is unprepared.
import type { GrantInfo, Manager, Pod } from 'numalign';
import { isNumalignError } from 'numalign/tools';
import { NodeError } from '../../base/errors.js';
import { claimGrantName, claimGrantUid } from '../../claims/claim-names.js';
import type { ContainerPolicy } from '../../placement/container-policy.js';
import type { AllocatedClaim } from '../allocation/allocated-claim.js';
import type { ClaimPart } from '../allocation/claim-parts.js';

export type ClaimManager = Pick<
  Manager,
  'topology' | 'placement' | 'admit' | 'adopt' | 'release' | 'grantInfo' | 'grants' | 'pod' | 'on' | 'off'
>;

export interface ClaimGrantsOptions {
  readonly manager: ClaimManager;
  readonly policy: () => ContainerPolicy;
}

/** A grant of a claim. */
export interface ClaimGrant {
  readonly uid: string;
  readonly pod: Pod;
}

// Parts are numbered, and someone may have released one by its uid.
const MOST_MISSING = 3;

export class ClaimGrants {
  readonly #options: ClaimGrantsOptions;

  constructor(options: ClaimGrantsOptions) {
    this.#options = options;
  }

  /** The grants of a claim on record. `count`: how many it had when it was prepared. */
  of(claimUid: string, count = 0): GrantInfo[] {
    const found: GrantInfo[] = [];
    for (let part = 0, missing = 0; part < count || missing < MOST_MISSING; part++) {
      const grant = this.#find(claimGrantUid(claimUid, part));
      missing = grant ? 0 : missing + 1;
      if (grant) found.push(grant);
    }
    return found;
  }

  #find(uid: string): GrantInfo | undefined {
    try {
      return this.#options.manager.grantInfo(uid);
    } catch (error) {
      if (isNumalignError(error, 'ERR_UNKNOWN_GRANT')) return undefined;
      throw error;
    }
  }

  /**
   * Grants a part, or finds what it was granted before. What is on record for another allocation
   * gives way, if `mayReplace` does not throw.
   * @throws like Manager.admit and Manager.adopt; ERR_CLAIM_DEVICE if it can be had only elsewhere
   */
  async grant(
    claim: AllocatedClaim,
    part: ClaimPart,
    index: number,
    mayReplace: (uid: string) => void,
  ): Promise<ClaimGrant> {
    const uid = claimGrantUid(claim.uid, index);
    const name = claimGrantName(claim, part.request);
    const make = () => (part.exclusive > 0 ? this.#admit(uid, name, part) : this.#book(uid, name, part));
    try {
      const pod = await make();
      if (isOf(pod, part)) return { uid, pod };
      if (!pod.alreadyAdmitted) {
        await this.#options.manager.release(uid);
        throw elsewhere(pod, part);
      }
    } catch (error) {
      if (
        !isNumalignError(error, 'ERR_POD_CONFLICT') &&
        !(isNumalignError(error, 'ERR_ADOPTION') && this.#find(uid))
      )
        throw error;
    }
    mayReplace(uid);
    await this.#options.manager.release(uid);
    return { uid, pod: await make() };
  }

  #admit(uid: string, name: string, { limits, memory, options }: ClaimPart): Promise<Pod> {
    const { manager, policy } = this.#options;
    this.#checkMemory(memory);
    return manager.admit(
      { uid, name, qosClass: 'Guaranteed', containers: [{ name: 'main', limits }] },
      // The runtime writes the cpusets of containers, and makes others leave.
      { enforcement: 'members', ...policy().placement, ...options },
    );
  }

  /** Memory alone is where the scheduler has chosen it. */
  #book(uid: string, name: string, { memory, device: { node } }: ClaimPart): Promise<Pod> {
    this.#checkMemory(memory);
    const blocks = Object.entries(memory).map(([type, bytes]) => ({ nodes: [node], type, bytes }));
    return this.#options.manager.adopt(
      { uid, name, containers: [{ name: 'main', memory: blocks }] },
      { owner: 'persistent' },
    );
  }

  #checkMemory(memory: ClaimPart['memory']): void {
    const { memoryManagerPolicy } = this.#options.manager.placement;
    if (Object.keys(memory).length === 0 || memoryManagerPolicy !== 'None') return;
    throw new NodeError('ERR_CLAIM_AMOUNT', 'memory is not booked with memoryManagerPolicy None', {
      value: memory,
      valid: 'memoryManagerPolicy: Static',
    });
  }

  /** Releases some; others may have done so before. @throws like Manager.release */
  async release(grants: readonly GrantInfo[]): Promise<void> {
    for (const { uid } of grants) {
      try {
        await this.#options.manager.release(uid);
      } catch (error) {
        if (!isNumalignError(error, 'ERR_UNKNOWN_GRANT')) throw error;
      }
    }
  }
}

/** Whether a grant is what a part asks for, where its device is. */
function isOf(
  { containers: [container] }: Pod,
  { exclusive, within, memory, device: { node } }: ClaimPart,
): boolean {
  const { cpus, memory: blocks } = container!;
  const hasCpus = exclusive === 0 ? cpus === null : cpus?.size === exclusive && cpus.isSubsetOf(within);
  const booked = new Map(blocks.map(({ type, bytes }) => [type, bytes]));
  return (
    hasCpus &&
    blocks.length === Object.keys(memory).length &&
    blocks.every(({ nodes }) => nodes.every((each) => each === node)) &&
    Object.entries(memory).every(([type, bytes]) => booked.get(type) === bytes)
  );
}

function elsewhere(
  { containers: [container] }: Pod,
  { results, memory, device: { node } }: ClaimPart,
): NodeError {
  const { cpus, memory: blocks } = container!;
  const nodes = blocks.flatMap((block) => block.nodes);
  const device = results.map(({ device: { name } }) => name).join(', ');
  const text = `CPUs ${cpus ?? 'of its own'} and memory of NUMA nodes ${nodes.join(', ') || 'none'} can be had only, which are not of ${device}`;
  return new NodeError('ERR_CLAIM_DEVICE', text, {
    value: { cpus: `${cpus ?? ''}`, nodes },
    valid: `room on NUMA node ${node} for ${JSON.stringify(memory)}, and the CPU policy static`,
  });
}
