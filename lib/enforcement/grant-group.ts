// GrantGroup: moves threads of this process into the cgroup of a grant, and back. Synchronous: it
// writes cgroup.procs and tasks.
import type { MachineSettings } from '../account/assignments.js';
import { BY_MASKS } from '../account/levels.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { threadShares } from '../account/pod-holdings.js';
import { ENVIRONMENT } from '../base/collections/registry.js';
import { NumalignError, unlessRefused } from '../base/errors.js';
import { native } from '../base/native.js';
import { unlessEnded } from '../cgroups/files/cgroup-error.js';
import type { CpusetGroup } from '../cgroups/groups/cpuset-group.js';
import { moveProcess, type Threads } from '../machine/affinity.js';
import { type CpuSet, NodeSet } from '../machine/cpu-set.js';
import { keepMasks, keepOwnMask } from './asked-masks.js';
import type { Machine } from './enforcer.js';
import { GroupMemory } from './group-memory.js';
import type { Cpusets } from './layout/cpusets.js';
import { containerOrAll } from './layout/layout.js';
import { childrenOf } from './members/descent.js';

const A_GRANT_BY_MASKS = `a grant with the option enforcement: '${BY_MASKS}'`;

// Where this process was before its threads entered a grant's group, by the path of that group.
const newHomes = () => new Map<string, string>();
const homes = () => ENVIRONMENT.of(newHomes);

export class GrantGroup {
  /** A container's name, or ALL_CONTAINERS. */
  readonly container: string;
  readonly memory: GroupMemory;

  private constructor(
    private readonly machine: Machine,
    private readonly cpusets: Cpusets,
    private readonly pod: PodAssignment,
    container: string | undefined,
  ) {
    this.container = containerOrAll(pod, container);
    this.memory = new GroupMemory(cpusets, pod, this.container);
  }

  /**
   * Undefined if the grant has no cgroup, so that only masks are used. `container`: default all of
   * them.
   */
  static of(
    machine: Machine,
    settings: MachineSettings,
    pod: PodAssignment,
    container?: string,
  ): GrantGroup | undefined {
    const cpusets = pod.enforcement.target === null ? undefined : machine.enforcer.cpusetsOf(settings);
    return cpusets && new GrantGroup(machine, cpusets, pod, container);
  }

