// ManagerView: reads the machine and the state that its processes share.
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
import { invalidOption } from '../base/check-options.js';
import type { NumalignError } from '../base/errors.js';
import { turnIfDue } from '../base/steps.js';
import type { GrantInfo } from '../decision/grant-info.js';
import { type Settings, settingsNow } from '../decision/machine-settings.js';
import { type MemoryTable, memoryTables } from '../decision/memory/memory-tables.js';
import type { SharedMember } from '../enforcement/members/shared-member.js';
import { managerPlacement } from '../input/placement.js';
import type { PlacementOptions } from '../input/placement-options.js';
import type { PodSpec } from '../input/pods/pod-request.js';
import { type AdmitOptions, NO_OPTIONS } from '../input/request.js';
import { exportKubelet } from '../kubelet/kubelet-export.js';
import type { KubeletFiles } from '../kubelet/kubelet-files.js';
import { type KubeletStatus, kubeletStatus } from '../kubelet/record/kubelet-status.js';
import type { CpuSet } from '../machine/cpu-set.js';
import type { Topology } from '../machine/topology.js';
import { refreshSite } from '../machine/topology-refresh.js';
import {
  type Defragmentation,
  type DefragmentOptions,
  parseDefragment,
  planDefragmentation,
} from '../repacking/defragment.js';
import { type KeptFiles, readKeptFiles } from '../status/kept-files.js';
import { readStatus } from '../status/read-status.js';
import type { StateStatus } from '../status/status.js';
import { lookAgain, ManagerEmitter, type ViewParts } from './manager-emitter.js';

/** For the package's own modules: the grants of living owners on record. */
export let livingPods: (view: ManagerView) => readonly PodAssignment[];

