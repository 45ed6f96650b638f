// ManagerView: reads the machine and the state that its processes share.
import { EventEmitter } from 'node:events';
import { type InspectOptions, inspect } from 'node:util';
import type { Assignments } from '../account/assignments.js';
import { cpusNow } from '../account/cpus-now.js';
import { freeCpus, sharedPool } from '../account/pools.js';
import { findOnRecord } from '../admission/grants/held-grant.js';
import type { ReadOnlyHost } from '../admission/host.js';
import { grantInfos, knownAssignments, recordedState } from '../admission/on-record.js';
import type { PlanOnRecord } from '../admission/plan.js';
import type { Planner, PreparedPod } from '../admission/planner.js';
import type { Warning } from '../admission/warnings.js';
import type { GrantAudit } from '../audit/account.js';
import type { AuditOptions } from '../audit/grant-audits.js';
import type { NumalignError } from '../base/errors.js';
import type { Defragmentation, DefragmentOptions } from '../changes/defragment.js';
import type { GrantInfo } from '../decision/grant-info.js';
import { type Settings, settingsNow } from '../decision/machine-settings.js';
import { type MemoryTable, memoryTables } from '../decision/memory/memory-tables.js';
import type { SharedMember } from '../enforcement/members/shared-member.js';
import { managerPlacement } from '../input/placement.js';
import type { PlacementOptions } from '../input/placement-options.js';
import type { PodSpec } from '../input/pods/pod-spec.js';
import type { AdmitOptions } from '../input/requests/request-options.js';
import { exportKubelet } from '../kubelet/kubelet-export.js';
import type { KubeletFiles } from '../kubelet/kubelet-states.js';
import { type KubeletStatus, kubeletStatus } from '../kubelet/record/kubelet-status.js';
import type { CpuSet } from '../machine/cpu-set.js';
import type { Topology } from '../machine/topology.js';
import { type KeptFiles, readKeptFiles } from '../status/kept-files.js';
import { readStatus } from '../status/read-status.js';
import type { StateStatus } from '../status/status.js';
import { Audits } from './audits.js';
import { type ListenerEvents, type ManagerEvents, type ViewParts, watchWhileHeard } from './manager-parts.js';
import { Planning } from './planning.js';

// The host of each view; it throws once the view is closed.
const hosts = new WeakMap<ManagerView, () => ReadOnlyHost>();