  get #handle(): CpusetGroup {
    return this.cpusets.grants.of(this.pod, this.container);
  }

  /**
   * Makes the group if it does not exist, with the grant's CPUs, and binds it to the memory nodes
   * of what is booked.
   * @throws ERR_CGROUP
   */
  make(): CpusetGroup {
    const { cpus, numaNodes } = this.machine.topology;
    const mems = NodeSet.from(numaNodes);
    const group = this.cpusets.grants.make(this.pod, this.container, cpus, mems);
    this.memory.bind();
    return group;
  }

  /** Whether this process, or one of its threads, is in the group. */
  isInside(tid?: number): boolean {
    return this.cpusets.hierarchy.folderOf(process.pid, tid) === this.#handle.path;
  }

  /**
   * Moves threads of this process into the group, except those that end meanwhile. Returns true if
   * this moves the whole process, with threads that are just being created. Pin them then, or call
   * native.restoreMasks().
   * @throws ERR_CGROUP; ERR_ENFORCEMENT for single threads with cgroup v2, which only moves whole
   *   processes
   */
  enter(all: readonly Threads[]): boolean {
    // All masks, before the first move changes one.
    return keepMasks(() => {
      let isWhole = false;
      for (const threads of all) unlessEnded(() => (isWhole = this.#enter(threads) || isWhole));
      return isWhole;
    });
  }

  #enter(threads: Threads): boolean {
    const { hierarchy } = this.cpusets;
    const group = this.make();
    if (threads === 'process') {
      this.#remember(hierarchy.folderOf(process.pid));
      group.attach(process.pid);
      return true;
    }
    const tid = threads === 'current' ? native.threadId() : threads;
    if (hierarchy.version === 1) {
      if (this.isInside(tid)) return false;
      this.#remember(hierarchy.folderOf(process.pid, tid));
      group.attachThread(tid);
    } else if (!this.isInside()) this.#refuseThread();
    return false;
  }

  // Remembers where the process comes from, even if it is in another grant's group or in this one
  // now.
  #remember(origin: string): void {
    if (!this.wasEntered) homes().set(this.path, homes().get(origin) ?? origin);
  }

  /**
   * Checks that some threads of this process may be in the group, and others not.
   * @throws ERR_ENFORCEMENT with cgroup v2, which keeps all threads of a process in one cgroup
   */
  checkSingleThreads(): void {
    if (this.cpusets.hierarchy.version === 1) return;
    this.#refuse(
      'with cgroup v2 that cgroup has all threads of a process or none: no thread can be in the shared pool',
      A_GRANT_BY_MASKS,
    );
  }

  #refuseThread(): never {
    this.#refuse(
      'cgroup v2 only moves whole processes into it: pin the process first',
      `pin({ threads: 'process' }), or ${A_GRANT_BY_MASKS}`,
    );
  }

  #refuse(why: string, valid: string): never {
    const { uid, enforcement } = this.pod;
    const message = `the CPUs of grant ${uid} are kept for its cgroup (${enforcement.level}), and ${why}`;
    throw new NumalignError('ERR_ENFORCEMENT', message, { value: enforcement.level, valid });
  }

  /**
   * @throws ERR_ENFORCEMENT if threads cannot be created in the group; see {@link canStartInside}
   */
  checkStart(): void {
    if (!this.canStartInside) this.#refuseThread();
  }

  /**
   * Makes the calling thread start threads and processes in the group. Returns a function that ends
   * this. With cgroup v2 this works only if the process is in the group.
   * @throws ERR_CGROUP, ERR_ENFORCEMENT
   */
  enterToStart(): () => void {
    const { hierarchy } = this.cpusets;
    const tid = native.threadId();
    if (this.isInside(tid)) return () => {};
    this.checkStart();
    // A new thread or process is in the group of the thread that starts it.
    const home = hierarchy.folderOf(process.pid, tid);
    const restore = keepOwnMask(this.#all);
    this.make().attachThread(tid);
    return () => restore(() => hierarchy.moveThread(tid, home));
  }

  /** Whether processes can be created in the group from outside of it. */
  get canStartInside(): boolean {
    return this.cpusets.hierarchy.version === 1 || this.isInside();
  }

  /**
   * Moves another process into the group, with its children so far, off the parts of the grant.
   * `migrate`: also moves its memory from elsewhere, which cgroup v2 always does.
   * @throws ERR_CGROUP; ERR_SYSCALL if it cannot leave the parts
   */
  attach(pid: number, migrate = false): void {
    const group = this.make();
    // Strict memory always moves.
    if (this.memory.isBooked) group.setMigration(migrate || this.memory.isStrict);
    this.#attach(group, pid);
  }

  #attach(group: CpusetGroup, pid: number): void {
    group.attach(pid);
    const [{ cpus }, ...parts] = threadShares(this.pod);
    if (parts.length > 0) moveProcess(pid, this.#all.difference(cpus), cpus);
    const { hierarchy } = this.cpusets;
    for (const child of childrenOf(pid)) {
      unlessEnded(() => {
        if (hierarchy.folderOf(child) !== group.path) this.#attach(group, child);
      });
    }
  }

  /** Whether threads of this process are in the group. */
  get isInUse(): boolean {
    return this.#handle.exists() && this.#handle.processes().includes(process.pid);
  }

  /** Whether numalign moved threads of this process into the group, and has not moved them out. */
  get wasEntered(): boolean {
    return homes().has(this.path);
  }

  get path(): string {
    return this.#handle.path;
  }

  /** Those of these threads of this process that live, but are not in the group. */
  missing(tids: readonly number[]): readonly number[] {
    const group = this.#handle;
    const { hierarchy } = this.cpusets;
    const inside = new Set(group.exists() ? group.threads() : []);
    const isElsewhere = (tid: number) => hierarchy.folderOf(process.pid, tid) !== group.path;
    return tids.filter((tid) => !inside.has(tid) && unlessRefused(() => isElsewhere(tid), false));
  }

  /**
   * Moves threads back that another program has moved out. What they had before is already
   * remembered.
   * @throws ERR_CGROUP
   */
  bringBack(tids: readonly number[]): void {
    const group = this.make();
    if (this.cpusets.hierarchy.version === 2) group.attach(process.pid);
    else for (const tid of tids) unlessEnded(() => group.attachThread(tid));
  }

  /**
   * Moves the threads of this process out of the group. Returns the CPUs that their masks may have
   * from then on; undefined if no thread was in it. If a cpuset of numalign or a partition keeps
   * them in the shared pool, that is all CPUs; else `pool`.
   * @throws ERR_CGROUP if they cannot leave
   */
  leave(pool: CpuSet): CpuSet | undefined {
    if (!this.isInUse) return undefined;
    const origin = homes().get(this.path);
    const home = keepMasks(() => {
      const reached = this.#moveTo(origin, (path) => this.#handle.moveBack(process.pid, path));
      this.memory.free();
      return reached;
    }, this.pod.uid);
    return this.cpusets.isPartition || this.cpusets.isWithin(home, pool) ? this.#all : pool;
  }

  /**
   * Call it after {@link leave} once masks keep no thread on the grant's CPUs. Not before: after a
   * failure, the threads belong into the group.
   */
  forgetHome(): void {
    homes().delete(this.path);
  }

  /**
   * Moves some threads of this process out, like {@link leave}, also out of the group of another
   * grant. REQUIRES: {@link checkSingleThreads}.
   * @throws ERR_CGROUP if they cannot leave
   */
  leaveThreads(tids: readonly number[], pool: CpuSet): CpuSet {
    const { hierarchy } = this.cpusets;
    const groupOf = (tid: number) => unlessRefused(() => hierarchy.folderOf(process.pid, tid), '');
    // A thread that was started on a grant has no earlier group.
    const isOfGrant = (path: string) => path === this.path || homes().has(path);
    const inside = tids.filter((tid) => isOfGrant(groupOf(tid)));
    if (inside.length === 0) return pool;
    const move = (path: string) => {
      for (const tid of inside) unlessEnded(() => hierarchy.moveThread(tid, path));
    };
    const origin = homes().get(groupOf(inside[0]!));
    const home = keepMasks(() => this.#moveTo(origin, move));
    return this.cpusets.isWithin(home, pool) ? this.#all : pool;
  }

  // The cgroup that threads came from may no longer exist. Returns the one that they are in.
  #moveTo(origin: string | undefined, move: (path: string) => void): string {
    const { home } = this.cpusets;
    try {
      move(origin ?? home);
      return origin ?? home;
    } catch (error) {
      if (!(error instanceof NumalignError) || origin === undefined) throw error;
      move(home);
      return home;
    }
  }

  get #all(): CpuSet {
    const { possible, cpus } = this.machine.topology;
    return possible.union(cpus);
  }

  /** Moves threads that have left back in, as far as they can. */
  comeBack(tids: readonly number[]): void {
    const all = this.cpusets.hierarchy.version === 2 ? (['process'] as const) : tids;
    for (const threads of all) unlessRefused(() => this.#enter(threads));
    this.memory.restrictAgain();
  }
}
