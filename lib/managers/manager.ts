// Manager: grants parts of a machine, on the state that processes share.
import type { ChildProcess } from 'node:child_process';
import type { AdmitAllOptions } from '../admission/grants/admit-all.js';
import { findOnRecord } from '../admission/grants/held-grant.js';
import type { SharedGroup, SharedMemberTarget } from '../admission/grants/shared-membership.js';
import type { Host } from '../admission/host.js';
import type { AdoptedPod, AdoptOptions } from '../adoption/adoption-request.js';
import { checkOptions, invalidOption } from '../base/check-options.js';
import { turnIfDue } from '../base/steps.js';
import {
  type Defragmentation,
  type DefragmentOptions,
  defragment,
  parseDefragment,
  planDefragmentation,
} from '../changes/defragment.js';
import type { HintProvider } from '../decision/hints/hint-provider.js';
import type { Settings } from '../decision/machine-settings.js';
import type { ReconcileReport } from '../enforcement/drift.js';
import { type EmptyGrant, emptyGrant, type Optional } from '../grants/empty-grant.js';
import { Grant } from '../grants/grant.js';
import { Pod } from '../grants/pod.js';
import { release } from '../grants/release.js';
import type { DeviceSelection } from '../input/devices.js';
import type { MachineOptions } from '../input/machine-options.js';
import type { PodSpec } from '../input/pods/pod-spec.js';
import { checkSignal } from '../input/requests/request.js';
import { type AcquireOptions, type AdmitOptions, NO_OPTIONS } from '../input/requests/request-options.js';
import { importPods, type KubeletImportOptions, parseKubeletFiles } from '../kubelet/kubelet-import.js';
import type { KubeletFiles } from '../kubelet/kubelet-states.js';
import type { KubeletPodHoldings } from '../kubelet/record/kubelet-holdings.js';
import type { KubeletStatus } from '../kubelet/record/kubelet-status.js';
import type { RecordKubeletOptions } from '../kubelet/record/record-kubelet.js';
import type { TopologyHint } from '../machine/hints.js';
import { Admissions } from './admissions.js';
import { type DeviceOptions, ManagedMachine } from './managed-machine.js';
import type { ManagerParts } from './manager-parts.js';
import { ManagerView } from './manager-view.js';

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
export class Manager extends ManagerView implements Pick<ManagedMachine, keyof Omit<ManagedMachine, 'end'>> {
  readonly #parts: ManagerParts;
  readonly #machine: ManagedMachine;
  readonly #admissions: Admissions;
  /** Always false: see {@link EmptyManager}. */
  readonly isEmpty = false;
  /** Always null: see {@link EmptyManager}. */
  readonly reason = null;

  /** Use {@link openManager}. */
  constructor(parts: ManagerParts) {
    const { config, host } = parts;
    super({
      ...parts,
      placement: config.placement,
      sharedMembers: () => host.enforcer.members?.list() ?? [],
      release: () => this.#machine.end(),
    });
    this.#parts = parts;
    this.#machine = new ManagedMachine(parts, this);
    this.#admissions = new Admissions(parts);
  }

  // The manager shares one host with its grants, so that all see its changes.
  get #host(): Host {
    this.#parts.lifetime.check();
    return this.#parts.host;
  }

  configure(options: MachineOptions): Promise<Settings> {
    return this.#machine.configure(options);
  }

  registerDevices(resource: string, selection: DeviceSelection, options?: DeviceOptions): void {
    this.#machine.registerDevices(resource, selection, options);
  }

  recordKubelet(
    pods: readonly KubeletPodHoldings[] | null,
    options?: RecordKubeletOptions,
  ): Promise<KubeletStatus | null> {
    return this.#machine.recordKubelet(pods, options);
  }

  addHintProvider(provider: HintProvider): void {
    this.#machine.addHintProvider(provider);
  }

  addSharedMember(target: SharedMemberTarget): Promise<void> {
    return this.#machine.addSharedMember(target);
  }

  startChild(start: () => ChildProcess): Promise<ChildProcess> {
    return this.#machine.startChild(start);
  }

  removeSharedMember(target: SharedMemberTarget): Promise<SharedGroup | null> {
    return this.#machine.removeSharedMember(target);
  }

  reconcile(): Promise<ReconcileReport> {
    return this.#machine.reconcile();
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
    try {
      const admission = await this.#admissions.acquire(options);
      return new Grant(this.#parts.host, this.#parts.config.placement, admission.pod, admission);
    } catch (error) {
      return emptyGrant(options, error);
    }
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
    return new Pod(this.#parts.host, await this.#admissions.admit(pod, options));
  }

  /**
   * Admits several pods in one step: all of them, or nothing changes. Each pod is decided after
   * those before it. A pod that is admitted already stays as it is; with `replace`, one that now
   * asks for something else is replaced, and stays if there is no room.
   * @throws as {@link admit}, with the `index` of the pod in `details`; ERR_OWNER_ALIVE if another
   *   living process owns a pod to replace
   */
  async admitAll(pods: readonly PodSpec[], options: AdmitAllOptions = {}): Promise<Pod[]> {
    const admissions = await this.#admissions.admitAll(pods, options);
    return admissions.map((admission) => new Pod(this.#parts.host, admission));
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
    return new Pod(this.#parts.host, await this.#admissions.adopt(pod, options));
  }

  /** Returns the pod with this uid, of any process. @throws ERR_UNKNOWN_GRANT */
  pod(uid: string): Pod {
    return new Pod(this.#host, { pod: findOnRecord(this.#host, uid), warnings: [], alreadyAdmitted: true });
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
    return new Grant(this.#host, this.#parts.config.placement, findOnRecord(this.#host, uid));
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
    const pod = await this.#admissions.takeOver(token, checkSignal(signal));
    return new Grant(this.#parts.host, this.#parts.config.placement, pod);
  }

  /**
   * Moves grants that consent, so that one NUMA node has room for a larger request; under every CPU
   * policy. It repeats moves of as few grants as necessary until two moves gain nothing. With
   * `dryRun` it moves nothing. See docs/dynamic.md.
   * @throws ERR_INVALID_OPTION, ERR_LOCK_TIMEOUT, ERR_STATE_*; the signal's reason: moves that are
   *   done stay
   */
  override async defragment(options: DefragmentOptions = {}): Promise<Defragmentation> {
    const host = this.#host;
    const { dryRun, signal } = parseDefragment(options);
    await turnIfDue();
    const run = dryRun ? planDefragmentation : defragment;
    return run(host, this.#parts.config.placement, signal);
  }

  /**
   * Releases a grant or pod by its uid: of this process, persistent, of a cgroup, or of a dead
   * owner.
   * @throws ERR_UNKNOWN_GRANT, ERR_OWNER_ALIVE
   */
  async release(uid: string): Promise<void> {
    await release(this.#host, findOnRecord(this.#host, uid));
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
    const host = this.#host;
    const { verified, ...states } = parseKubeletFiles(files, options, this.settings());
    const pods = await importPods(host, states, options.signal);
    return {
      pods: pods.map((pod) => new Pod(host, { pod, warnings: [], alreadyAdmitted: false })),
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
    await this.#admissions.own.release();
  }
}
