// Manager: the machine, the state that its users share, and the grants.
import { EventEmitter } from 'node:events';
import { type InspectOptions, inspect } from 'node:util';
import { type Assignments, findPod } from './account/assignments.js';
import { cpusNow } from './account/cpus-now.js';
import type { PodAssignment } from './account/pod-assignment.js';
import { freeCpus, sharedPool } from './account/pools.js';
import { admit } from './admission/admit.js';
import { publishError } from './admission/diagnostics.js';
import { unknownGrant } from './admission/grants/held-grant.js';
import type { SharedMemberTarget } from './admission/grants/shared-membership.js';
import { addSharedMember, removeSharedMember } from './admission/grants/shared-membership.js';
import { tracedAdmission } from './admission/grants/traced.js';
import { takeOver } from './admission/grants/transfer.js';
import { ManagerWatch, type StateChange } from './admission/manager-watch.js';
import { type PlanOnRecord, planFor } from './admission/plan.js';
import { assignmentsOf, grantInfos, knownAssignments, type Site } from './admission/site.js';
import { reclaim } from './admission/transact.js';
import type { Warning } from './admission/warnings.js';
import type { GrantAudit } from './audit/account.js';
import type { AuditOptions } from './audit/grant-audits.js';
import { checkOptions, invalidOption } from './base/check-options.js';
import { NumalignError } from './base/errors.js';
import {
  checkPreferredAllocation,
  type DeviceResource,
  type PreferredAllocation,
} from './decision/device-resources.js';
import type { GrantInfo } from './decision/grant-info.js';
import type { HintProvider } from './decision/hints/hint-provider.js';
import type { HintProviders } from './decision/hints/hint-providers.js';
import { type Settings, settingsNow } from './decision/machine-settings.js';
import { type MemoryTable, memoryTables } from './decision/memory-tables.js';
import type { SharedMember } from './enforcement/confinement.js';
import type { Drift, Hotplug, ReconcileReport } from './enforcement/drift.js';
import { Grant } from './grant.js';
import { releaseGrant } from './grants/release-grant.js';
import type { Config } from './input/config.js';
import { type DeviceSelection, parseDevices } from './input/devices.js';
import type { MachineOptions } from './input/machine-options.js';
import { checkPlacement } from './input/placement.js';
import type { PodSpec } from './input/pod-request.js';
import {
  type AcquireOptions,
  type AdmitOptions,
  checkAcquirable,
  checkSignal,
  parseAcquire,
  parseAdmit,
} from './input/request.js';
import { exportKubelet } from './kubelet/kubelet-export.js';
import type { KubeletFiles } from './kubelet/kubelet-files.js';
import { importPods, type KubeletImportOptions, parseKubeletFiles } from './kubelet/kubelet-import.js';
import type { CpuSet } from './machine/cpu-set.js';
import type { TopologyHint } from './machine/hints.js';
import type { Topology } from './machine/topology.js';
import { configure } from './opening/configure.js';
import { leavePool } from './opening/pool-membership.js';
import { Pod } from './pod.js';
import { Reconciler, type Reconciling } from './reconcile/reconciler.js';
import type { Store } from './state/store.js';

/** Events of a {@link Manager}, by name. */
export interface ManagerEvents {
  change: [change: StateChange];
  /**
   * The state cannot be read, or what dead owners had not be taken back. Only told where somebody
   * listens.
   */
  error: [error: Error];
  /** Something was not as it should be; see {@link Manager.reconcile}. */
  drift: [drift: Drift];
  /** CPUs of a grant of this process have gone offline, or are back. */
  hotplug: [hotplug: Hotplug];
}

/** What {@link Manager.registerDevices} takes beside the devices. */
export interface DeviceOptions {
  preferredAllocation?: PreferredAllocation;
}

/** What {@link Manager.importKubelet} has taken over. */
export interface KubeletImport {
  readonly pods: readonly Pod[];
  /** False: the CPU file has no checksum, and nothing tells whether it is damaged. */
  readonly verified: boolean;
}

// The lock may be held for long, a disk full.
const RECLAIM_PAUSE_MS = 50;
const RECLAIM_LONGEST_PAUSE_MS = 30_000;

