// Grants: what containers hold, on numalign's record. Their cgroups own them, so they outlive this
// process and end with the container.
import { CpuSet, type GrantInfo, type Manager, type MemoryBlock, NodeSet, type Pod } from 'numalign';
import type { MoveEnd } from 'numalign/diagnostics';
import { Backoff, isNumalignError } from 'numalign/tools';
import { NodeError } from '../base/errors.js';
import type { Log } from '../base/log.js';
import { claimGrantsIn } from '../claims/claim-names.js';
import { checkClaims, claimedHoldings, type FindClaim, mayBeOf } from '../claims/claimed-holdings.js';
import type { Container, PodSandbox } from '../nri/messages.js';
import {
  type AllocationEnvironment,
  allocationIn,
  grantsOf,
  type RestoreAllocation,
} from '../placement/allocation.js';
import { admitOptions, type ContainerPolicy, NO_POLICY } from '../placement/container-policy.js';
import { type ContainerRequest, grantUid, isGrantOfPod } from '../placement/container-request.js';
import { disturbances } from '../placement/quiet.js';
import type { FindManifest, WholePod } from '../placement/whole-pod.js';
import { type Placement, placementOf } from './container-placement.js';
import { WholePods } from './whole-pods.js';

const isUnknown = (error: unknown) => isNumalignError(error, 'ERR_UNKNOWN_GRANT');

const isInUse = ({ owner, alive }: GrantInfo) => owner.kind === 'cgroup' && alive;

interface AskingContainer {
  readonly name: string;
  readonly limits: Readonly<Record<string, number | string>>;
}

// Limits in bytes come from the runtime. An annotation has quantities, which must be placed.
function blocksOf(limits: AskingContainer['limits'], mems: NodeSet): MemoryBlock[] {
  if (mems.isEmpty) return [];
  return Object.entries(limits).flatMap(([type, bytes]) =>
    (type === 'memory' || type.startsWith('hugepages-')) && typeof bytes === 'number' && bytes > 0
      ? [{ nodes: mems.toArray(), type, bytes }]
      : [],
  );
}

const RETRIES = { firstMs: 100, longestMs: 30_000 };

export interface GrantsOptions {
  readonly manager: Manager;
  /** The prefix of the names of grants that this process makes. */
  readonly prefix: string;
  /** Undefined without a device plugin. */
  readonly restoreAllocation: RestoreAllocation | undefined;
  /** Undefined without a DRA driver. */
  readonly findClaim?: FindClaim | undefined;
  readonly policy?: () => ContainerPolicy;
  /** Undefined: containers are placed one by one. */
  readonly findManifest: FindManifest | undefined;
  /** This process has moved a claim's grant. The request that it makes room for waits meanwhile. */
  readonly moved?: ((uid: string) => void) | undefined;
  readonly log: Log;
}

export class Grants {
  readonly #manager: Manager;
  readonly #prefix: string;
  readonly #restoreAllocation: RestoreAllocation | undefined;
  readonly #findClaim: FindClaim | undefined;
  readonly #policy: () => ContainerPolicy;
  readonly #wholePods: WholePods;
  readonly #log: Log;
  readonly #moved: (end: MoveEnd) => void;
  readonly #pending = new Set<string>();
  // True if the state does not let them be released.
  #isRefused = false;
  #isClosed = false;
  #retry: NodeJS.Timeout | undefined;
  readonly #backoff = new Backoff(RETRIES);

  constructor({
    manager,
    prefix,
    restoreAllocation,
    findClaim,
    findManifest,
    policy = () => NO_POLICY,
    moved = () => {},
    log,
  }: GrantsOptions) {
    this.#manager = manager;
    const hasClaims = findClaim !== undefined;
    this.#wholePods = new WholePods({ manager, prefix, findManifest, hasClaims, policy, log });
    this.#findClaim = findClaim;
    this.#restoreAllocation = restoreAllocation;
    this.#prefix = `${prefix}:`;
    this.#policy = policy;
    this.#moved = ({ uid, isMoved }) => isMoved && !this.#isClosed && moved(uid);
    this.#log = log;
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#retry);
  }

  /** The shared pool, as currently on record. */
  get pool(): CpuSet {
    return this.#manager.sharedPool();
  }

