// ManagerView: the machine and the state that its processes share, to be looked at.
import type { Assignments } from '../account/assignments.js';
import { cpusNow } from '../account/cpus-now.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { freeCpus, sharedPool } from '../account/pools.js';
import { checkRealMachine } from '../admission/grants/grant-record.js';
import { findOnRecord } from '../admission/grants/held-grant.js';
import { assignmentsOf, grantInfos, knownAssignments } from '../admission/on-record.js';
import { type PlanOnRecord, planFor } from '../admission/planning/plan.js';
import { Planner, reasonsToShare, requestFor } from '../admission/planning/planner.js';
import { PreparedPod } from '../admission/planning/prepared-pod.js';
import type { ReadOnlySite } from '../admission/site.js';
import type { Warning } from '../admission/warnings.js';
import type { GrantAudit } from '../audit/account.js';
import type { AuditOptions } from '../audit/audit-options.js';
import { auditGrant } from '../audit/grant-audits.js';
import { WatchedGrants } from '../audit/watched-grants.js';
import type { NumalignError } from '../base/errors.js';
import type { GrantInfo } from '../decision/grant-info.js';
import { type Settings, settingsNow } from '../decision/machine-settings.js';
import { type MemoryTable, memoryTables } from '../decision/memory/memory-tables.js';
import type { SharedMember } from '../enforcement/members/shared-member.js';
import { managerPlacement } from '../input/placement.js';
import type { PodSpec } from '../input/pods/pod-request.js';
import type { PlacementOptions } from '../input/policies.js';
import { type AdmitOptions, NO_OPTIONS } from '../input/request.js';
import { exportKubelet } from '../kubelet/kubelet-export.js';
import type { KubeletFiles } from '../kubelet/kubelet-files.js';
import { type KubeletStatus, kubeletStatus } from '../kubelet/record/kubelet-status.js';
import type { CpuSet } from '../machine/cpu-set.js';
import type { Topology } from '../machine/topology.js';
import { refreshSite } from '../machine/topology-refresh.js';
import { type KeptFiles, readKeptFiles } from '../status/kept-files.js';
import { readStatus } from '../status/read-status.js';
import type { StateStatus } from '../status/status.js';
import { lookAgain, ManagerEmitter, type ViewParts } from './manager-emitter.js';

/** The grants on record of living owners, for the package's own modules. */
export let livingPods: (view: ManagerView) => readonly PodAssignment[];

/**
 * Made by {@link openManager} with `readOnly`: answers what a {@link Manager} answers, and changes
 * nothing. No folder, file, lock or cgroup is made, and this process becomes no shared member. It
 * needs the right to read the state folder, neither to write it nor to be in its group. Emits
 * `change` within milliseconds of anybody's commit, in a stream of commits once a second, with all
 * that has changed since the last; while somebody listens, it watches the folder and keeps the
 * process alive.
 */
export class ManagerView extends ManagerEmitter {
  readonly #parts: ViewParts;
  readonly #watched = new WatchedGrants('last look');

  /** Use {@link openManager}. */
  constructor(parts: ViewParts) {
    super(parts);
    this.#parts = parts;
  }

