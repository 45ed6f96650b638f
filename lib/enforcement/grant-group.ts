// GrantGroup: threads of this process in the cgroup of a grant, and back where they came from.
// Synchronous: writes of cgroup.procs and tasks.
import type { MachineSettings } from '../account/assignments.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { threadShares } from '../account/pod-holdings.js';
import { NumalignError, unlessRefused } from '../base/errors.js';
import { native } from '../base/native.js';
import { unlessEnded } from '../cgroups/files/cgroup-error.js';
import type { CpusetGroup } from '../cgroups/groups/cpuset-group.js';
import { moveProcess, type Threads } from '../machine/affinity.js';
import { type CpuSet, NodeSet } from '../machine/cpu-set.js';
import type { Topology } from '../machine/topology.js';
import type { Cpusets } from './cpusets/cpusets.js';
import type { Enforcer } from './enforcer.js';
import { containerOrAll, memoryNodesOf } from './layout/layout.js';
import { childrenOf } from './members/descent.js';
import { refusalOf } from './memory-binding.js';

// Where this process was before its threads went into the group of a grant, by the path of that.
const homes = new Map<string, string>();
// Groups whose memory nodes this process has asked for, by their paths: strict memory.
const strict = new Set<string>();

export interface Machine {
  readonly enforcer: Enforcer;
  readonly topology: Topology;
}

export class GrantGroup {
  readonly #machine: Machine;
  readonly #cpusets: Cpusets;
  readonly #pod: PodAssignment;
  readonly #container: string | undefined;

  private constructor(machine: Machine, cpusets: Cpusets, pod: PodAssignment, container: string | undefined) {
    this.#machine = machine;
    this.#cpusets = cpusets;
    this.#pod = pod;
    this.#container = container;
  }

  /** Undefined where the grant has no cgroup: masks must do. `container`: default all of them. */
  static of(
    machine: Machine,
    settings: MachineSettings,
    pod: PodAssignment,
    container?: string,
  ): GrantGroup | undefined {
    const cpusets = pod.enforcement.target === null ? undefined : machine.enforcer.cpusetsOf(settings);
    return cpusets && new GrantGroup(machine, cpusets, pod, container);
  }

  get #name(): string {
    return containerOrAll(this.#pod, this.#container);
  }

