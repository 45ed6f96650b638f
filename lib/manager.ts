// Manager: the machine, the state that its users share, and the grants.
import { type Admission, admit } from './admission/admit.js';
import { type AdmitAllOptions, admitAll, type Batch, parseBatch } from './admission/grants/admit-all.js';
import { findOnRecord } from './admission/grants/held-grant.js';
import { tracedAdmission } from './admission/grants/traced.js';
import { takeOver } from './admission/grants/transfer.js';
import type { Room } from './admission/room/room.js';
import type { Site } from './admission/site.js';
import { adopt } from './adoption/adopt.js';
import { type AdoptedPod, type AdoptOptions, parseAdoption } from './adoption/adoption-request.js';
import { checkOptions, invalidOption } from './base/check-options.js';
import { type EmptyGrant, emptyGrant, type Optional } from './empty-grant.js';
import { Grant } from './grant.js';
import { releaseGrant } from './grants/release-grant.js';
import { checkPlacement } from './input/placement.js';
import type { PodSpec } from './input/pods/pod-request.js';
import {
  type AcquireOptions,
  type AdmissionRequest,
  type AdmitOptions,
  checkAcquirable,
  checkParts,
  checkSignal,
  NO_OPTIONS,
  parseAcquire,
  parseAdmit,
} from './input/request.js';
import type { KubeletFiles } from './kubelet/kubelet-files.js';
import { importPods, type KubeletImportOptions, parseKubeletFiles } from './kubelet/kubelet-import.js';
import type { TopologyHint } from './machine/hints.js';
import { MachineManager, type ManagerParts } from './managers/machine-manager.js';
import { OwnGrants } from './managers/own-grants.js';
import { Pod } from './pod.js';
import {
  type Defragmentation,
  type DefragmentOptions,
  defragment,
  parseDefragment,
} from './repacking/defragment.js';
import { requestRoom } from './repacking/request-room.js';

/** What {@link Manager.importKubelet} has taken over. */
export interface KubeletImport {
  readonly pods: readonly Pod[];
  /** False: the CPU file has no checksum, and nothing tells whether it is damaged. */
  readonly verified: boolean;
}

/**
 * Made by {@link openManager}: {@link ManagerView} says what is on record, {@link MachineManager}
 * cares for the machine, and this class makes grants. Whether `change` is listened to or not, it
 * takes back what dead owners had within a second: the kernel tells of their end (inotify(7)).
 * Where the kernel has no watch left to give, the next transaction does.
 */
export class Manager extends MachineManager {
  readonly #parts: ManagerParts;
  readonly #own: OwnGrants;
  /** False: see {@link EmptyManager}. */
  readonly isEmpty = false;
  readonly reason = null;

  /** Use {@link openManager}. */
  constructor(parts: ManagerParts) {
    super(parts);
    this.#parts = parts;
    this.#own = new OwnGrants(parts.site);
  }