// Of every emitter.
interface ListenerEvents {
  newListener: [event: string | symbol];
  removeListener: [event: string | symbol];
}

/** The grants on record of living owners, for the package's own modules. */
export let livingPods: (manager: Manager) => readonly PodAssignment[];

/**
 * Made by {@link openManager}. Emits `change` within milliseconds of anybody's commit, with all
 * that has changed since the last; while somebody listens, it watches the folder and keeps the
 * process alive. Listened to or not, it takes back what dead owners had within a second: the kernel
 * tells of their end (inotify(7)). Where the kernel has no watch left to give, the next transaction
 * does.
 */
export class Manager extends EventEmitter<ManagerEvents & ListenerEvents> {
  /** Tells the managers of this thread apart, in the messages of the diagnostics channels. */
  readonly id: number;
  /**
   * `machine`: speaks for the whole machine. `private`: only for those who share the folder.
   * `memory`: only for this object.
   */
  readonly scope: 'machine' | 'private' | 'memory';
  /** Empty where nothing is kept on disk. */
  readonly stateDir: string;
  readonly #config: Config;
  readonly #ledger: Store;
  readonly #ownSite: Site;
  readonly #resources: Map<string, DeviceResource>;
  readonly #providers: HintProviders;
  readonly #found: readonly Warning[];
  readonly #reconciling: Reconciling;
  readonly #endReconciling: () => void;
  readonly #endOwnerWatch: () => void;
  #closed = false;
  readonly #closing = new AbortController();
  readonly #watch = new ManagerWatch({
    store: () => this.#ledger,
    recoveries: () => this.#ledger.recoveries,
    infos: (pods, state) => grantInfos(this.#site, pods, state),
    settings: () => this.settings,
    sharedPool: () => this.sharedPool,
    reclaim: async () => reclaim(this.#site),
    tell: (change) => this.emit('change', change),
    fail: (error) => {
      publishError(this.#ownSite, 'watch', error);
      if (this.listenerCount('error') > 0) this.emit('error', error);
    },
  });

  /** Use {@link openManager}. */
  constructor(config: Config, site: Site, resources: Map<string, DeviceResource>, found: readonly Warning[]) {
    super();
    const { ledger, providers, managerId } = site;
    this.id = managerId;
    this.#config = config;
    this.#ownSite = site;
    this.#resources = resources;
    this.#providers = providers;
    this.#found = found;
    this.#ledger = ledger;
    this.scope = ledger.scope;
    this.stateDir = ledger.scope === 'memory' ? '' : ledger.path;
    this.#reconciling = {
      ...{ site, placement: config.placement, periodMs: config.reconcilePeriodMs },
      drifted: (drift) => this.emit('drift', drift),
      hotplugged: (hotplug) => this.emit('hotplug', hotplug),
      failed: (error) => {
        if (this.listenerCount('error') > 0) this.emit('error', error);
      },
    };
    this.#endReconciling = site.topology.isSimulated
      ? () => {}
      : Reconciler.of(ledger).attach(this.#reconciling);
    const takeBack = (pauseMs: number) => {
      reclaim(site).catch((error) => {
        publishError(site, 'watch', error);
        if (pauseMs < RECLAIM_LONGEST_PAUSE_MS && !this.#closed)
          setTimeout(takeBack, pauseMs, 2 * pauseMs).unref();
      });
    };
    this.#endOwnerWatch = ledger.watchOwners(() => takeBack(RECLAIM_PAUSE_MS));
    // Told before the listener is added.
    this.on('newListener', (event) => {
      if (event !== 'change') return;
      this.#checkOpen();
      this.#watch.start();
    });
    this.on('removeListener', (event) => {
      if (event === 'change' && this.listenerCount('change') === 0) this.#watch.stop();
    });
  }

  #checkOpen(): void {
    if (this.#closed) throw closedError();
  }

  /** What JSON.stringify writes: nothing that has to be read from the state. */
  toJSON() {
    const { id, scope, stateDir, topology } = this;
    return { id, scope, stateDir, cpus: topology.cpus };
  }

  /** What console.log shows. */
  [inspect.custom](_depth: number, options: InspectOptions): string {
    return `Manager ${inspect(this.toJSON(), options)}`;
  }

  // One for all, its grants too: what is changed in it all of them see.
  get #site(): Site {
    this.#checkOpen();
    return this.#ownSite;
  }

  /** The machine. Replaced by a new one once CPUs have come online that it does not have. */
  get topology(): Topology {
    return this.#ownSite.topology;
  }

  #state(): Assignments {
    return assignmentsOf(this.#site, this.#ledger.read());
  }

  #now() {
    return cpusNow(this.topology, this.#state().pods);
  }

  /**
   * What opening has found: a state of an earlier boot, grants of which something does not hold any
   * more, settings that the machine cannot meet at present. For how things are now, see
   * {@link grants}. And whenever it was: a damaged state that this process has put together again.
   */
  get warnings(): readonly Warning[] {
    return [...this.#ledger.recoveries, ...this.#found];
  }

  /** The generation of the state that the synchronous getters answer for. */
  get generation(): number {
    this.#state();
    return this.#ledger.read()?.generation ?? 0;
  }

  /**
   * CPUs for everything without exclusive ones. Synchronous: a stat, a look at which CPUs are
   * online, and a read where the state has changed.
   * @throws ERR_STATE_CORRUPT where somebody who lives may hold more than is known
   */
  get sharedPool(): CpuSet {
    return sharedPool(knownAssignments(this.#site), this.#now());
  }

  /** Isolated CPUs that nobody holds, as {@link freeCpus}. */
  get freeIsolatedCpus(): CpuSet {
    return freeCpus(knownAssignments(this.#site), this.#now(), 'isolated');
  }

  /**
   * CPUs that nobody holds and that are neither reserved nor isolated. One grant cannot take all of
   * them where nothing else would be left to share; those of dead owners count as taken until they
   * were taken back.
   * @throws ERR_STATE_CORRUPT as {@link sharedPool}
   */
  get freeCpus(): CpuSet {
    return freeCpus(knownAssignments(this.#site), this.#now());
  }

  /**
   * Why nothing is granted or given back at present: ERR_STATE_CORRUPT, ERR_STATE_VERSION; else
   * null. What is on record can be looked at all the same. Synchronous.
   * @throws ERR_STATE_CORRUPT where the state is gone
   */
  get refusal(): NumalignError | null {
    this.#state();
    return this.#ledger.read()?.refusal ?? null;
  }

  get settings(): Settings {
    return settingsNow(this.#state().settings, this.#now());
  }

  /**
   * What every NUMA node has of each type of memory, and how much of it is granted. The machine
   * itself keeps no such account.
   */
  get memory(): readonly MemoryTable[] {
    return memoryTables(this.#state(), this.topology);
  }

  static {
    livingPods = (manager) => {
      const { pods } = manager.#state();
      const dead = new Set(manager.#ledger.owners.deadPods(pods));
      return pods.filter((pod) => !dead.has(pod));
    };
  }

  /** All grants on record, those of other processes too. */
  grants(): GrantInfo[] {
    const state = this.#state();
    return grantInfos(this.#site, state.pods, state);
  }

  // Nobody would hear of what a closed manager gets.
  #untilClosed(
    { wait }: { readonly wait: boolean },
    signal: AbortSignal | undefined,
  ): AbortSignal | undefined {
    if (!wait) return signal;
    return signal ? AbortSignal.any([signal, this.#closing.signal]) : this.#closing.signal;
  }

  /**
   * Takes exclusive CPUs for this process: a Guaranteed pod of one container. Remembers them on
   * disk, and returns once that is durable.
   * @throws ERR_INVALID_OPTION; as {@link admit}
   */
  async acquire(options: AcquireOptions): Promise<Grant> {
    const site = this.#site;
    const request = parseAcquire(options, this.#config.placement);
    checkPlacement(request.placement, this.topology);
    checkAcquirable(request, this.#resources.keys(), !site.providers.isEmpty);
    const signal = this.#untilClosed(request, options.signal);
    const { pod, warnings } = await tracedAdmission(site, request, () => admit(site, request, signal));
    return new Grant(site, this.#config.placement, pod, warnings);
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
  async admit(pod: PodSpec, options: AdmitOptions = {}): Promise<Pod> {
    const site = this.#site;
    const request = parseAdmit(pod, options, this.#config.placement);
    checkPlacement(request.placement, this.topology);
    const signal = this.#untilClosed(request, options.signal);
    return new Pod(site, await tracedAdmission(site, request, () => admit(site, request, signal)));
  }

  /**
   * What {@link admit} would decide now, without doing it: synchronous, nothing is locked or
   * changed. Custom hint providers are asked to allocate, and to release at once, with `dryRun`
   * set.
   * @throws what {@link admit} throws before it decides, and ERR_HINT_PROVIDER
   */
  plan(pod: PodSpec, options: AdmitOptions = {}): PlanOnRecord {
    const site = this.#site;
    const request = parseAdmit(pod, options, this.#config.placement);
    checkPlacement(request.placement, this.topology);
    return planFor(site, request);
  }

  /** The pod with this uid, whoever admitted it. @throws ERR_UNKNOWN_GRANT */
  pod(uid: string): Pod {
    return new Pod(this.#site, { pod: this.#find(uid), warnings: [], alreadyAdmitted: true });
  }

  /**
   * What the Topology Manager decided for a container when it was admitted.
   * @throws ERR_UNKNOWN_GRANT, ERR_UNKNOWN_CONTAINER
   */
  getAffinity(podUid: string, containerName: string): TopologyHint {
    return this.pod(podUid).container(containerName).hint;
  }

  /**
   * Has devices take part in every admission of this manager: a list of them, or a pattern that
   * selects some of {@link Topology.devices}. Once more for the same resource, it replaces the
   * list: so a device that has fallen ill is told; the callback stays unless another is given. What
   * is granted stays granted, whatever the list says, and so do devices of resources that this
   * manager does not know.
   * @throws ERR_INVALID_OPTION
   */
  registerDevices(resource: string, selection: DeviceSelection, options: DeviceOptions = {}): void {
    this.#checkOpen();
    const { preferredAllocation } = checkOptions(options, ['preferredAllocation'], 'registerDevices');
    const devices = parseDevices(selection, this.topology, resource);
    const before = this.#resources.get(resource)?.preferredAllocation;
    const callback = checkPreferredAllocation(preferredAllocation) ?? before;
    this.#resources.set(resource, { name: resource, devices, preferredAllocation: callback });
  }

  /**
   * Has a resource of your own take part in every admission of this manager, after numalign's and
   * in the order of registration.
   * @throws ERR_INVALID_OPTION for an object that is no provider, or a name that is taken
   */
  addHintProvider(provider: HintProvider): void {
    this.#site.providers.add(provider);
  }

  /**
   * Acquires, calls `body`, and releases however it ends. Where both fail, the error of `body` is
   * thrown.
   * @throws as {@link acquire} and {@link Grant.release}
   */
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
    return new Grant(this.#site, this.#config.placement, this.#find(uid));
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
    return new Grant(site, this.#config.placement, await takeOver(site, token, checkSignal(signal)));
  }

  #find(uid: string): PodAssignment {
    const state = this.#state();
    const pod = findPod(state, uid);
    if (!pod) throw unknownGrant(uid, state, this.#ledger.path);
    return pod;
  }

  /**
   * Releases a grant by its uid: one of this process, a persistent one, a cgroup's, or one whose
   * owner is dead.
   * @throws ERR_UNKNOWN_GRANT, ERR_OWNER_ALIVE
   */
  async release(uid: string): Promise<void> {
    await releaseGrant(this.#site, this.#find(uid));
  }

  /**
   * Changes the machine's settings for all its users. Grants in force are kept, whatever the new
   * settings say.
   * @throws ERR_INVALID_OPTION; ERR_CONFIG_CONFLICT where nothing would be left to share, or
   *   `cgroupRoot` would change while CPUs are exclusive; ERR_KUBELET_CONFLICT as
   *   {@link openManager}
   */
  async configure(options: MachineOptions): Promise<Settings> {
    await configure(this.#site, this.#config, options);
    return this.settings;
  }

  /**
   * The state as the kubelet (v1.32) would have written it: the texts of cpu_manager_state and
   * memory_manager_state. A container's CPUs are all that it keeps from others. Grants of dead
   * owners are left out, devices have no place there. Synchronous.
   */
  exportKubelet(): KubeletFiles & Record<keyof KubeletFiles, string> {
    return exportKubelet(this.#site, this.#config.placement);
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
    const { verified, ...states } = parseKubeletFiles(files, options);
    const pods = await importPods(site, states, options.signal);
    return {
      pods: pods.map((pod) => new Pod(site, { pod, warnings: [], alreadyAdmitted: false })),
      verified,
    };
  }

  /**
   * As {@link Grant.audit}, of anybody's grant: since the first look at it.
   * @throws ERR_UNKNOWN_GRANT, ERR_INVALID_OPTION, ERR_SIMULATED_MACHINE
   */
  audit(uid: string, options: AuditOptions = {}): GrantAudit {
    return this.grant(uid).audit(options);
  }

  /**
   * The processes and cgroups that run in the shared pool, and leave CPUs before these are granted;
   * those of other openers too.
   */
  sharedMembers(): readonly SharedMember[] {
    return this.#site.enforcer.members?.list() ?? [];
  }

  /**
   * Has a process (with all its threads), or every process in and below a cgroup, run in the shared
   * pool from now on: it leaves CPUs before these are granted, which is read back, and comes back
   * when they are given back. A process by its cpuset, where it can be moved into the shared group
   * below `cgroupRoot`, else by the masks of its threads, of which each keeps its own choice in
   * mind; a cgroup below `cgroupRoot` by its cpuset. A process stays a member until it ends.
   * @throws ERR_UNKNOWN_MEMBER where there is no such process or cgroup; ERR_MEMBER_UNMOVABLE where
   *   it cannot leave the CPUs that are granted, was attached to some of them, or this user may not
   *   move it; ERR_INVALID_OPTION, ERR_SIMULATED_MACHINE, ERR_LOCK_TIMEOUT, ERR_STATE_*
   */
  async addSharedMember(target: SharedMemberTarget): Promise<void> {
    await addSharedMember(this.#site, target);
  }

  /**
   * It is moved no more. A process goes back from the shared group to where it was taken from,
   * where no CPU is exclusive and that is known (it was not attached to a grant); else it stays
   * where it is.
   * @throws ERR_UNKNOWN_MEMBER; as {@link addSharedMember}
   */
  async removeSharedMember(target: SharedMemberTarget): Promise<void> {
    await removeSharedMember(this.#site, target);
  }

  /**
   * Compares what is so with what is on record, and repairs it: threads of this process that may
   * run outside of the grant that they are pinned for (a mask inside of it is intent, and left
   * alone) or are out of its cgroup; cgroups below `cgroupRoot` that have vanished, have other
   * CPUs, or are left of grants that are gone; the partition; shared members on CPUs that are
   * somebody's; CPUs of this process's grants that have gone offline or come back. Done after every
   * change and every {@link ManagerOptions.cpuManagerReconcilePeriod} by itself, without keeping
   * the process alive. Where nothing is different, nothing is written and no lock taken. What was
   * repaired twice and is different again is `contested`: it is told once, and left alone until it
   * is found right or the grants change. On a simulated machine there is nothing to do. Tells what
   * it finds by the events `drift` and `hotplug` too.
   * @throws ERR_LOCK_TIMEOUT, ERR_STATE_*, ERR_CGROUP, ERR_MANAGER_CLOSED
   */
  async reconcile(): Promise<ReconcileReport> {
    this.#checkOpen();
    return Reconciler.of(this.#ledger).reconcile(this.#reconciling);
  }

  /**
   * Ends the use of this object, its events, and requests that wait (ERR_MANAGER_CLOSED). Grants
   * stay as they are. The state folder is closed with the last manager, or with the last grant of
   * this process where that comes later.
   */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#closing.abort(closedError());
    this.#watch.stop();
    this.#endReconciling();
    leavePool(this.#ownSite);
    this.#endOwnerWatch();
    this.removeAllListeners('change');
    this.removeAllListeners('drift');
    this.removeAllListeners('hotplug');
    this.removeAllListeners('error');
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

function closedError(): NumalignError {
  return new NumalignError('ERR_MANAGER_CLOSED', 'the manager has been closed');
}