/** For the package's own modules: the host of a view. */
export const hostOfView = (view: ManagerView): ReadOnlyHost => hosts.get(view)!();

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
export class ManagerView
  extends EventEmitter<ManagerEvents & ListenerEvents>
  implements Pick<Planning, keyof Planning>, Pick<Audits, keyof Audits>
{
  readonly #parts: ViewParts;
  readonly #planning: Planning;
  readonly #audits: Audits;

  /** Use {@link openManager}. */
  constructor(parts: ViewParts) {
    super();
    const { host, placement, watch } = parts;
    const { managerId, ledger } = host;
    this.id = managerId;
    this.scope = ledger.scope;
    this.stateDir = ledger.scope === 'memory' ? '' : ledger.path;
    this.#parts = parts;
    const hostNow = () => this.#host;
    this.#planning = new Planning(hostNow, placement);
    this.#audits = new Audits(hostNow, watch);
    hosts.set(this, hostNow);
    watchWhileHeard(this, parts);
  }

  get #host(): ReadOnlyHost {
    this.#parts.lifetime.check();
    return this.#parts.host;
  }

  /** The machine. {@link Manager} and {@link audits} replace it after unknown CPUs come online. */
  get topology(): Topology {
    return this.#parts.host.topology;
  }

  #state(): Assignments {
    return recordedState(this.#host);
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
    const { host, openingWarnings } = this.#parts;
    return [...host.ledger.recoveries, ...openingWarnings];
  }

  /** The generation of the state that the synchronous methods answer for; 0 without a state. */
  generation(): number {
    this.#state();
    return this.#host.ledger.read()?.generation ?? 0;
  }

  /**
   * The CPUs for everything that has no exclusive CPUs. It reads the state only if it has changed.
   * @throws ERR_STATE_CORRUPT if a living owner may hold more than is known
   */
  sharedPool(): CpuSet {
    return sharedPool(knownAssignments(this.#host), this.#now());
  }

  /** The isolated CPUs that no grant holds. @throws as {@link freeCpus} */
  freeIsolatedCpus(): CpuSet {
    return freeCpus(knownAssignments(this.#host), this.#now(), 'isolated');
  }

  /**
   * The CPUs that no grant holds and that are neither reserved nor isolated. One grant cannot take
   * all of them if they are the whole shared pool. CPUs of dead owners are not free until they are
   * taken back.
   * @throws ERR_STATE_CORRUPT as {@link sharedPool}
   */
  freeCpus(): CpuSet {
    return freeCpus(knownAssignments(this.#host), this.#now());
  }

  /**
   * Why nothing can be granted or released at present: an error with ERR_STATE_CORRUPT or
   * ERR_STATE_VERSION; else null. Reading works all the same.
   * @throws ERR_STATE_CORRUPT if the state was removed
   */
  refusal(): NumalignError | null {
    this.#state();
    return this.#host.ledger.read()?.refusal ?? null;
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

  /** What {@link Manager.recordKubelet} has recorded, and its keeper; null without a record. */
  kubelet(): KubeletStatus | null {
    const { owners } = this.#host.ledger;
    return kubeletStatus(this.#state().kubelet, (uuid) => owners.isProcessAlive(uuid));
  }

  /** All grants on record, of every process. */
  grants(): GrantInfo[] {
    const state = this.#state();
    return grantInfos(this.#host, state.pods, state);
  }

  /** One of {@link grants}, at a fraction of the cost. @throws ERR_UNKNOWN_GRANT */
  grantInfo(uid: string): GrantInfo {
    return grantInfos(this.#host, [findOnRecord(this.#host, uid)], this.#state())[0]!;
  }

  plan(pod: PodSpec, options?: AdmitOptions): PlanOnRecord {
    return this.#planning.plan(pod, options);
  }

  prepare(pod: PodSpec, options?: AdmitOptions): PreparedPod {
    return this.#planning.prepare(pod, options);
  }

  planner(): Planner {
    return this.#planning.planner();
  }

  defragment(options: DefragmentOptions & { dryRun: true }): Promise<Defragmentation> {
    return this.#planning.defragment(options);
  }

  whyShared(pod: PodSpec, options?: AdmitOptions): readonly (string | null)[] {
    return this.#planning.whyShared(pod, options);
  }

  /**
   * Returns the state as texts of the kubelet's cpu_manager_state and memory_manager_state. A
   * container's CPUs include held ones. Grants of dead owners and devices are left out.
   */
  exportKubelet(): KubeletFiles & Record<keyof KubeletFiles, string> {
    return exportKubelet(this.#host, this.#parts.placement);
  }

  audit(uid: string, options?: AuditOptions): GrantAudit {
    return this.#audits.audit(uid, options);
  }

  audits(): Promise<GrantAudit[]> {
    return this.#audits.audits();
  }

  /**
   * Everything that the state says at this moment, also a damaged one. It reads the file at every
   * call, and looks through /proc for processes that keep grants of ended owners.
   * @throws ERR_STATE_FOLDER if the folder is closed to this process; ERR_STATE_CORRUPT if nothing
   *   is known; ERR_STATE_VERSION
   */
  status(): StateStatus {
    return readStatus(this.#host);
  }

  /**
   * States of earlier boots, and damaged files that were put aside. It reads all of them.
   * @throws ERR_STATE_FOLDER, ERR_SYSCALL
   */
  keptFiles(): KeptFiles {
    const { scope, path } = this.#host.ledger;
    return scope === 'memory' ? { archives: [], quarantine: [] } : readKeptFiles(path);
  }

  /** The processes and cgroups that are shared members, of every process. */
  sharedMembers(): readonly SharedMember[] {
    this.#parts.lifetime.check();
    return this.#parts.sharedMembers();
  }

  /** Identifies the manager within its thread, in messages of the diagnostics channels. */
  readonly id: number;
  /**
   * The users of the state: `machine`, all processes; `private`, those that use the folder;
   * `memory`, no other manager.
   */
  readonly scope: 'machine' | 'private' | 'memory';
  /** The state folder; empty if nothing is kept on disk. */
  readonly stateDir: string;

  /** A summary for JSON.stringify. It does not read the state. */
  toJSON() {
    const { id, scope, stateDir } = this;
    return { id, scope, stateDir, cpus: this.#parts.host.topology.cpus };
  }

  /** What console.log shows. */
  [inspect.custom](_depth: number, options: InspectOptions): string {
    return `${this.constructor.name} ${inspect(this.toJSON(), options)}`;
  }

  /**
   * Ends the use of this object, its events, and waiting requests (ERR_MANAGER_CLOSED). Grants
   * stay. The state folder is closed with the last manager, or with the last grant of this process
   * if that is later.
   */
  close(): void {
    const { lifetime, watch, release } = this.#parts;
    if (lifetime.isOver) return;
    lifetime.end();
    watch.stop();
    release();
    for (const event of ['change', 'drift', 'hotplug', 'error'] as const) this.removeAllListeners(event);
  }

  /** As {@link close}. */
  [Symbol.dispose](): void {
    this.close();
  }
}