/**
 * A manager that only reads; {@link openManager} makes it with `readOnly: true`. It makes no
 * folder, file, lock or cgroup, and this process becomes no shared member. It needs the right to
 * read the state folder, not to write it. Without a state it answers as if it were the first to
 * open the machine, with generation 0, and sees a state that appears later. Grants of dead owners
 * stay on record.
 *
 * It emits `change` within milliseconds of a commit of any process, or once a second during a
 * stream of commits, with everything that changed since the last event. A listener makes it watch
 * the folder, which keeps the process alive.
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

  /** The machine. {@link Manager} and {@link audits} replace it after unknown CPUs come online. */
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
   * What opening found: a state of an earlier boot, grants with flags, settings that the machine
   * cannot meet; and every recovery of a damaged state by this process. {@link grants} has the
   * present flags.
   */
  get warnings(): readonly Warning[] {
    const { site, openingWarnings } = this.#parts;
    return [...site.ledger.recoveries, ...openingWarnings];
  }

  /** The generation of the state that the synchronous methods answer for; 0 without a state. */
  generation(): number {
    this.#state();
    return this.#site.ledger.read()?.generation ?? 0;
  }

  /**
   * The CPUs for everything that has no exclusive CPUs. It reads the state only if it has changed.
   * @throws ERR_STATE_CORRUPT if a living owner may hold more than is known
   */
  sharedPool(): CpuSet {
    return sharedPool(knownAssignments(this.#site), this.#now());
  }

  /** The isolated CPUs that no grant holds. @throws as {@link freeCpus} */
  freeIsolatedCpus(): CpuSet {
    return freeCpus(knownAssignments(this.#site), this.#now(), 'isolated');
  }

  /**
   * The CPUs that no grant holds and that are neither reserved nor isolated. One grant cannot take
   * all of them if they are the whole shared pool. CPUs of dead owners are not free until they are
   * taken back.
   * @throws ERR_STATE_CORRUPT as {@link sharedPool}
   */
  freeCpus(): CpuSet {
    return freeCpus(knownAssignments(this.#site), this.#now());
  }

  /**
   * Why nothing can be granted or released at present: an error with ERR_STATE_CORRUPT or
   * ERR_STATE_VERSION; else null. Reading works all the same.
   * @throws ERR_STATE_CORRUPT if the state was removed
   */
  refusal(): NumalignError | null {
    this.#state();
    return this.#site.ledger.read()?.refusal ?? null;
  }

  /**
   * The placement of requests that choose none: every option, with defaults and the
   * KubeletConfiguration applied.
   */
  get placement(): Readonly<Required<PlacementOptions>> {
    return managerPlacement(this.#parts.placement);
  }

  /** The settings of the machine in force. */
  settings(): Settings {
    return settingsNow(this.#state().settings, this.#now());
  }

  /** How much memory of each type each NUMA node has, and how much of it is granted. */
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

  /** What {@link Manager.recordKubelet} has recorded, and its keeper; null without a record. */
  kubelet(): KubeletStatus | null {
    const { owners } = this.#site.ledger;
    return kubeletStatus(this.#state().kubelet, (uuid) => owners.isProcessAlive(uuid));
  }

  /** All grants on record, of every process. */
  grants(): GrantInfo[] {
    const state = this.#state();
    return grantInfos(this.#site, state.pods, state);
  }

  /** One of {@link grants}, at a fraction of the cost. @throws ERR_UNKNOWN_GRANT */
  grantInfo(uid: string): GrantInfo {
    return grantInfos(this.#site, [findOnRecord(this.#site, uid)], this.#state())[0]!;
  }

  /**
   * Returns what {@link Manager.admit} would decide now, without a lock or a change. Custom hint
   * providers allocate and release with `dryRun` set.
   * @throws what {@link Manager.admit} throws before it decides; ERR_HINT_PROVIDER
   */
  plan(pod: PodSpec, options: AdmitOptions = NO_OPTIONS): PlanOnRecord {
    const site = this.#site;
    return planFor(site, requestFor(site, this.#parts.placement, pod, options));
  }

  /**
   * Checks a pod once, to plan it often: its `plan()` answers as {@link plan}, in less time. Later
   * changes of `pod` and `options` have no effect. See docs/admission.md.
   * @throws as {@link plan}
   */
  prepare(pod: PodSpec, options: AdmitOptions = NO_OPTIONS): PreparedPod {
    return new PreparedPod(() => this.#site, requestFor(this.#site, this.#parts.placement, pod, options));
  }

  /** Plans several pods on top of each other. @throws ERR_STATE_CORRUPT as {@link sharedPool} */
  planner(): Planner {
    return new Planner(this.#site, this.#parts.placement);
  }

  /**
   * Returns what {@link Manager.defragment} would move now, without a lock or a change.
   * @throws ERR_INVALID_OPTION without `dryRun: true`; ERR_STATE_*; the signal's reason
   */
  async defragment(options: DefragmentOptions & { dryRun: true }): Promise<Defragmentation> {
    const { dryRun, signal } = parseDefragment(options);
    if (!dryRun) invalidOption('dryRun', dryRun, 'true: this manager only reads');
    await turnIfDue();
    return planDefragmentation(this.#site, this.#parts.placement, signal);
  }

  /**
   * Says for each container of a pod why it gets no exclusive CPUs even on an empty machine: the
   * CPU policy, the QoS class, or a request that is not a whole number of CPUs; null for one that gets
   * some.
   * @throws as {@link plan}
   */
  whyShared(pod: PodSpec, options: AdmitOptions = NO_OPTIONS): readonly (string | null)[] {
    return reasonsToShare(this.#site, requestFor(this.#site, this.#parts.placement, pod, options));
  }

  /**
   * Returns the state as texts of the kubelet's cpu_manager_state and memory_manager_state. A
   * container's CPUs include held ones. Grants of dead owners and devices are left out.
   */
  exportKubelet(): KubeletFiles & Record<keyof KubeletFiles, string> {
    return exportKubelet(this.#site, this.#parts.placement);
  }

  /**
   * As {@link Grant.audit}, of a grant of any process, since the first call for it.
   * @throws ERR_UNKNOWN_GRANT, ERR_INVALID_OPTION, ERR_SIMULATED_MACHINE
   */
  audit(uid: string, options: AuditOptions = {}): GrantAudit {
    const site = this.#site;
    const pod = findOnRecord(site, uid);
    checkRealMachine(site);
    return auditGrant(site, pod, options);
  }

  /**
   * Audits the grants of all living owners since the last call; a grant's first audit has no
   * counts. It looks at the machine once for all of them. See docs/audit.md.
   * @throws ERR_SIMULATED_MACHINE
   */
  async audits(): Promise<GrantAudit[]> {
    const site = this.#site;
    checkRealMachine(site);
    await turnIfDue();
    if (!(await refreshSite(site)).isEmpty) lookAgain(this);
    return this.#watched.look(site.topology, livingPods(this));
  }

  /**
   * Everything that the state says at this moment, also a damaged one. It reads the file at every
   * call, and looks through /proc for processes that keep grants of ended owners.
   * @throws ERR_STATE_FOLDER if the folder is closed to this process; ERR_STATE_CORRUPT if nothing
   *   is known; ERR_STATE_VERSION
   */
  status(): StateStatus {
    return readStatus(this.#site);
  }

  /**
   * States of earlier boots, and damaged files that were put aside. It reads all of them.
   * @throws ERR_STATE_FOLDER, ERR_SYSCALL
   */
  keptFiles(): KeptFiles {
    const { scope, path } = this.#site.ledger;
    return scope === 'memory' ? { archives: [], quarantine: [] } : readKeptFiles(path);
  }

  /** The processes and cgroups that are shared members, of every process. */
  sharedMembers(): readonly SharedMember[] {
    this.#parts.lifetime.check();
    return this.#parts.sharedMembers();
  }
}
