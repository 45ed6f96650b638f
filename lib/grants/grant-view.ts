// GrantView: what a grant is, read from the record.
import { type InspectOptions, inspect } from 'node:util';
import type { MemoryBlock } from '../account/booked-memory.js';
import { cpusNow } from '../account/cpus-now.js';
import type { EnforcementLevel } from '../account/levels.js';
import type { DeviceAssignment, Elasticity, MoveConsent } from '../account/pod-assignment.js';
import { devicesOf, memoryOf, threadShares } from '../account/pod-holdings.js';
import type { GrantRecord } from '../admission/grants/grant-record.js';
import { flagsNow } from '../admission/on-record.js';
import { quotaWarnings, type Warning } from '../admission/warnings.js';
import { unlessRefused } from '../base/errors.js';
import { type CgroupLimits, limitsOfProcess } from '../cgroups/limits.js';
import type { Flag } from '../decision/flags/flags.js';
import { isIsolated, mixedCpus } from '../decision/grant-info.js';
import type { MemoryBinding } from '../enforcement/memory-binding.js';
import type { CpuSet, NodeSet } from '../machine/cpu-set.js';
import type { QuietOutcome } from '../quiet/outcome.js';
import { FACTS, factsOf } from './facts.js';

/** What {@link Grant} is on record. */
export class GrantView {
  /** Identifies the grant: {@link Manager.release} and {@link Manager.grant} take it. */
  readonly uid: string;
  /** The name that was requested, else the uid. */
  readonly name: string;
  /**
   * With `placement: 'joint'`, why the grant is on its NUMA nodes, in words; else, and for a grant
   * that was found on record, null.
   */
  readonly explanation: string | null;
  readonly #record: GrantRecord;
  readonly #found: readonly Warning[];
  #warnings: readonly Warning[] | undefined;

  /** Always false: see {@link EmptyGrant}. */
  get isEmpty(): false {
    return false;
  }

  /** Always null: see {@link EmptyGrant}. */
  get reason(): null {
    return null;
  }

  constructor(record: GrantRecord, warnings: readonly Warning[], explanation: string | null) {
    this.#record = record;
    this.explanation = explanation;
    this.#found = warnings;
    this.uid = record.pod.uid;
    this.name = record.pod.name;
  }

  /**
   * What the owner should know, as of the admission. The first access also checks for a CPU quota
   * above this process.
   */
  get warnings(): readonly Warning[] {
    this.#warnings ??= [...this.#found, ...this.#quotaWarnings()];
    return this.#warnings;
  }

  #quotaWarnings(): readonly Warning[] {
    const { host, pod } = this.#record;
    if (host.topology.isSimulated || !host.ledger.owners.isOwn(pod.owner)) return [];
    return unlessRefused(() => quotaWarnings(this.limits(), this.cpus.size), []);
  }

  /**
   * The tightest CPU quota (cpu.max) and memory limit (memory.max) of the cgroups at and above this
   * process, with the cgroup of each; null without one. It reads the files at each call.
   * @throws ERR_CGROUP if they cannot be read
   */
  limits(): CgroupLimits {
    return limitsOfProcess(process.pid);
  }

  /** The CPUs to run on, as they are now: a {@link Grant.resize} or a move changes them. */
  get cpus(): CpuSet {
    return this.#record.cpus;
  }

  /** The CPUs of each part by name, for single threads; empty without parts. */
  get parts(): Readonly<Record<string, CpuSet>> {
    const [, ...parts] = threadShares(this.#record.look());
    return Object.freeze(Object.fromEntries(parts.map(({ part, cpus }) => [part, cpus])));
  }

  /** The CPUs of `cpus` that no part has. Threads of no part run there. */
  get sharedCpus(): CpuSet {
    return threadShares(this.#record.look())[0].cpus;
  }

  /** How many CPUs a `mixed` grant has booked in the shared pool, such as 0.5; else 0. */
  get mixed(): number {
    return mixedCpus(this.#record.look());
  }

  /** The range of CPUs in which it grows and shrinks by itself; null if their number is fixed. */
  get elastic(): Elasticity | null {
    return this.#record.look().elastic ?? null;
  }

  /** CPUs that the grant keeps idle, such as SMT siblings. */
  get held(): CpuSet {
    return this.#record.held;
  }

  /** On what terms it may move to make room for other requests; null if it never moves. */
  get movable(): MoveConsent | null {
    return this.#record.look().movable ?? null;
  }

  /**
   * The CPUs that the grant will have, while a resize or a move is under way; else null. A move that
   * has begun has them in `cpus` too.
   */
  get upcoming(): CpuSet | null {
    return this.#record.look().upcoming?.cpus ?? null;
  }

  /**
   * How many threads can run at a time on `sharedCpus`: the size for pools.
   * os.availableParallelism() reads the mask of the calling thread, and returns 1 for a thread on
   * one CPU.
   */
  get availableParallelism(): number {
    return this.sharedCpus.size;
  }

  /** The NUMA nodes of `cpus`. */
  get numaNodes(): NodeSet {
    return this.#record.host.topology.nodesOf(this.cpus);
  }

  /** Booked memory and hugepages: each type on NUMA nodes that share it. */
  get memory(): readonly MemoryBlock[] {
    return memoryOf(this.#record.look());
  }

  /** The devices by resource. */
  get devices(): Readonly<Record<string, readonly DeviceAssignment[]>> {
    return devicesOf(this.#record.look());
  }

  /** The NUMA nodes of the booked memory, else those of `cpus`. */
  get memoryNodes(): NodeSet {
    return this.#record.memoryNodesNear(this.cpus);
  }

  /** The enforcement level, see docs/enforcement.md. */
  get enforcement(): EnforcementLevel {
    return this.#record.look().enforcement.level;
  }

  /**
   * The memory nodes that the cgroups of the containers are bound to (cpuset.mems), and whether the
   * kernel accepted them. Read at each access.
   */
  get memoryEnforcement(): readonly MemoryBinding[] {
    return this.#record.memoryBindings();
  }

  /**
   * How far each part of `quiet` is reached, and what prevents the rest; null if the grant asks for
   * none, or the record cannot be read. Each access reads the kernel's files, such as those of all
   * interrupts.
   */
  get quiet(): QuietOutcome | null {
    return this.#record.quietOutcome();
  }

  /**
   * Whether the grant has isolated CPUs, or CPUs between which the kernel does not balance load by
   * now. Place its threads one by one.
   */
  get isIsolated(): boolean {
    return isIsolated(this.#record.look(), cpusNow(this.#record.host.topology));
  }

  /** Whether it was released through this object. */
  get isReleased(): boolean {
    return this.#record.released !== undefined;
  }

  /**
   * What does not hold any more since the machine or its settings changed. The grant stays as it is
   * until it is released; then there are no flags. Read at each call. See docs/changes.md.
   * @throws ERR_STATE_* if the record cannot be read
   */
  flags(): readonly Flag[] {
    return flagsNow(this.#record.host, this.#record.pod);
  }

  /** All facts as a plain object. */
  toJSON() {
    return { ...factsOf(this as GrantView, FACTS), flags: this.flags(), warnings: this.warnings };
  }

  /** What console.log shows. */
  [inspect.custom](_depth: number, options: InspectOptions): string {
    const isReleased = this.isReleased || !this.#record.isThere;
    return `Grant ${isReleased ? '(released) ' : ''}${inspect(this.toJSON(), options)}`;
  }
}
