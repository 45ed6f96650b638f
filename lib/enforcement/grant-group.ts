// GrantGroup: threads of this process in the cgroup of a grant, and back where they came from. Synchronous: writes of cgroup.procs and tasks.
import type { Threads } from '../affinity.js';
import type { CpusetGroup } from '../cgroups/cpuset-group.js';
import { NodeSet } from '../cpu-set.js';
import { NumalignError } from '../errors.js';
import { native } from '../native.js';
import { type MachineSettings, type PodAssignment, runningCpus } from '../state/assignments.js';
import type { Topology } from '../topology.js';
import type { CpusetLayout } from './cpuset-layout.js';
import type { Enforcer } from './enforcer.js';

// Where this process was before its threads went into the groups of a grant, by the grant's id.
const homes = new Map<string, string>();

// Of a pod of several containers, for whoever runs on the CPUs of all of them.
const ALL_CONTAINERS = '.all';

export interface Machine {
  readonly enforcer: Enforcer;
  readonly topology: Topology;
}

export class GrantGroup {
  readonly #machine: Machine;
  readonly #layout: CpusetLayout;
  readonly #pod: PodAssignment;

  private constructor(machine: Machine, layout: CpusetLayout, pod: PodAssignment) {
    this.#machine = machine;
    this.#layout = layout;
    this.#pod = pod;
  }

  /** Undefined where the grant has no cgroup: masks must do. */
  static of(machine: Machine, settings: MachineSettings, pod: PodAssignment): GrantGroup | undefined {
    const layout = pod.enforcement.target === null ? undefined : machine.enforcer.layoutOf(settings);
    return layout && new GrantGroup(machine, layout, pod);
  }

  get #path(): readonly string[] {
    const { uid, containers } = this.#pod;
    return [uid, containers.length === 1 ? containers[0]!.name : ALL_CONTAINERS];
  }

  get #handle(): CpusetGroup {
    return this.#layout.hierarchy.group(...this.#path);
  }

  /** The group, made where it is not there, with the grant's CPUs. @throws ERR_CGROUP */
  make(): CpusetGroup {
    const { topology } = this.#machine;
    const cpus = runningCpus(this.#pod);
    return this.#layout.groupFor(
      this.#pod,
      { name: this.#path[1]!, cpus },
      topology.cpus,
      NodeSet.from(topology.numaNodes),
    );
  }

  /** Whether this process, or one of its threads, is in it. */
  isInside(tid?: number): boolean {
    return this.#layout.hierarchy.groupOf(process.pid, tid).path === this.#handle.path;
  }

  /**
   * Moves threads of this process into it. True: all of the process, threads that are just being born included.
   * @throws ERR_CGROUP; ERR_ENFORCEMENT for single threads with cgroup v2, which moves processes only
   */
  enter(threads: Threads): boolean {
    const { hierarchy } = this.#layout;
    const group = this.make();
    native.rememberMasks();
    if (threads === 'process') {
      this.#remember(hierarchy.groupOf(process.pid).path, group);
      if (!this.isInside()) group.attach(process.pid);
      return true;
    }
    const tid = threads === 'current' ? native.threadId() : threads;
    if (hierarchy.version === 1) {
      this.#remember(hierarchy.groupOf(process.pid, tid).path, group);
      if (!this.isInside(tid)) group.attachThread(tid);
    } else if (!this.isInside()) this.#refuseThread();
    return false;
  }

  #remember(home: string, group: CpusetGroup): void {
    if (home !== group.path && !homes.has(this.#pod.uid)) homes.set(this.#pod.uid, home);
  }

  #refuseThread(): never {
    const { level } = this.#pod.enforcement;
    throw new NumalignError(
      'ERR_ENFORCEMENT',
      `the CPUs of grant ${this.#pod.uid} are kept for its cgroup (${level}), into which cgroup v2 moves whole processes only: pin the process first`,
      { value: level, valid: "pin({ threads: 'process' }), or a grant with the option enforcement: 'members'" },
    );
  }

  /** Has `action` start threads or a process in it. With cgroup v2 only what the process starts that is in it. @throws ERR_CGROUP, ERR_ENFORCEMENT */
  startInside<T>(action: () => T): T {
    const { hierarchy } = this.#layout;
    if (this.isInside(native.threadId())) return action();
    if (hierarchy.version === 2) this.#refuseThread();
    // What is born is in the group of the thread that starts it.
    const tid = native.threadId();
    const home = hierarchy.groupOf(process.pid, tid).path;
    const before = native.affinity(0);
    const group = this.make();
    group.attachThread(tid);
    try {
      return action();
    } finally {
      this.#layout.moveThread(tid, home);
      native.pin(0, before, '', '', false);
    }
  }

  /** Whether processes can be born in it, other than from within. */
  get canStartInside(): boolean {
    return this.#layout.hierarchy.version === 1 || this.isInside();
  }

  /** Moves another process into it, with all that it has started by now. @throws ERR_CGROUP */
  attach(pid: number): void {
    this.make().attach(pid);
  }

  /** The threads of this process that are in it leave. What cannot leave is told by {@link Enforcer.apply} and the reconciler. */
  leave(): void {
    const group = this.#handle;
    const home = homes.get(this.#pod.uid);
    homes.delete(this.#pod.uid);
    if (!group.exists() || !group.processes().includes(process.pid)) return;
    native.rememberMasks();
    try {
      group.moveBack(process.pid, home ?? this.#layout.home);
    } catch (error) {
      if (!(error instanceof NumalignError)) throw error;
      // The cgroup that it came from may be gone.
      group.moveBack(process.pid, this.#layout.home);
    }
  }

  /** Has the groups that are there follow the grant's CPUs: `larger` before threads go there, then `exact` once they have left what is lost. @throws ERR_CGROUP */
  fit(): void {
    if (this.#layout.hierarchy.group(this.#pod.uid).exists()) this.#layout.fit(this.#pod, this.#path[1]!);
  }
}