  // One for all, its grants too: what is changed in it all of them see.
  get #site(): Site {
    this.#parts.lifetime.check();
    return this.#parts.site;
  }

  // What a closed manager gets would be of no use.
  #untilClosed(signal: AbortSignal | undefined): AbortSignal {
    const closing = this.#parts.lifetime.signal;
    return signal ? AbortSignal.any([signal, closing]) : closing;
  }

  #roomFor({ placement }: AdmissionRequest, uid: string | undefined, signal: AbortSignal | undefined): Room {
    const isDynamic = placement.cpuPolicy === 'dynamic';
    return requestRoom(this.#site, { uid, isDynamic, signal: () => this.#untilClosed(signal) });
  }

  #admitted(site: Site, request: AdmissionRequest, signal: AbortSignal | undefined): Promise<Admission> {
    const room = this.#roomFor(request, request.pod.uid, signal);
    const coming = tracedAdmission(site, request, () => admit(site, request, signal, room));
    return this.#own.note(coming, ({ pod, alreadyAdmitted }) => (alreadyAdmitted ? undefined : pod));
  }

  /**
   * Reserves exclusive CPUs for this process: a Guaranteed pod of one container. Nothing runs on
   * them yet: like every shared member this process is moved off them, until {@link Grant.pin} or
   * {@link Grant.placeThreads} moves it on. {@link pin} does both. Remembers the CPUs on disk, and
   * returns once that is durable. With `parts` threads of this process have some of them
   * apart from each other: see {@link Grant.part}.
   * @throws ERR_INVALID_OPTION; as {@link admit}
   */
  async acquire(options: Optional<AcquireOptions>): Promise<Grant | EmptyGrant>;
  async acquire(options: AcquireOptions): Promise<Grant>;
  async acquire(options: AcquireOptions): Promise<Grant | EmptyGrant> {
    return this.#acquire(options).catch((error) => emptyGrant(options, error));
  }

  async #acquire(options: AcquireOptions): Promise<Grant> {
    const site = this.#site;
    const request = parseAcquire(options, this.#parts.config.placement);
    checkPlacement(request.placement, this.topology);
    checkParts(request, this.topology);
    checkAcquirable(request, this.#parts.resources.keys(), !site.providers.isEmpty);
    const signal = request.wait ? this.#untilClosed(options.signal) : options.signal;
    const admission = await this.#admitted(site, request, signal);
    return new Grant(site, this.#parts.config.placement, admission.pod, admission);
  }

  /**
   * Admits a pod as the kubelet would: all its containers get what they ask for, or nothing is
   * changed. Containers of Guaranteed pods with whole CPUs get exclusive ones, everything else runs
   * in the shared pool. A pod that is placed already (by its uid) stays as it is.
   * @throws ERR_INVALID_POD, ERR_INVALID_QUANTITY, ERR_INVALID_OPTION; a rejection is
   *   ERR_TOPOLOGY_AFFINITY, ERR_SMT_ALIGNMENT, ERR_INSUFFICIENT_CPUS, ERR_INSUFFICIENT_MEMORY,
   *   ERR_INSUFFICIENT_DEVICES or ERR_SHARED_POOL_EMPTY, with the kubelet's `reason` and an
   *   `explanation` in the details; ERR_HINT_PROVIDER, ERR_PREFERRED_ALLOCATION; ERR_POD_CONFLICT
   *   where the uid is placed with another request; ERR_LOCK_TIMEOUT, ERR_STATE_*, ERR_SYSCALL (a
   *   full disk, say); the signal's reason.
   */
  async admit(pod: PodSpec, options: AdmitOptions = NO_OPTIONS): Promise<Pod> {
    const site = this.#site;
    const request = parseAdmit(pod, options, this.#parts.config.placement);
    checkPlacement(request.placement, this.topology);
    const signal = request.wait ? this.#untilClosed(options.signal) : options.signal;
    return new Pod(site, await this.#admitted(site, request, signal));
  }

  /**
   * Admits several pods in one step: all of them, or nothing is changed. Each is decided with those
   * before it in place; what is placed already (by its uid) stays as it is, or, where it asks for
   * something else and `replace` is set, gives way to the new one, and stays where that has no room.
   * @throws as {@link admit}, with the `index` of the pod in the details; ERR_OWNER_ALIVE where a pod
   *   that is to be replaced belongs to a process that lives
   */
  async admitAll(pods: readonly PodSpec[], options: AdmitAllOptions = {}): Promise<Pod[]> {
    const site = this.#site;
    const batch = parseBatch(pods, options, this.#parts.config.placement);
    for (const { placement } of batch.requests) checkPlacement(placement, this.topology);
    if (batch.requests.length === 0) return [];
    const admissions = await this.#admittedAll(site, batch, options.signal);
    return admissions.map((admission) => new Pod(site, admission));
  }

  #admittedAll(site: Site, batch: Batch, signal: AbortSignal | undefined): Promise<Admission[]> {
    const room = this.#roomFor(batch.requests[0]!, undefined, signal);
    const coming = admitAll(site, batch, signal, room);
    const each = batch.requests.map((request, i) => {
      const admission = tracedAdmission(site, request, () => coming.then((all) => all[i]!));
      return this.#own.note(admission, ({ pod, alreadyAdmitted }) => (alreadyAdmitted ? undefined : pod));
    });
    return Promise.all(each);
  }

  /**
   * Puts on record what a pod has already, where that is: all of it, or nothing. Shared members leave
   * its CPUs first. Nothing is decided: the policies have no say, and no hint is known. What is on
   * record under its uid stays as it is where it has the same, container by container.
   * @throws ERR_INVALID_POD, ERR_INVALID_QUANTITY, ERR_INVALID_LIST, ERR_INVALID_OPTION (also for a
   *   cgroup as the owner that is none or is empty); ERR_ADOPTION where it contradicts itself, the
   *   machine, its settings or what others hold: `details.value` lists all of it;
   *   ERR_MEMBER_UNMOVABLE, ERR_ENFORCEMENT; ERR_LOCK_TIMEOUT, ERR_STATE_*, ERR_SYSCALL; the
   *   signal's reason
   */
  async adopt(pod: AdoptedPod, options: AdoptOptions = {}): Promise<Pod> {
    const site = this.#site;
    const request = parseAdoption(pod, options, this.#parts.config.placement);
    const action = () => adopt(site, request, options.signal);
    return new Pod(site, await tracedAdmission(site, request, action));
  }

  /** The pod with this uid, whoever admitted it. @throws ERR_UNKNOWN_GRANT */
  pod(uid: string): Pod {
    return new Pod(this.#site, { pod: findOnRecord(this.#site, uid), warnings: [], alreadyAdmitted: true });
  }

  /**
   * What the Topology Manager decided for a container when it was admitted.
   * @throws ERR_UNKNOWN_GRANT, ERR_UNKNOWN_CONTAINER
   */
  getAffinity(podUid: string, containerName: string): TopologyHint {
    return this.pod(podUid).container(containerName).hint;
  }

  /**
   * Acquires, calls `body`, and releases however it ends. Where both fail, the error of `body` is
   * thrown.
   * @throws as {@link acquire} and {@link Grant.release}
   */
  async use<T>(
    options: Optional<AcquireOptions>,
    body: (grant: Grant | EmptyGrant) => T | Promise<T>,
  ): Promise<T>;
  async use<T>(options: AcquireOptions, body: (grant: Grant) => T | Promise<T>): Promise<T>;
  async use<T>(options: AcquireOptions, body: (grant: Grant) => T | Promise<T>): Promise<T> {
    if (typeof body !== 'function') invalidOption('body', body, 'a function');
    const grant = await this.acquire(options);
    let result: T;
    try {
      result = await body(grant);
    } catch (error) {
      // What went wrong first is what the caller must hear of.
      await grant.release().catch(() => {});
      throw error;
    }
    await grant.release();
    return result;
  }

  /** The grant with this uid, whoever made it. @throws ERR_UNKNOWN_GRANT */
  grant(uid: string): Grant {
    return new Grant(this.#site, this.#parts.config.placement, findOnRecord(this.#site, uid));
  }

  /**
   * Becomes the owner of a grant that another process hands over (see {@link Grant.transfer}), and
   * returns once its threads have left the CPUs.
   * @throws ERR_UNKNOWN_TRANSFER where the token was used or withdrawn, or the other has ended;
   *   ERR_LOCK_TIMEOUT, ERR_STATE_*; the signal's reason, as long as the grant is the other's;
   *   ERR_OWNER_ALIVE where the signal aborts while the other has not left: the grant is this
   *   process's then (`details.value` is its uid)
   */
  async takeOver(token: string, options: { signal?: AbortSignal } = {}): Promise<Grant> {
    if (typeof token !== 'string') invalidOption('token', token, 'the token of a transfer');
    const { signal } = checkOptions(options, ['signal'], 'takeOver');
    const site = this.#site;
    const coming = takeOver(site, token, checkSignal(signal));
    return new Grant(site, this.#parts.config.placement, await this.#own.note(coming, (pod) => pod));
  }

  /**
   * Has grants that consent move, so that the largest request that one NUMA node has room for becomes
   * larger: as few of them as that takes, again and again, until no more than two moves gain nothing.
   * With `dryRun` nothing moves. Whatever the CPU policy is.
   * @throws ERR_INVALID_OPTION, ERR_LOCK_TIMEOUT, ERR_STATE_*; the signal's reason, and what has moved
   *   by then stays there
   */
  async defragment(options: DefragmentOptions = {}): Promise<Defragmentation> {
    return defragment(this.#site, this.#parts.config.placement, parseDefragment(options));
  }

  /**
   * Releases a grant by its uid: one of this process, a persistent one, a cgroup's, or one whose
   * owner is dead.
   * @throws ERR_UNKNOWN_GRANT, ERR_OWNER_ALIVE
   */
  async release(uid: string): Promise<void> {
    await releaseGrant(this.#site, findOnRecord(this.#site, uid));
  }

  /**
   * Takes over what the kubelet has given out, as its state files say: all pods, which are then
   * persistent, or none. What the files do not know is filled in: the pod's name is its uid, its
   * containers are running app containers that asked for what they have; hints and devices are not
   * known.
   * @throws ERR_KUBELET_STATE where a file cannot be used (one without a checksum unless
   *   `allowUnverified`); ERR_KUBELET_IMPORT where it contradicts the machine or what others hold;
   *   ERR_POD_CONFLICT; ERR_INVALID_OPTION; ERR_LOCK_TIMEOUT, ERR_STATE_*, ERR_SYSCALL; the
   *   signal's reason
   */
  async importKubelet(files: KubeletFiles, options: KubeletImportOptions = {}): Promise<KubeletImport> {
    const site = this.#site;
    const { verified, ...states } = parseKubeletFiles(
      files,
      options,
      this.settings().featureGates.PodLevelResourceManagers,
    );
    const pods = await importPods(site, states, options.signal);
    return {
      pods: pods.map((pod) => new Pod(site, { pod, warnings: [], alreadyAdmitted: false })),
      verified,
    };
  }

  /**
   * As {@link close}, and releases the grants that it has got for this process and that are this
   * process's still: not those of other managers, nor persistent ones, a cgroup's, or such as were
   * handed over. Where it was closed before, they stay.
   * @throws as {@link Grant.release}; an AggregateError where several cannot be released
   */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#parts.lifetime.isOver) return;
    this.close();
    await this.#own.release();
  }
}