  get #site(): ReadOnlySite {
    this.#parts.lifetime.check();
    return this.#parts.site;
  }

  /**
   * The machine. It is replaced by a new one once CPUs have come online that it does not have: by a
   * {@link Manager}, and by {@link audits}.
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

  /**
   * How requests are placed that do not say otherwise, as it was opened: each option, also where
   * its default or a KubeletConfiguration says what it is.
   */
  get placement(): Readonly<Required<PlacementOptions>> {
    return managerPlacement(this.#parts.placement);
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

  /**
   * What the kubelet has given out, as {@link Manager.recordKubelet} has recorded it; null: nobody
   * has. Synchronous.
   */
  kubelet(): KubeletStatus | null {
    const { owners } = this.#site.ledger;
    return kubeletStatus(this.#state().kubelet, (uuid) => owners.isProcessAlive(uuid));
  }

  /** All grants on record, those of other processes too. */
  grants(): GrantInfo[] {
    const state = this.#state();
    return grantInfos(this.#site, state.pods, state);
  }

  /** One of {@link grants}, for a small part of what all of them cost. @throws ERR_UNKNOWN_GRANT */
  grantInfo(uid: string): GrantInfo {
    return grantInfos(this.#site, [findOnRecord(this.#site, uid)], this.#state())[0]!;
  }

  /**
   * What {@link Manager.admit} would decide now, without doing it: synchronous, nothing is locked
   * or changed. Custom hint providers are asked to allocate, and to release at once, with `dryRun`
   * set.
   * @throws what {@link Manager.admit} throws before it decides, and ERR_HINT_PROVIDER
   */
  plan(pod: PodSpec, options: AdmitOptions = NO_OPTIONS): PlanOnRecord {
    const site = this.#site;
    return planFor(site, requestFor(site, this.#parts.placement, pod, options));
  }

  /**
   * Reads and checks a pod once, to plan it again and again: its `plan()` answers what {@link plan}
   * would, in less time. What is changed in `pod` or `options` afterwards does not count.
   * @throws as {@link plan}, of the pod and the options
   */
  prepare(pod: PodSpec, options: AdmitOptions = NO_OPTIONS): PreparedPod {
    return new PreparedPod(() => this.#site, requestFor(this.#site, this.#parts.placement, pod, options));
  }

  /**
   * Plans several pods, one on top of the other, on what is on record now.
   * @throws ERR_STATE_CORRUPT as {@link sharedPool}
   */
  planner(): Planner {
    return new Planner(this.#site, this.#parts.placement);
  }

  /**
   * For each container of a pod, in its order, why it would get no exclusive CPUs whatever is free:
   * the CPU policy, the pod's QoS class, or a request that is no whole number of CPUs. null: it
   * would get some.
   * @throws as {@link plan}
   */
  whyShared(pod: PodSpec, options: AdmitOptions = NO_OPTIONS): readonly (string | null)[] {
    return reasonsToShare(this.#site, requestFor(this.#site, this.#parts.placement, pod, options));
  }

  /**
   * The state as the kubelet would have written it: the texts of cpu_manager_state and
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
   * As {@link audit}, of the grants of all living owners: since the last call, at the first look at
   * a grant nothing yet. The machine is looked at once for all of them, and discovered again where
   * CPUs have come online.
   * @throws ERR_SIMULATED_MACHINE
   */
  async audits(): Promise<GrantAudit[]> {
    const site = this.#site;
    checkRealMachine(site);
    if (!(await refreshSite(site)).isEmpty) lookAgain(this);
    return this.#watched.look(site.topology, livingPods(this));
  }

  /**
   * All that the state says at this moment, of one generation, also where it is damaged. Synchronous;
   * it reads the file at every call, and looks through /proc for processes that keep grants
   * of owners that have ended.
   * @throws ERR_STATE_FOLDER where the folder is closed to this process; ERR_STATE_CORRUPT where
   *   nothing can be told; ERR_STATE_VERSION
   */
  status(): StateStatus {
    return readStatus(this.#site);
  }

  /**
   * What the state folder keeps beside the state: states of earlier boots, and files that were put
   * aside as damaged. Synchronous: reads all of them.
   * @throws ERR_STATE_FOLDER, ERR_SYSCALL
   */
  keptFiles(): KeptFiles {
    const { scope, path } = this.#site.ledger;
    return scope === 'memory' ? { archives: [], quarantine: [] } : readKeptFiles(path);
  }

  /**
   * The processes and cgroups that run in the shared pool, and leave CPUs before these are granted;
   * those of other openers too.
   */
  sharedMembers(): readonly SharedMember[] {
    this.#parts.lifetime.check();
    return this.#parts.sharedMembers();
  }
}
