// GrantView: what a grant is, read from the record.
import { type InspectOptions, inspect } from 'node:util';
import type { MemoryBlock } from '../account/booked-memory.js';
import { cpusNow } from '../account/cpus-now.js';
import type {
  DeviceAssignment,
  Elasticity,
  EnforcementLevel,
  MoveConsent,
} from '../account/pod-assignment.js';
import { devicesOf, memoryOf, nodesOf, threadShares } from '../account/pod-holdings.js';
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

/** What {@link Grant} tells. Changes nothing. */
export class GrantView {
  /** Its pod's uid, by which it is released. */
  readonly uid: string;
  readonly name: string;
  /**
   * With `placement: 'joint'`, why it is on its NUMA nodes, for people; null: they were chosen as the
   * kubelet does, or it was found on record.
   */
  readonly explanation: string | null;
  readonly #record: GrantRecord;
  readonly #found: readonly Warning[];
  #warnings: readonly Warning[] | undefined;

  /** Whether it is an {@link EmptyGrant}, which has the `reason`. */
  get isEmpty(): false {
    return false;
  }

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
   * What its holder should know, as it was when it was acquired; whether a quota above this process
   * is in its way is looked at once, when it is first asked for, and left out where the cgroups
   * cannot be read.
   */
  get warnings(): readonly Warning[] {
    this.#warnings ??= [...this.#found, ...this.#quotaWarnings()];
    return this.#warnings;
  }

  #quotaWarnings(): readonly Warning[] {
    const { site, pod } = this.#record;
    if (site.topology.isSimulated || !site.ledger.owners.isOwn(pod.owner)) return [];
    return unlessRefused(() => quotaWarnings(this.limits(), this.cpus.size), []);
  }

  /**
   * The tightest CPU quota (`cpu.max`, `cpu.cfs_quota_us`) and memory limit (`memory.max`,
   * `memory.limit_in_bytes`) of the cgroups at and above this process, with the cgroup that has
   * each; null where there is none that can be seen from here. Read anew each time.
   * @throws ERR_CGROUP where they cannot be read
   */
  limits(): CgroupLimits {
    return limitsOfProcess(process.pid);
  }

  /** The CPUs to run on, as they are now: {@link Grant.resize} changes them, wherever it is called. */
  get cpus(): CpuSet {
    return this.#record.cpus;
  }

  /**
   * Its parts by name: CPUs that none but some threads of this process have. Empty where it was
   * acquired without.
   */
  get parts(): Readonly<Record<string, CpuSet>> {
    const [, ...parts] = threadShares(this.#record.look());
    return Object.freeze(Object.fromEntries(parts.map(({ part, cpus }) => [part, cpus])));
  }

  /** Those of `cpus` that no part has: where threads run that are of none. */
  get sharedCpus(): CpuSet {
    return threadShares(this.#record.look())[0].cpus;
  }

  /** How much of the shared pool is booked for it beside `cpus`, in CPUs: 0.5, say; else 0. */
  get mixed(): number {
    return mixedCpus(this.#record.look());
  }

  /** Between how many CPUs it grows and shrinks by itself; null: their number is fixed. */
  get elastic(): Elasticity | null {
    return this.#record.look().elastic ?? null;
  }

  /** CPUs that are kept from others though nothing runs on them. */
  get held(): CpuSet {
    return this.#record.held;
  }

  /** On what terms it may be moved to make room for others; null: it never is. */
  get movable(): MoveConsent | null {
    return this.#record.look().movable ?? null;
  }

  /** The CPUs that it is about to have instead, while a resize or a move is announced; else null. */
  get upcoming(): CpuSet | null {
    return this.#record.look().upcoming?.cpus ?? null;
  }

  /**
   * How many threads can run at a time on the grant's CPUs, without those of its parts: the number
   * to size pools by. os.availableParallelism() reads the mask of the calling thread, and answers 1
   * where that was placed on a CPU of its own.
   */
  get availableParallelism(): number {
    return this.sharedCpus.size;
  }

  /** The NUMA nodes of `cpus`. */
  get numaNodes(): NodeSet {
    return this.#record.site.topology.nodesOf(this.cpus);
  }

  /** Memory and hugepages that are booked for it, each type on NUMA nodes that share it. */
  get memory(): readonly MemoryBlock[] {
    return memoryOf(this.#record.look());
  }

  /** Its devices by resource. */
  get devices(): Readonly<Record<string, readonly DeviceAssignment[]>> {
    return devicesOf(this.#record.look());
  }

  /** The NUMA nodes of the memory that it has booked, else those of `cpus`. */
  get memoryNodes(): NodeSet {
    const booked = nodesOf(this.memory);
    return booked.isEmpty ? this.numaNodes : booked;
  }

  /** How strongly others are kept off. `recorded`: only other users of numalign keep off. */
  get enforcement(): EnforcementLevel {
    return this.#record.look().enforcement.level;
  }

  /**
   * Which memory nodes the cgroups of its containers are bound to (cpuset.mems), by the memory that
   * is booked for each, and whether the kernel has done so. Read anew each time.
   */
  get memoryEnforcement(): readonly MemoryBinding[] {
    return this.#record.memoryBindings();
  }

  /**
   * What of the `quiet` that it asks for is reached, part by part, and what stands in the way; null
   * where it asks for none, or the record cannot be read. Each access reads the kernel's files: of
   * all interrupts, say.
   */
  get quiet(): QuietOutcome | null {
    return this.#record.quietOutcome();
  }

  /**
   * Whether it has isolated CPUs: taken as such, or such over which the kernel balances no load by
   * now. A thread that may use several of these stays on one: such a grant needs threads that are
   * placed one by one.
   */
  get isIsolated(): boolean {
    return isIsolated(this.#record.look(), cpusNow(this.#record.site.topology));
  }

  /** Whether it was released through this object. */
  get isReleased(): boolean {
    return this.#record.released !== undefined;
  }

  /**
   * What of it does not hold any more, since the machine or its settings have changed. It stays as
   * it is all the same, until released. Read anew each time; nothing once it was released.
   * @throws ERR_STATE_* where the record cannot be read
   */
  flags(): readonly Flag[] {
    return flagsNow(this.#record.site, this.#record.pod);
  }

  toJSON() {
    const { uid, name, cpus, mixed, parts, held, upcoming, numaNodes, memory, memoryNodes, devices } = this;
    const { elastic, movable, isIsolated, enforcement, memoryEnforcement, quiet, warnings } = this;
    return {
      ...{ uid, name, cpus, mixed, elastic, parts, held, upcoming, numaNodes, memory, memoryNodes },
      ...{ devices, movable, isIsolated, enforcement, memoryEnforcement, quiet },
      ...{ flags: this.flags(), warnings },
    };
  }

  /** What console.log shows. */
  [inspect.custom](_depth: number, options: InspectOptions): string {
    const isReleased = this.isReleased || !this.#record.isThere;
    return `Grant ${isReleased ? '(released) ' : ''}${inspect(this.toJSON(), options)}`;
  }
}
