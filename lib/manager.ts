// Manager: grants parts of a machine, on the state that processes share.
import { type Admission, admit } from './admission/admit.js';
import { type AdmitAllOptions, admitAll, type Batch, parseBatch } from './admission/grants/admit-all.js';
import { findOnRecord } from './admission/grants/held-grant.js';
import { tracedAdmission } from './admission/grants/traced.js';
import { takeOver } from './admission/grants/transfer.js';
import { checkRequest } from './admission/request-check.js';
import type { Room } from './admission/room.js';
import type { Site } from './admission/site.js';
import { adopt } from './adoption/adopt.js';
import { type AdoptedPod, type AdoptOptions, parseAdoption } from './adoption/adoption-request.js';
import { checkOptions, invalidOption } from './base/check-options.js';
import { turnIfDue } from './base/steps.js';
import { type EmptyGrant, emptyGrant, type Optional } from './empty-grant.js';
import { Grant } from './grant.js';
import { release } from './grants/release.js';
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
  planDefragmentation,
} from './repacking/defragment.js';
import { requestRoom } from './repacking/request-room.js';

/** The answer of {@link Manager.importKubelet}. */
export interface KubeletImport {
  /** The imported pods, which are persistent. */
  readonly pods: readonly Pod[];
  /** False if the CPU file has no checksum, so that damage goes unnoticed. */
  readonly verified: boolean;
}

/**
 * A process's handle on a machine and its state, from which it grants; {@link openManager} makes
 * it. It takes grants of dead owners back within a second, when the kernel reports their end
 * (inotify(7)), or else at the next transaction. `using` closes it, `await using` also releases its
 * grants.
 */
export class Manager extends MachineManager {
  readonly #parts: ManagerParts;
  readonly #ownGrants: OwnGrants;
  /** Always false: see {@link EmptyManager}. */
  readonly isEmpty = false;
  /** Always null: see {@link EmptyManager}. */
  readonly reason = null;

  /** Use {@link openManager}. */
  constructor(parts: ManagerParts) {
    super(parts);
    this.#parts = parts;
    this.#ownGrants = new OwnGrants(parts.site);
  }