  /**
   * The record for a container: its own grant, what its claims have, or what the device plugin has
   * booked for it. Null if there is none.
   * @throws NodeError ERR_ALLOCATION, ERR_CLAIM_ENVIRONMENT
   */
  find(pod: PodSandbox, container: Container): Placement | null {
    const claimed = claimGrantsIn(container.env);
    if (claimed.length > 0)
      return mayBeOf(this.#findClaim, pod.uid, claimed) ? this.#findClaimed(claimed) : null;
    const allocation = allocationIn(container.env);
    if (allocation) return this.#findAllocation(allocation);
    // `attach` grants to a container's id, and so did earlier versions.
    const uid = grantUid(pod, container);
    const isOfPod = uid !== container.id;
    return (
      this.#recorded(uid, isOfPod) ??
      this.#recorded(container.id, false) ??
      (isOfPod ? this.#wholePods.find(pod, container.name) : null)
    );
  }

  #recorded(uid: string, isOfPod: boolean): Placement | null {
    try {
      return this.#placed(this.#manager.pod(uid), isOfPod);
    } catch (error) {
      if (isUnknown(error)) return null;
      throw error;
    }
  }

  /** What is on record of a placement now; null if nothing is. */
  current({ uid, cpus, isAllocation, isOfPod, partOfPod, claimGrants }: Placement): Placement | null {
    if (claimGrants.length > 0) return this.#findClaimed(claimGrants);
    if (partOfPod !== null) return this.#wholePods.find({ uid }, partOfPod);
    return isAllocation ? this.#findAllocation({ uid, cpus: cpus! }) : this.#recorded(uid, isOfPod);
  }

  /** The grants of these pods' containers, also of those that have ended and may start again. */
  *ofPods(pods: readonly PodSandbox[]): Generator<readonly [PodSandbox, Placement]> {
    // To look at all takes long if there are hundreds.
    const grants = this.#manager.grants();
    for (const pod of pods) {
      for (const { uid } of grants) {
        const placement = isGrantOfPod(uid, pod.uid) && this.#recorded(uid, true);
        // Of a whole pod it is no single container's.
        if (placement) yield [pod, uid === pod.uid ? { ...placement, partOfPod: '' } : placement];
      }
    }
  }

  /**
   * The place of a container: what its claims have, what the device plugin has booked for it, or its
   * admission. `whole`: its pod, which is admitted with all its containers.
   * @throws NodeError ERR_ALLOCATION, ERR_UNKNOWN_ALLOCATION, ERR_CLAIM_*; like {@link admit} and
   *   {@link RestoreAllocation}
   */
  async place(
    pod: PodSandbox,
    container: Container,
    request: ContainerRequest,
    { whole, choice }: { readonly whole?: WholePod | undefined; readonly choice?: CpuSet | undefined } = {},
  ): Promise<Placement | null> {
    const { uid: podUid } = pod;
    const claimed = claimGrantsIn(container.env);
    if (claimed.length > 0) return this.#placeClaimed(pod, container, request, claimed);
    const allocation = allocationIn(container.env);
    if (!allocation) {
      const isOfWhole = request.isOfPod && request.pod !== null;
      const part =
        isOfWhole && !this.#recorded(grantUid(pod, container), true)
          ? await this.#partOf(pod, container, whole, choice)
          : null;
      return part ?? this.admit(request, choice);
    }
    const found = this.#findAllocation(allocation);
    if (found) return found;
    if (await this.#restoreAllocation?.(allocation, { podUid, name: container.name })) {
      const earlierPlacement = this.#findAllocation(allocation);
      if (earlierPlacement) return earlierPlacement;
    }
    const { uid, cpus } = allocation;
    const text = `container ${container.name} was allocated CPUs ${cpus} as ${uid}, which is not on record`;
    throw new NodeError('ERR_UNKNOWN_ALLOCATION', text, { value: uid });
  }

  #findClaimed(claimGrants: readonly string[]): Placement | null {
    const held = claimedHoldings(this.#manager, claimGrants);
    for (const uid of held ? claimGrants : []) this.#hear(uid);
    const none = { isAllocation: false, isOfPod: false, partOfPod: null, devices: [] };
    return held && { uid: claimGrants[0]!, ...none, claimGrants, ...held };
  }

  // Once, however often the grant is found. One that ends meanwhile does not move any more.
  #hear(uid: string): void {
    try {
      this.#manager.grant(uid).off('moveEnd', this.#moved).on('moveEnd', this.#moved);
    } catch (error) {
      if (!isNumalignError(error, 'ERR_UNKNOWN_GRANT', 'ERR_GRANT_RELEASED')) throw error;
    }
  }

