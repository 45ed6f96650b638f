// ManagerView: the machine and the state that its processes share, to be looked at.
import { EventEmitter } from 'node:events';
import { type InspectOptions, inspect } from 'node:util';
import type { Assignments } from '../account/assignments.js';
import { cpusNow } from '../account/cpus-now.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { freeCpus, sharedPool } from '../account/pools.js';
import { publishError } from '../admission/diagnostics.js';
import { checkRealMachine } from '../admission/grants/grant-record.js';
import { findOnRecord } from '../admission/grants/held-grant.js';
import { ManagerWatch, type StateChange } from '../admission/manager-watch.js';
import { type PlanOnRecord, planFor } from '../admission/plan.js';
import { assignmentsOf, grantInfos, knownAssignments, type ReadOnlySite } from '../admission/site.js';
import type { Warning } from '../admission/warnings.js';
import type { GrantAudit } from '../audit/account.js';
import { type AuditOptions, auditGrant } from '../audit/grant-audits.js';
import type { NumalignError } from '../base/errors.js';
import type { GrantInfo } from '../decision/grant-info.js';
import { type Settings, settingsNow } from '../decision/machine-settings.js';
import { type MemoryTable, memoryTables } from '../decision/memory-tables.js';
import type { Drift, Hotplug } from '../enforcement/drift.js';
import type { SharedMember } from '../enforcement/members/confinement.js';
import { checkPlacement, type Placement } from '../input/placement.js';
import type { PodSpec } from '../input/pod-request.js';
import { type AdmitOptions, parseAdmit } from '../input/request.js';
import { exportKubelet } from '../kubelet/kubelet-export.js';
import type { KubeletFiles } from '../kubelet/kubelet-files.js';
import type { CpuSet } from '../machine/cpu-set.js';
import type { Topology } from '../machine/topology.js';
import type { Lifetime } from './lifetime.js';

/** Events of a {@link Manager}, by name. A {@link ManagerView} has `change` and `error` alone. */
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

// Of every emitter.
interface ListenerEvents {
  newListener: [event: string | symbol];
  removeListener: [event: string | symbol];
}

/** What a view is made of. */
export interface ViewParts {
  readonly site: ReadOnlySite;
  /** Of requests that do not say otherwise. */
  readonly placement: Placement;
  readonly lifetime: Lifetime;
  /** What opening has found. */
  readonly found: readonly Warning[];
  readonly sharedMembers: () => readonly SharedMember[];
  /** Ends the grants of dead owners, where that may be done. */
  readonly reclaim: () => Promise<void>;
  /** Lets go what is open, once the view is closed. */
  readonly release: () => void;
}

/** The grants on record of living owners, for the package's own modules. */
export let livingPods: (view: ManagerView) => readonly PodAssignment[];

/**
 * Made by {@link openManager} with `readOnly`: answers what a {@link Manager} answers, and changes
 * nothing. No folder, file, lock or cgroup is made, and this process becomes no shared member. It
 * needs the right to read the state folder, neither to write it nor to be in its group. Emits
 * `change` within milliseconds of anybody's commit, with all that has changed since the last; while
 * somebody listens, it watches the folder and keeps the process alive.
 */
export class ManagerView extends EventEmitter<ManagerEvents & ListenerEvents> {
  /** Tells the managers of this thread apart, in the messages of the diagnostics channels. */
  readonly id: number;
  /**
   * `machine`: speaks for the whole machine. `private`: only for those who share the folder.
   * `memory`: only for this object.
   */
  readonly scope: 'machine' | 'private' | 'memory';
  /** Empty where nothing is kept on disk. */
  readonly stateDir: string;
  readonly #parts: ViewParts;
  readonly #watch: ManagerWatch;

  /** Use {@link openManager}. */
  constructor(parts: ViewParts) {
    super();
    const { managerId, ledger } = parts.site;
    this.id = managerId;
    this.#parts = parts;
    this.scope = ledger.scope;
    this.stateDir = ledger.scope === 'memory' ? '' : ledger.path;
    this.#watch = this.#newWatch();
    // Told before the listener is added.
    this.on('newListener', (event) => {
      if (event !== 'change') return;
      parts.lifetime.check();
      this.#watch.start();
    });
    this.on('removeListener', (event) => {
      if (event === 'change' && this.listenerCount('change') === 0) this.#watch.stop();
    });
  }

  #newWatch(): ManagerWatch {
    const { site, reclaim } = this.#parts;
    return new ManagerWatch({
      store: () => site.ledger,
      recoveries: () => site.ledger.recoveries,
      infos: (pods, state) => grantInfos(this.#site, pods, state),
      settings: () => this.settings(),
      sharedPool: () => this.sharedPool(),
      reclaim,
      tell: (change) => this.emit('change', change),
      fail: (error) => {
        publishError(site, 'watch', error);
        if (this.listenerCount('error') > 0) this.emit('error', error);
      },
    });
  }

  /** What JSON.stringify writes: nothing that has to be read from the state. */
  toJSON() {
    const { id, scope, stateDir, topology } = this;
    return { id, scope, stateDir, cpus: topology.cpus };
  }