  // The manager shares one site with its grants, so that all see its changes.
  get #site(): Site {
    this.#parts.lifetime.check();
    return this.#parts.site;
  }

  // A closed manager has no use for what a request gets.
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
    const pending = tracedAdmission(site, request, () => admit(site, request, signal, room));
    return this.#ownGrants.note(pending, ({ pod, alreadyAdmitted }) => (alreadyAdmitted ? undefined : pod));
  }

  /**
   * Reserves exclusive CPUs for this process, as for a Guaranteed pod of one container. The process
   * does not run on them yet: as a shared member it leaves them until {@link Grant.pin} or
   * {@link Grant.placeThreads}; {@link pin} does both. The grant is durable when the promise
   * resolves. With `optional: true` the result is an {@link EmptyGrant} if there is no room.
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
    checkRequest(site, request);
    checkParts(request, this.topology);
    checkAcquirable(request, this.#parts.resources.keys(), !site.providers.isEmpty);
    const signal = request.wait ? this.#untilClosed(options.signal) : options.signal;
    const admission = await this.#admitted(site, request, signal);
    return new Grant(site, this.#parts.config.placement, admission.pod, admission);
  }

  /**
   * Admits a pod as the kubelet does: every container gets what it asks for, or nothing changes.
   * Containers of Guaranteed pods with whole CPUs get exclusive CPUs; all others run in the shared
   * pool. A pod that is admitted already, by its uid, stays as it is. See docs/admission.md.
   * @throws ERR_INVALID_POD, ERR_INVALID_QUANTITY, ERR_INVALID_OPTION; a rejection is an
   *   {@link AdmissionError} with ERR_TOPOLOGY_AFFINITY, ERR_SMT_ALIGNMENT, ERR_INSUFFICIENT_CPUS,
   *   ERR_INSUFFICIENT_MEMORY, ERR_INSUFFICIENT_DEVICES, ERR_SHARED_POOL_FULL, ERR_POD_POOL_EMPTY,
   *   ERR_HINT_PROVIDER or ERR_PREFERRED_ALLOCATION;
   *   ERR_POD_CONFLICT if the uid is admitted with another request; ERR_ENFORCEMENT,
   *   ERR_MEMBER_UNMOVABLE, ERR_QUIET; ERR_LOCK_TIMEOUT, ERR_STATE_*, ERR_SYSCALL; the signal's
   *   reason
   */
  async admit(pod: PodSpec, options: AdmitOptions = NO_OPTIONS): Promise<Pod> {
    const site = this.#site;
    const request = parseAdmit(pod, options, this.#parts.config.placement);
    checkRequest(site, request);
    const signal = request.wait ? this.#untilClosed(options.signal) : options.signal;
    return new Pod(site, await this.#admitted(site, request, signal));
  }

  /**
   * Admits several pods in one step: all of them, or nothing changes. Each pod is decided after
   * those before it. A pod that is admitted already stays as it is; with `replace`, one that now
   * asks for something else is replaced, and stays if there is no room.
   * @throws as {@link admit}, with the `index` of the pod in `details`; ERR_OWNER_ALIVE if another
   *   living process owns a pod to replace
   */
  async admitAll(pods: readonly PodSpec[], options: AdmitAllOptions = {}): Promise<Pod[]> {
    const site = this.#site;
    const batch = parseBatch(pods, options, this.#parts.config.placement);
    for (const request of batch.requests) checkRequest(site, request);
    if (batch.requests.length === 0) return [];
    const admissions = await this.#admittedAll(site, batch, options.signal);
    return admissions.map((admission) => new Pod(site, admission));
  }

  #admittedAll(site: Site, batch: Batch, signal: AbortSignal | undefined): Promise<Admission[]> {
    const room = this.#roomFor(batch.requests[0]!, undefined, signal);
    const pending = admitAll(site, batch, signal, room);
    const each = batch.requests.map((request, i) => {
      const admission = tracedAdmission(site, request, () => pending.then((all) => all[i]!));
      return this.#ownGrants.note(admission, ({ pod, alreadyAdmitted }) =>
        alreadyAdmitted ? undefined : pod,
      );
    });
    return Promise.all(each);
  }

  /**
   * Records what a pod holds already, all of it or nothing. No policy decides, and no hint is
   * recorded. Shared members leave the CPUs first. A pod that is on record with the same holdings
   * stays as it is. See docs/admission.md.
   * @throws ERR_INVALID_POD, ERR_INVALID_QUANTITY, ERR_INVALID_LIST; ERR_INVALID_OPTION, also for
   *   an owner that is not a cgroup or is empty; ERR_ADOPTION for contradictions, which
   *   `details.value` lists; ERR_MEMBER_UNMOVABLE, ERR_ENFORCEMENT; ERR_LOCK_TIMEOUT, ERR_STATE_*,
   *   ERR_SYSCALL; the signal's reason
   */
  async adopt(pod: AdoptedPod, options: AdoptOptions = {}): Promise<Pod> {
    const site = this.#site;
    const request = parseAdoption(pod, options, this.#parts.config.placement);
    const action = () => adopt(site, request, options.signal);
    return new Pod(site, await tracedAdmission(site, request, action));
  }

  /** Returns the pod with this uid, of any process. @throws ERR_UNKNOWN_GRANT */
  pod(uid: string): Pod {
    return new Pod(this.#site, { pod: findOnRecord(this.#site, uid), warnings: [], alreadyAdmitted: true });
  }

  /**
   * Returns the hint that the Topology Manager decided for a container at its admission.
   * @throws ERR_UNKNOWN_GRANT, ERR_UNKNOWN_CONTAINER
   */
  getAffinity(podUid: string, containerName: string): TopologyHint {
    return this.pod(podUid).container(containerName).hint;
  }

  /**
   * Acquires, calls `body`, and releases in any case. If both fail, it throws the error of `body`.
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
      // The caller must get the first error.
      await grant.release().catch(() => {});
      throw error;
    }
    await grant.release();
    return result;
  }

  /** Returns the grant with this uid, of any process. @throws ERR_UNKNOWN_GRANT */
  grant(uid: string): Grant {
    return new Grant(this.#site, this.#parts.config.placement, findOnRecord(this.#site, uid));
  }

  /**
   * Becomes the owner of a grant that another process hands over ({@link Grant.transfer}). The
   * promise resolves when the threads of that process have left the CPUs. `signal` aborts the wait.
   * @throws ERR_UNKNOWN_TRANSFER if the token was used or withdrawn, or the other process has
   *   ended; ERR_LOCK_TIMEOUT, ERR_STATE_*; the signal's reason while the other process has the
   *   grant; ERR_OWNER_ALIVE if the signal aborts later: this process has the grant then
   *   (`details.value` is its uid)
   */
  async takeOver(token: string, options: { signal?: AbortSignal } = {}): Promise<Grant> {
    if (typeof token !== 'string') invalidOption('token', token, 'the token of a transfer');
    const { signal } = checkOptions(options, ['signal'], 'takeOver');
    const site = this.#site;
    const pending = takeOver(site, token, checkSignal(signal));
    return new Grant(site, this.#parts.config.placement, await this.#ownGrants.note(pending, (pod) => pod));
  }

  /**
   * Moves grants that consent, so that one NUMA node has room for a larger request; under every CPU
   * policy. It repeats moves of as few grants as necessary until two moves gain nothing. With
   * `dryRun` it moves nothing. See docs/dynamic.md.
   * @throws ERR_INVALID_OPTION, ERR_LOCK_TIMEOUT, ERR_STATE_*; the signal's reason: moves that are
   *   done stay
   */
  override async defragment(options: DefragmentOptions = {}): Promise<Defragmentation> {
    const site = this.#site;
    const { dryRun, signal } = parseDefragment(options);
    await turnIfDue();
    const run = dryRun ? planDefragmentation : defragment;
    return run(site, this.#parts.config.placement, signal);
  }

  /**
   * Releases a grant or pod by its uid: of this process, persistent, of a cgroup, or of a dead
   * owner.
   * @throws ERR_UNKNOWN_GRANT, ERR_OWNER_ALIVE
   */
  async release(uid: string): Promise<void> {
    await release(this.#site, findOnRecord(this.#site, uid));
  }

  /**
   * Records every pod of the kubelet's state files as persistent, or none. The files lack some
   * facts: a pod's name becomes its uid, its containers count as running app containers that ask
   * for what they have, and hints and devices stay unknown. See docs/kubelet.md.
   * @throws ERR_KUBELET_STATE for a file that cannot be used; ERR_KUBELET_IMPORT if it contradicts
   *   the machine or other grants; ERR_POD_CONFLICT; ERR_INVALID_OPTION; ERR_LOCK_TIMEOUT,
   *   ERR_STATE_*, ERR_SYSCALL; the signal's reason
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
   * Closes the manager, and releases the grants that it made for this process, unless they were
   * handed over. Grants of other managers, persistent ones and those of cgroups stay. It does
   * nothing after {@link close}.
   * @throws as {@link Grant.release}; an AggregateError if several grants cannot be released
   */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#parts.lifetime.isOver) return;
    this.close();
    await this.#ownGrants.release();
  }
}