  // Containers that share a claim have the same CPUs.
  #placeClaimed(
    pod: PodSandbox,
    { name }: Container,
    { exclusiveCpus }: ContainerRequest,
    claimGrants: readonly string[],
  ): Placement {
    checkClaims(this.#findClaim, pod.uid, claimGrants);
    const placement = this.#findClaimed(claimGrants);
    if (!placement)
      throw new NodeError('ERR_CLAIM_UNKNOWN', `what the claim of container ${name} had was released`, {
        value: claimGrants,
        valid: 'a pod that is created again',
      });
    if (placement.cpus || exclusiveCpus === 0) return placement;
    throw new NodeError(
      'ERR_CLAIM_WITHOUT_CPUS',
      `container ${name} asks for ${exclusiveCpus} CPUs of its own, and its claim has only memory`,
      { value: exclusiveCpus, valid: 'the CPUs in the claim, too, or a request that is not Guaranteed' },
    );
  }

  async #partOf(
    pod: PodSandbox,
    { name }: Container,
    whole: WholePod | undefined,
    choice: CpuSet | undefined,
  ): Promise<Placement | null> {
    return this.#wholePods.find(pod, name) ?? (whole ? this.#wholePods.admit(whole, name, choice) : null);
  }

  /**
   * The pod of a container with nothing on record, if it is to be admitted with all its containers.
   * @throws NodeError ERR_INVALID_ANNOTATION
   */
  async wholeOf(
    pod: PodSandbox,
    container: Container,
    request: ContainerRequest,
  ): Promise<WholePod | undefined> {
    const isOfWhole = request.isOfPod && request.pod !== null && !allocationIn(container.env);
    return isOfWhole ? this.#wholePods.wholeOf(pod) : undefined;
  }

  // All of its CPUs must be on record: a client may have released the grant.
  #findAllocation({ uid, cpus }: AllocationEnvironment): Placement | null {
    const areHeld = (grants: readonly GrantInfo[]) =>
      cpus.isSubsetOf(grantsOf(uid, grants).reduce((all, grant) => all.union(grant.cpus), CpuSet.EMPTY));
    // Looking at all grants takes long if there are hundreds.
    if (!areHeld(this.#grantNamed(uid)) && !areHeld(this.#manager.grants())) return null;
    const none = { partOfPod: null, claimGrants: [], memoryNodes: NodeSet.EMPTY, devices: [] };
    return { uid, isAllocation: true, isOfPod: true, cpus, ...none };
  }

  #grantNamed(uid: string): GrantInfo[] {
    try {
      return [this.#manager.grantInfo(uid)];
    } catch (error) {
      if (isUnknown(error)) return [];
      throw error;
    }
  }

  // An allocation may be on record as several grants.
  #uidsOf({ uid, isAllocation, claimGrants }: Placement): readonly string[] {
    // They are of the claims, whatever becomes of containers.
    if (claimGrants.length > 0) return [];
    return isAllocation ? grantsOf(uid, this.#manager.grants()).map((grant) => grant.uid) : [uid];
  }

  /**
   * Admits a container under the policy in effect. A grant that is already on record stays.
   * `choice`: the CPUs to choose from.
   * @throws like Manager.admit
   */
  async admit(request: ContainerRequest, choice?: CpuSet): Promise<Placement | null> {
    const { pod, isOfPod } = request;
    if (!pod) return null;
    const admitted = await this.#manager.admit(pod, admitOptions(this.#policy(), request, choice));
    // Until it starts, the pod's cgroup may become empty.
    if (isOfPod && admitted.alreadyAdmitted) await admitted.setOwner('persistent');
    return this.#placed(admitted, isOfPod);
  }

  /**
   * Records a container where it is. `mems`: the NUMA nodes of its memory, on which its limits are
   * booked. Nothing is booked if they are empty (unknown), or if others have taken the memory
   * there.
   * @throws like Manager.adopt
   */
  async adopt({ pod, isOfPod }: ContainerRequest, cpus: CpuSet, mems: NodeSet): Promise<Placement | null> {
    if (!pod) return null;
    const { uid, name, containers } = pod as { uid: string; name: string; containers: [AskingContainer] };
    const adopt = async (memory: readonly MemoryBlock[]) => {
      const adopted = { uid, name, containers: [{ ...containers[0], cpus, memory }] };
      return this.#placed(await this.#manager.adopt(adopted, { owner: 'persistent' }), isOfPod);
    };
    const isBooked = this.#manager.placement.memoryManagerPolicy !== 'None';
    const memory = isBooked ? blocksOf(containers[0].limits, mems) : [];
    if (memory.length === 0) return adopt(memory);
    try {
      return await adopt(memory);
    } catch (error) {
      if (!isNumalignError(error, 'ERR_ADOPTION')) throw error;
      const placement = await adopt([]);
      this.#log('warn', `the memory of ${name} is not booked on NUMA nodes ${mems}: ${error.message}`);
      return placement;
    }
  }

  /** What still disturbs the CPUs of a container that is to be quiet, in words. */
  disturbances({ uid }: Placement): readonly string[] {
    return disturbances(this.#manager.pod(uid).quiet);
  }

  /** From now on the grant lives while a process is in the cgroup. */
  async setOwner(placement: Placement, cgroup: string): Promise<void> {
    for (const uid of this.#uidsOf(placement)) await this.#manager.pod(uid).setOwner({ cgroup });
  }

  /** Changes the amounts of CPUs and memory. @throws like Grant.resize */
  async resize({ uid, isOfPod }: Placement, { exclusiveCpus, memory }: ContainerRequest): Promise<Placement> {
    const isBooked = memory !== undefined && this.#manager.placement.memoryManagerPolicy !== 'None';
    await this.#manager.grant(uid).resize({ cpu: exclusiveCpus, ...(isBooked && { memory }), noticeMs: 0 });
    return this.#placed(this.#manager.pod(uid), isOfPod);
  }

  /**
   * Releases what this plugin, or an earlier one, has granted to containers that no longer exist,
   * nor their pods.
   */
  async endAllBut(pods: readonly PodSandbox[], containers: readonly Container[]): Promise<void> {
    const podOf = new Map(pods.map((pod) => [pod.id, pod]));
    const ids = new Set(
      containers.flatMap((container) => {
        const pod = podOf.get(container.pod_sandbox_id);
        return pod ? [container.id, grantUid(pod, container), pod.uid] : [container.id];
      }),
    );
    // One that has not started belongs to no cgroup, and may never start.
    const isKept = (grant: GrantInfo) =>
      ids.has(grant.uid) || (isInUse(grant) && pods.some((pod) => isGrantOfPod(grant.uid, pod.uid)));
    const others = this.#manager
      .grants()
      .filter((grant) => grant.name.startsWith(this.#prefix) && !isKept(grant));
    await this.#release(others.map(({ uid }) => uid));
  }

  /**
   * Releases grants of a pod that goes on, whose containers have ended and do not need them any
   * more.
   */
  async free(placements: readonly Placement[]): Promise<void> {
    for (const { uid } of placements) {
      try {
        await this.#manager.release(uid);
      } catch (error) {
        if (!isUnknown(error)) throw error;
      }
    }
  }

  /** Releases a grant, now or as soon as the state allows it and its cgroup has no process. */
  async end(placement: Placement): Promise<void> {
    await this.#release(this.#uidsOf(placement));
  }

  async #release(uids: readonly string[]): Promise<void> {
    for (const uid of uids) this.#pending.add(uid);
    // A runtime must not wait for the lock for each container of a pod.
    if (uids.length === 0 || this.#isRefused) return;
    this.#backoff.reset();
    await this.#releasePending();
  }

  // With cgroup v1 there is no notice when the last process has left one.
  async #releasePending(): Promise<void> {
    clearTimeout(this.#retry);
    this.#isRefused = false;
    for (const uid of this.#pending) {
      try {
        if (isInUse(this.#manager.grantInfo(uid))) continue;
        await this.#manager.release(uid);
      } catch (error) {
        if (!isUnknown(error)) {
          this.#isRefused = true;
          this.#log('warn', `grant ${uid} is not released yet: ${(error as Error).message}`);
          break;
        }
      }
      this.#pending.delete(uid);
    }
    if (this.#pending.size === 0 || this.#isClosed) return;
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => void this.#releasePending(), this.#backoff.next()).unref();
  }

  // A release that waits, such as of an earlier sandbox of the pod, is not wanted any more.
  #placed({ uid, containers: [container] }: Pod, isOfPod: boolean): Placement {
    this.#pending.delete(uid);
    return placementOf(uid, isOfPod, container!);
  }
}