  /** What console.log shows. */
  [inspect.custom](_depth: number, options: InspectOptions): string {
    return `${this.constructor.name} ${inspect(this.toJSON(), options)}`;
  }

  get #site(): ReadOnlySite {
    this.#parts.lifetime.check();
    return this.#parts.site;
  }

  /**
   * The machine. A {@link Manager} replaces it by a new one once CPUs have come online that it does
   * not have.
   */
  get topology(): Topology {
    return this.#parts.site.topology;
  }

  #state(): Assignments {
    return assignmentsOf(this.#site, this.#site.ledger.read());
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
    const { site, found } = this.#parts;
    return [...site.ledger.recoveries, ...found];
  }

  /** The generation of the state that the synchronous getters answer for; 0 where there is none. */
  generation(): number {
    this.#state();
    return this.#site.ledger.read()?.generation ?? 0;
  }

  /**
   * CPUs for everything without exclusive ones. Synchronous: a stat, a look at which CPUs are
   * online, and a read where the state has changed.
   * @throws ERR_STATE_CORRUPT where somebody who lives may hold more than is known
   */
  sharedPool(): CpuSet {
    return sharedPool(knownAssignments(this.#site), this.#now());
  }

  /** Isolated CPUs that nobody holds, as {@link freeCpus}. */
  freeIsolatedCpus(): CpuSet {
    return freeCpus(knownAssignments(this.#site), this.#now(), 'isolated');
  }

  /**
   * CPUs that nobody holds and that are neither reserved nor isolated. One grant cannot take all of
   * them where nothing else would be left to share; those of dead owners count as taken until they
   * were taken back.
   * @throws ERR_STATE_CORRUPT as {@link sharedPool}
   */
  freeCpus(): CpuSet {
    return freeCpus(knownAssignments(this.#site), this.#now());
  }

  /**
   * Why nothing is granted or given back at present: ERR_STATE_CORRUPT, ERR_STATE_VERSION; else
   * null. What is on record can be looked at all the same. Synchronous.
   * @throws ERR_STATE_CORRUPT where the state is gone
   */
  refusal(): NumalignError | null {
    this.#state();
    return this.#site.ledger.read()?.refusal ?? null;
  }

  settings(): Settings {
    return settingsNow(this.#state().settings, this.#now());
  }

  /**
   * What every NUMA node has of each type of memory, and how much of it is granted. The machine
   * itself keeps no such account.
   */
  memory(): readonly MemoryTable[] {
    return memoryTables(this.#state(), this.topology);
  }

  static {
    livingPods = (view) => {
      const { pods } = view.#state();
      const dead = new Set(view.#site.ledger.owners.deadPods(pods));
      return pods.filter((pod) => !dead.has(pod));
    };
  }

  /** All grants on record, those of other processes too. */
  grants(): GrantInfo[] {
    const state = this.#state();
    return grantInfos(this.#site, state.pods, state);
  }

  /**
   * What {@link Manager.admit} would decide now, without doing it: synchronous, nothing is locked
   * or changed. Custom hint providers are asked to allocate, and to release at once, with `dryRun`
   * set.
   * @throws what {@link Manager.admit} throws before it decides, and ERR_HINT_PROVIDER
   */
  plan(pod: PodSpec, options: AdmitOptions = {}): PlanOnRecord {
    const site = this.#site;
    const request = parseAdmit(pod, options, this.#parts.placement);
    checkPlacement(request.placement, this.topology);
    return planFor(site, request);
  }

  /**
   * The state as the kubelet (v1.32) would have written it: the texts of cpu_manager_state and
   * memory_manager_state. A container's CPUs are all that it keeps from others. Grants of dead
   * owners are left out, devices have no place there. Synchronous.
   */
  exportKubelet(): KubeletFiles & Record<keyof KubeletFiles, string> {
    return exportKubelet(this.#site, this.#parts.placement);
  }

  /**
   * As {@link Grant.audit}, of anybody's grant: since the first look at it.
   * @throws ERR_UNKNOWN_GRANT, ERR_INVALID_OPTION, ERR_SIMULATED_MACHINE
   */
  audit(uid: string, options: AuditOptions = {}): GrantAudit {
    const site = this.#site;
    const pod = findOnRecord(site, uid);
    checkRealMachine(site);
    return auditGrant(site, pod, options);
  }

  /**
   * The processes and cgroups that run in the shared pool, and leave CPUs before these are granted;
   * those of other openers too.
   */
  sharedMembers(): readonly SharedMember[] {
    this.#parts.lifetime.check();
    return this.#parts.sharedMembers();
  }

  /**
   * Ends the use of this object, its events, and requests that wait (ERR_MANAGER_CLOSED). Grants
   * stay as they are. The state folder is closed with the last manager, or with the last grant of
   * this process where that comes later.
   */
  close(): void {
    const { lifetime, release } = this.#parts;
    if (lifetime.isOver) return;
    lifetime.end();
    this.#watch.stop();
    release();
    for (const event of ['change', 'drift', 'hotplug', 'error'] as const) this.removeAllListeners(event);
  }

  [Symbol.dispose](): void {
    this.close();
  }
}