  get #handle(): CpusetGroup {
    return this.#cpusets.grants.of(this.#pod, this.#name);
  }

  /**
   * The group, made where it is not there, with the grant's CPUs, and bound to the memory nodes of
   * what is booked. @throws ERR_CGROUP
   */
  make(): CpusetGroup {
    const { topology } = this.#machine;
    const mems = NodeSet.from(topology.numaNodes);
    const group = this.#cpusets.grants.make(this.#pod, this.#name, topology.cpus, mems);
    this.bindMemory();
    return group;
  }

  /**
   * Binds it to the memory nodes of what is booked for it, before anything comes in: answers why the
   * kernel has refused that; undefined where it has not.
   */
  bindMemory(): string | undefined {
    const group = this.#handle;
    return refusalOf(() => {
      const nodes = this.#cpusets.grants.boundNodes(this.#pod, this.#name);
      if (!nodes.isEmpty && !group.mems().equals(nodes)) group.setMems(nodes);
    });
  }

  /** The container's name, or ALL_CONTAINERS. */
  get container(): string {
    return this.#name;
  }

  /** Whether this process, or one of its threads, is in it. */
  isInside(tid?: number): boolean {
    return this.#cpusets.hierarchy.groupOf(process.pid, tid).path === this.#handle.path;
  }

  /**
   * Moves threads of this process into it. True: all of the process, threads that are just being
   * born included.
   * @throws ERR_CGROUP; ERR_ENFORCEMENT for single threads with cgroup v2, which moves processes
   *   only
   */
  enter(all: readonly Threads[]): boolean {
    // Of all of them before the first is moved, which changes its mask.
    native.rememberMasks();
    return all.map((threads) => this.#enter(threads)).includes(true);
  }

  #enter(threads: Threads): boolean {
    const { hierarchy } = this.#cpusets;
    const group = this.make();
    if (threads === 'process') {
      this.#remember(hierarchy.groupOf(process.pid).path);
      group.attach(process.pid);
      return true;
    }
    const tid = threads === 'current' ? native.threadId() : threads;
    if (hierarchy.version === 1) {
      if (this.isInside(tid)) return false;
      this.#remember(hierarchy.groupOf(process.pid, tid).path);
      group.attachThread(tid);
    } else if (!this.isInside()) this.#refuseThread();
    return false;
  }

  // Where it came from, also where that is the group of another grant by now or this one.
  #remember(at: string): void {
    const { path } = this.#handle;
    if (!homes.has(path)) homes.set(path, homes.get(at) ?? at);
  }

  /**
   * Whether some threads of this process may be in it, and others not.
   * @throws ERR_ENFORCEMENT with cgroup v2, of which a process is in one cgroup with all its threads
   */
  checkSingleThreads(): void {
    if (this.#cpusets.hierarchy.version === 1) return;
    const { level } = this.#pod.enforcement;
    throw new NumalignError(
      'ERR_ENFORCEMENT',
      `the CPUs of grant ${this.#pod.uid} are kept for its cgroup (${level}), which with cgroup v2 has all threads of a process, or none: none can be in the shared pool`,
      { value: level, valid: "a grant with the option enforcement: 'members'" },
    );
  }

  #refuseThread(): never {
    const { level } = this.#pod.enforcement;
    throw new NumalignError(
      'ERR_ENFORCEMENT',
      `the CPUs of grant ${this.#pod.uid} are kept for its cgroup (${level}), into which cgroup v2 moves whole processes only: pin the process first`,
      {
        value: level,
        valid: "pin({ threads: 'process' }), or a grant with the option enforcement: 'members'",
      },
    );
  }

  /** @throws ERR_ENFORCEMENT where threads cannot be born in it; see {@link canStartInside} */
  checkStart(): void {
    if (!this.canStartInside) this.#refuseThread();
  }

  /**
   * Has the calling thread start threads and processes in it; returns what ends that. With cgroup v2
   * only what the process starts that is in it.
   * @throws ERR_CGROUP, ERR_ENFORCEMENT
   */
  enterToStart(): () => void {
    const { hierarchy } = this.#cpusets;
    if (this.isInside(native.threadId())) return () => {};
    this.checkStart();
    // What is born is in the group of the thread that starts it.
    const tid = native.threadId();
    const home = hierarchy.groupOf(process.pid, tid).path;
    const mask = native.askedMask();
    const group = this.make();
    group.attachThread(tid);
    return () => {
      // As in leave().
      const isAsked = native.ask(mask);
      hierarchy.moveThread(tid, home);
      if (!native.ask(mask) && !isAsked) native.askLater(mask, this.#all.words);
    };
  }

  /** Whether processes can be born in it, other than from within. */
  get canStartInside(): boolean {
    return this.#cpusets.hierarchy.version === 1 || this.isInside();
  }

  /**
   * Moves another process into it, with what it has started by now, off the parts of the grant; with
   * `migrate` what it has of memory elsewhere too, which cgroup v2 always does.
   * @throws ERR_CGROUP; ERR_SYSCALL where it cannot leave the parts
   */
  attach(pid: number, migrate = false): void {
    const group = this.make();
    // Strict memory moves, whatever else comes in.
    if (this.#hasBooked) group.setMigration(migrate || this.hasMemoryNodes);
    this.#attach(group, pid);
  }

  #attach(group: CpusetGroup, pid: number): void {
    group.attach(pid);
    const [{ cpus }, ...parts] = threadShares(this.#pod);
    if (parts.length > 0) moveProcess(pid, this.#all.difference(cpus), cpus);
    const { hierarchy } = this.#cpusets;
    for (const child of childrenOf(pid)) {
      if (hierarchy.groupOf(child).path !== group.path) this.#attach(group, child);
    }
  }

  /**
   * Memory of all that runs in it comes from these nodes only (cpuset.mems), and pages move there;
   * undefined: from those of what is booked again, else from all of them.
   * @throws ERR_CGROUP
   */
  setMemoryNodes(nodes: NodeSet | undefined): void {
    const group = this.#handle;
    const wasStrict = nodes ? strict.has(group.path) : strict.delete(group.path);
    if (!group.exists()) return;
    if (nodes) strict.add(group.path);
    if (!nodes && this.#hasBooked) this.bindMemory();
    else {
      const wanted = nodes ?? this.#allNodes;
      if (group.mems().equals(wanted)) {
        if (!this.#hasBooked || wasStrict || this.#cpusets.hierarchy.version === 2) return;
        // Bound before anything came in: with cgroup v1 pages move only as the nodes change.
        group.setMems(this.#allNodes);
      }
      group.setMems(wanted, { migrate: true });
    }
  }

  /** Whether {@link setMemoryNodes} is in force. */
  get hasMemoryNodes(): boolean {
    const group = this.#handle;
    return strict.has(group.path) && group.exists();
  }

  get #hasBooked(): boolean {
    return !memoryNodesOf(this.#pod, this.#name).isEmpty;
  }

  get #allNodes(): NodeSet {
    return this.#cpusets.grants.anyNodes();
  }

  /** Whether threads of this process are in it. */
  get isInUse(): boolean {
    return this.#handle.exists() && this.#handle.processes().includes(process.pid);
  }

  /** Whether threads of this process were moved into it, and have not left it by numalign. */
  get wasEntered(): boolean {
    return homes.has(this.path);
  }

  get path(): string {
    return this.#handle.path;
  }

  /** Those of these threads of this process that are not in it, though they live. */
  missing(tids: readonly number[]): readonly number[] {
    const group = this.#handle;
    const { hierarchy } = this.#cpusets;
    const inside = new Set(group.exists() ? group.threads() : []);
    const isElsewhere = (tid: number) => hierarchy.groupOf(process.pid, tid).path !== group.path;
    return tids.filter((tid) => !inside.has(tid) && unlessRefused(() => isElsewhere(tid), false));
  }

  /**
   * Threads that somebody has moved out come back; what they had before is remembered already.
   * @throws ERR_CGROUP
   */
  bringBack(tids: readonly number[]): void {
    const group = this.make();
    if (this.#cpusets.hierarchy.version === 2) group.attach(process.pid);
    else for (const tid of tids) unlessEnded(() => group.attachThread(tid));
  }

  /**
   * The threads of this process that are in it leave. Answers where they may be from then on, if
   * there were any: where a cpuset of ours or a partition keeps them in the shared pool, their
   * masks need not, and are all CPUs; else `pool`.
   * @throws ERR_CGROUP where they cannot
   */
  leave(pool: CpuSet): CpuSet | undefined {
    const known = homes.get(this.path);
    homes.delete(this.path);
    if (!this.isInUse) return undefined;
    const group = this.#handle;
    native.rememberMasks();
    native.askChoices(this.#pod.uid);
    let home = known ?? this.#cpusets.home;
    try {
      group.moveBack(process.pid, home);
    } catch (error) {
      if (!(error instanceof NumalignError)) throw error;
      // The cgroup that it came from may be gone.
      home = this.#cpusets.home;
      group.moveBack(process.pid, home);
    }
    this.setMemoryNodes(undefined);
    return this.#cpusets.isPartition || this.#cpusets.isWithin(home, pool) ? this.#all : pool;
  }

  /**
   * Some threads of this process leave, as {@link leave}; those too that are in the group of another
   * grant. REQUIRES: {@link checkSingleThreads}.
   * @throws ERR_CGROUP where they cannot
   */
  leaveThreads(tids: readonly number[], pool: CpuSet): CpuSet {
    const { hierarchy, home } = this.#cpusets;
    const groupOf = (tid: number) => unlessRefused(() => hierarchy.groupOf(process.pid, tid).path, '');
    // What was started on a grant has come from nowhere.
    const isOfGrant = (path: string) => path === this.path || homes.has(path);
    const inside = tids.filter((tid) => isOfGrant(groupOf(tid)));
    if (inside.length === 0) return pool;
    native.rememberMasks();
    const move = (to: string) => {
      for (const tid of inside) unlessEnded(() => hierarchy.moveThread(tid, to));
      return this.#cpusets.isWithin(to, pool) ? this.#all : pool;
    };
    const known = homes.get(groupOf(inside[0]!)) ?? home;
    try {
      return move(known);
    } catch (error) {
      // The cgroup that they came from may be gone.
      if (error instanceof NumalignError && known !== home) return move(home);
      throw error;
    }
  }

  get #all(): CpuSet {
    const { possible, cpus } = this.#machine.topology;
    return possible.union(cpus);
  }

  /** Threads that have left come back. @throws ERR_CGROUP */
  comeBack(tids: readonly number[]): void {
    if (this.#cpusets.hierarchy.version === 2) this.enter(['process']);
    else this.enter(tids);
  }
}
