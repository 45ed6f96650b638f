// Grant: CPUs that are this holder's alone, until released.
import type { ChildProcess, SpawnOptions } from 'node:child_process';
import { type InspectOptions, inspect } from 'node:util';
import type { Worker } from 'node:worker_threads';
import type { MemoryBlock } from './account/booked-memory.js';
import { cpusNow } from './account/cpus-now.js';
import {
  type DeviceAssignment,
  devicesOf,
  type EnforcementLevel,
  memoryOf,
  type PodAssignment,
  runningCpus,
} from './account/pod-assignment.js';
import { sharedPool } from './account/pools.js';
import { type Attachment, attachProcess, openGrant } from './admission/grants/attachment.js';
import { checkRealMachine, ending, GrantRecord, groupOf } from './admission/grants/grant-record.js';
import { handOver, release } from './admission/grants/release.js';
import { resize } from './admission/grants/resize.js';
import { tracedApply, tracedRelease } from './admission/grants/traced.js';
import { handedOver, offer, withdraw } from './admission/grants/transfer.js';
import { assignmentsOf, flagsNow, type Site } from './admission/site.js';
import { transact } from './admission/transact.js';
import { quotaWarnings, type Warning } from './admission/warnings.js';
import type { GrantAudit } from './audit/account.js';
import { type AuditOptions, auditGrant, beginAudit, endAudit } from './audit/grant-audits.js';
import { checkOptions, invalidOption } from './base/check-options.js';
import { NumalignError } from './base/errors.js';
import { type CgroupLimits, limitsOfProcess } from './cgroups/limits.js';
import type { Flag } from './decision/flags.js';
import { isIsolated } from './decision/grant-info.js';
import { pageBytes } from './input/memory-types.js';
import type { Placement } from './input/placement.js';
import type { Quantity } from './input/quantity.js';
import { parseResize, type ResizeOptions } from './input/request.js';
import type { PinResult } from './machine/affinity.js';
import { type CpuSet, NodeSet } from './machine/cpu-set.js';
import { type BufferOptions, nodeBuffer, parseBuffer } from './threads/buffers.js';
import { checkNoChild, hasChild, watchChild } from './threads/children.js';
import { threadsOf } from './threads/followers.js';
import { type GrantedThreads, needsOneToOne } from './threads/granted-threads.js';
import { followMemory, type MemoryPlacement, memoryPlacement, unpinMemory } from './threads/memory.js';
import { checkBalanced, type GrantPinOptions, type GrantPinResult, parsePin, pinTo } from './threads/pin.js';
import {
  type PlaceThreadsOptions,
  type PlaceThreadsResult,
  placeThreads,
  type ThreadCpus,
} from './threads/placement.js';
import { type PrewarmOptions, prewarmPool } from './threads/pool.js';
import { type ScheduleOptions, schedule, type ThreadScheduling } from './threads/scheduling.js';
import { spawnOn } from './threads/spawn.js';
import { NOTHING_MOVED, readAgain, undoPin, vacateOf } from './threads/vacate.js';
import { type GrantWorkerOptions, startWorker } from './threads/worker.js';

/** A grant on its way to another process, as {@link Grant.transfer} gives it. */
export interface Transfer {
  /** For {@link Manager.takeOver}. Whoever has it can take the grant. */
  readonly token: string;
  /**
   * True once the successor has the grant and the threads of this process have left; false where
   * that cannot happen any more.
   */
  readonly accepted: Promise<boolean>;
  /** Takes the token back; false where it is too late. */
  cancel(): Promise<boolean>;
}

/** Exclusive CPUs, as {@link Manager.acquire} gives them. */
export class Grant {
  /** Its pod's uid, by which it is released. */
  readonly id: string;
  readonly name: string;
  readonly #site: Site;
  readonly #found: readonly Warning[];
  #warnings: readonly Warning[] | undefined;
  readonly #placement: Placement;
  readonly #record: GrantRecord;
  #released: Promise<PinResult> | undefined;
  // Where placeThreads has put the Workers.
  #workerCpus: ThreadCpus | undefined;

  /** Use {@link Manager.acquire}. */
  constructor(site: Site, placement: Placement, pod: PodAssignment, warnings: readonly Warning[] = []) {
    this.#site = site;
    this.#placement = placement;
    this.#record = new GrantRecord(site, pod);
    this.id = pod.uid;
    this.name = pod.name;
    this.#found = warnings;
  }

  /**
   * What its holder should know, as it was when it was acquired; whether a quota above this process
   * is in its way is looked at once, when it is first asked for.
   */
  get warnings(): readonly Warning[] {
    this.#warnings ??= [...this.#found, ...this.#quotaWarnings()];
    return this.#warnings;
  }

  #quotaWarnings(): readonly Warning[] {
    const { ledger, topology } = this.#site;
    if (topology.isSimulated || !ledger.owners.isOwn(this.#record.pod.owner)) return [];
    return quotaWarnings(this.limits(), this.cpus.size);
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

  /** The CPUs to run on, as they are now: {@link resize} changes them, wherever it is called. */
  get cpus(): CpuSet {
    return this.#record.cpus;
  }

  /** CPUs that are kept from others though nothing runs on them. */
  get held(): CpuSet {
    return this.#record.held;
  }

  /** The CPUs that it is about to have instead, while a resize is announced; else null. */
  get upcoming(): CpuSet | null {
    return this.#record.look().upcoming?.cpus ?? null;
  }

  /** The NUMA nodes of `cpus`. */
  get numaNodes(): NodeSet {
    return this.#site.topology.nodesOf(this.cpus);
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
   * Whether it has isolated CPUs: taken as such, or such over which the kernel balances no load by
   * now. A thread that may use several of these stays on one: such a grant needs threads that are
   * placed one by one.
   */
  get isIsolated(): boolean {
    return isIsolated(this.#record.look(), cpusNow(this.#site.topology));
  }

  /** Whether it was released through this object. */
  get isReleased(): boolean {
    return this.#released !== undefined;
  }

  /**
   * What of it does not hold any more, since the machine or its settings have changed. It stays as
   * it is all the same, until released. Read anew each time; nothing once it was released.
   */
  get flags(): readonly Flag[] {
    return flagsNow(this.#site, this.#record.pod);
  }

  /**
   * Moves threads of this process onto the grant's CPUs, at once, and says what became of each.
   * Sets the memory policy of the calling thread, if it is one of them (set_mempolicy(2)); what the
   * kernel denies of that is told in the result, and memory then comes from the node of the CPU
   * that touches it first.
   * @throws ERR_ALREADY_PINNED where a thread is pinned for another grant, ERR_SYSCALL where none
   *   could be moved, ERR_ISOLATED_NEEDS_PLACEMENT for the process on several isolated CPUs,
   *   ERR_ENFORCEMENT for `strict` memory without a cgroup, and for single threads in one that
   *   takes whole processes only, ERR_CGROUP, ERR_INVALID_OPTION, ERR_SIMULATED_MACHINE,
   *   ERR_GRANT_RELEASED
   */
  pin(options: GrantPinOptions = {}): GrantPinResult {
    const request = parsePin(options);
    const target = this.#threads();
    if (request.threads === 'process') checkBalanced(target);
    const { site, cpus } = this.#record;
    return tracedApply(site, this, 'pin', () => {
      if (request.isStrict && !target.group) throw this.#needsGroup();
      return pinTo(target, cpus, site.topology.numaNodes, request, () => this.#noteRunning());
    });
  }

  // Threads of this process run on it from now on.
  #noteRunning(): void {
    if (this.#record.pod.owner.kind !== 'process') this.#site.enforcer.members?.registry.notePinned(this.id);
    beginAudit(this.#site, this.#record.pod);
  }

  #learnChoices(): void {
    const { enforcer, ledger } = this.#site;
    enforcer.learnChoices(assignmentsOf(this.#site, ledger.read()).settings);
  }

  #needsGroup(): NumalignError {
    const { enforcement } = this;
    return new NumalignError(
      'ERR_ENFORCEMENT',
      `memory: 'strict' is cpuset.mems of the grant's cgroup, and grant ${this.id}, enforced by the level ${enforcement}, has none`,
      {
        value: enforcement,
        valid: "memory: 'bind', or a grant that is enforced by the level cpuset or a stronger one",
      },
    );
  }

  #vacate() {
    return vacateOf(this.#site.topology, this.#record.group, this.#record.pod);
  }

  /**
   * Undoes every pin of this grant; the grant stays. Each thread gets back what it had as far as
   * that lies in the shared pool, else the whole pool: CPUs that have become somebody's since are
   * never restored. The calling thread gets its earlier memory policy back, if it was pinned for
   * this grant; those of other threads stay.
   */
  async unpin(): Promise<PinResult> {
    this.#checkUsable();
    const { topology } = this.#site;
    const undo = () =>
      transact(this.#site, undefined, async (state) => {
        const { result, threads } = undoPin(
          topology,
          this.#record.group,
          this.id,
          sharedPool(state, cpusNow(topology)),
        );
        unpinMemory(this.id);
        this.#workerCpus = undefined;
        this.#site.enforcer.apply(state, threads);
        return readAgain(result);
      });
    return tracedApply(this.#site, this, 'unpin', undo);
  }

  /**
   * More CPUs and memory, or fewer: growth keeps what it has, and of what it loses the threads that
   * are pinned for it leave first. What it will have is announced on record before (see
   * {@link upcoming}), for `noticeMs`. Threads of this process that are pinned for it follow, and
   * so does the calling thread's memory policy, if it was set for it; the result tells of the
   * threads. Other processes that run on it hear of it (`change`) and must move themselves. A
   * refused resize changes nothing. Where it grows, the policy that it was placed under has its say
   * again.
   * @throws ERR_INVALID_OPTION, ERR_INVALID_QUANTITY, ERR_INVALID_ARGUMENT for a pod of several
   *   containers; a rejection as {@link Manager.admit}'s; ERR_GRANT_BUSY while another resize is
   *   announced; ERR_CHILD_ALIVE where it shrinks while a child started by {@link spawn} runs;
   *   ERR_SYSCALL where a thread cannot leave; ERR_GRANT_RELEASED, ERR_OWNER_ALIVE,
   *   ERR_LOCK_TIMEOUT, ERR_STATE_*
   */
  async resize(options: ResizeOptions): Promise<PinResult> {
    const request = parseResize(options);
    if (request.memory !== undefined && this.#placement.memoryPolicy === 'None') {
      invalidOption(
        'memory',
        options.memory,
        'left out with the memory policy None, which books it for nobody',
      );
    }
    this.#record.checkHeld(this.isReleased);
    return tracedApply(this.#site, this, 'resize', async () => {
      const { pod, followed } = await resize(
        this.#site,
        this.#record.pod,
        request,
        this.#placement,
        threadsOf(this.id),
      );
      this.#record.pod = pod;
      followMemory(this.id, this.memoryNodes);
      if (this.#record.group?.hasMemoryNodes) this.#record.group.setMemoryNodes(this.memoryNodes);
      return followed ?? NOTHING_MOVED;
    });
  }

  /**
   * Hands the grant to a successor process without a gap: it calls {@link Manager.takeOver} with
   * the token. The grant stays on record all the time; once the successor has it, the threads of
   * this process leave, and only then does the successor's call return.
   * @throws ERR_INVALID_ARGUMENT where no process is the owner, ERR_CHILD_ALIVE,
   *   ERR_GRANT_RELEASED, ERR_OWNER_ALIVE, ERR_LOCK_TIMEOUT, ERR_STATE_*
   */
  async transfer(): Promise<Transfer> {
    this.#record.checkHeld(this.isReleased);
    checkNoChild(this.#record.pod, 'handed over');
    const site = this.#site;
    const pod = this.#record.pod;
    const token = await offer(site, pod);
    const accepted = handedOver(site, pod, token, {
      ...vacateOf(site.topology, groupOf(site, pod), pod),
      canLeave: () => !hasChild(pod.uid),
    }).then((isGone) => {
      if (isGone) {
        this.#released = Promise.resolve(NOTHING_MOVED);
        endAudit(site, pod);
      }
      return isGone;
    });
    // Nobody may be listening yet.
    accepted.catch(() => {});
    return Object.freeze({ token, accepted, cancel: () => withdraw(site, pod, token) });
  }

  /** Where memory is: see {@link memoryPlacement}. */
  memoryPlacement(buffer?: ArrayBufferView | ArrayBufferLike): MemoryPlacement {
    return memoryPlacement(buffer);
  }

  /**
   * A Buffer in memory of its own: with `node` all of it there, else on the grant's memory nodes
   * while they have room; with `pageSize` in hugepages, which need not be booked (if some of that
   * size are, their nodes are preferred). Every page is there when it returns, which takes as long
   * as clearing the memory does. Freed once it is collected or its thread ends. Booked memory is
   * accounted, not set aside: what is free decides.
   * @throws ERR_MEMORY_SHORTAGE where there are too few pages, ERR_INVALID_OPTION for a node that
   *   is not in {@link memoryNodes} or a page size that this machine has not, ERR_INVALID_QUANTITY,
   *   ERR_SYSCALL where the memory is not on the node and mbind(2) is denied,
   *   ERR_SIMULATED_MACHINE, ERR_GRANT_RELEASED
   */
  buffer(bytes: Quantity, options: BufferOptions = {}): Buffer {
    const { pageSize, node } = checkOptions(options, ['pageSize', 'node'], 'buffer') as BufferOptions;
    const request = parseBuffer(bytes, pageSize);
    if (node !== undefined && !this.memoryNodes.has(node)) {
      invalidOption('node', node, `one of the grant's memory nodes: ${this.memoryNodes}`);
    }
    this.#checkUsable();
    const booked = nodesOf(
      this.memory.filter(({ type }) => (pageBytes(type) ?? 0) === request.hugepageBytes),
    );
    return nodeBuffer(request, booked.isEmpty ? this.memoryNodes : booked, node);
  }

  /**
   * Starts a program on the grant's CPUs, there from its first instruction (with cgroup v2, where
   * this process is not in the grant’s cgroup, moved right after its start), with the grant's
   * memory nodes preferred where that is allowed (whatever policy this thread was pinned with). It
   * also gets a copy of the owner's lock: should this process die, its grants live on until the
   * child (and what it started) has ended. Same parameters as node:child_process.spawn; the child
   * finds NUMALIGN_GRANT, NUMALIGN_CPUS and NUMALIGN_DEVICES in its environment.
   * @throws ERR_SYSCALL where the CPUs cannot be used here, ERR_SIMULATED_MACHINE,
   *   ERR_GRANT_RELEASED
   */
  spawn(command: string, args: readonly string[] = [], options: SpawnOptions = {}): ChildProcess {
    const target = this.#threads();
    const { site, pod } = this.#record;
    const ownerFd = pod.owner.kind === 'process' ? site.ledger.owners.ownFd() : undefined;
    const ids = Object.entries(this.devices).map(([name, list]) => [name, list.map(({ id }) => id)]);
    const variables = {
      NUMALIGN_GRANT: this.id,
      NUMALIGN_CPUS: this.cpus.toString(),
      NUMALIGN_DEVICES: JSON.stringify(Object.fromEntries(ids)),
    };
    const child = tracedApply(site, this, 'spawn', () =>
      spawnOn(target, variables, ownerFd, command, args, options),
    );
    if (child.pid !== undefined) watchChild(this.id, child);
    return child;
  }

  /**
   * Moves another process, with all its threads, onto the grant's CPUs: into the grant's cgroup
   * where it has one (cgroup.procs; also what it has started by now), else by the masks of its
   * threads, of which some may be missed while they are being born. When the grant ends, it goes to
   * the shared pool.
   * @throws ERR_CGROUP, ERR_SYSCALL where it cannot be moved; ERR_UNKNOWN_MEMBER where there is no
   *   such process; ERR_INVALID_OPTION, ERR_SIMULATED_MACHINE, ERR_GRANT_RELEASED,
   *   ERR_LOCK_TIMEOUT, ERR_STATE_*
   */
  async attach(pid: number): Promise<Attachment> {
    openGrant(this.id, () => this.#checkUsable());
    return tracedApply(this.#site, this, 'attach', () =>
      attachProcess(this.#site, this.#record.pod, undefined, pid),
    );
  }

  /**
   * Gives up this process's share of a grant that children were started for: true where one of them
   * (or what it started) still lives, and the grant ends with the last; false where none was left,
   * and the grant is released.
   * @throws ERR_OWNER_SHARED where this process holds other grants too, and what {@link release}
   *   throws
   */
  async handOver(): Promise<boolean> {
    this.#checkUsable();
    try {
      const give = () =>
        ending(this.#record.pod, () => handOver(this.#site, this.#record.pod, this.#vacate()));
      const isAlive = await tracedRelease(this.#site, this.#record.pod, give);
      this.#released = Promise.resolve(NOTHING_MOVED);
      endAudit(this.#site, this.#record.pod);
      return isAlive;
    } catch (error) {
      if (isOffTheRecord(error)) this.#released = Promise.resolve(NOTHING_MOVED);
      throw error;
    }
  }

  /**
   * Gives the CPUs back and undoes the pins of this grant as {@link unpin} does; tells which
   * threads moved. Releasing twice is harmless.
   * @throws ERR_CHILD_ALIVE while a child started by {@link spawn} runs on the CPUs: end it, or
   *   {@link handOver}; and what the state folder's errors are: the grant then stays.
   */
  release(): Promise<PinResult> {
    this.#released ??= this.#release().catch((error) => {
      this.#released = isOffTheRecord(error) ? Promise.resolve(NOTHING_MOVED) : undefined;
      throw error;
    });
    return this.#released;
  }

  async #release(): Promise<PinResult> {
    try {
      return await releaseGrant(this.#site, this.#record.look());
    } catch (error) {
      // Somebody has released it by its id; our threads have left all the same.
      if (error instanceof NumalignError && error.code === 'ERR_UNKNOWN_GRANT') return NOTHING_MOVED;
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /**
   * What has happened on the grant's CPUs since its first {@link pin} in this process, or since the
   * first audit where it was not pinned here: by thread and by CPU, with the tasks of others that
   * were seen there. Synchronous; the price of each part is in docs/audit.md.
   * @throws ERR_INVALID_OPTION, ERR_GRANT_RELEASED, ERR_SIMULATED_MACHINE
   */
  audit(options: AuditOptions = {}): GrantAudit {
    const pod = this.#record.check(this.isReleased);
    checkRealMachine(this.#site);
    return auditGrant(this.#site, pod, options);
  }

  toJSON() {
    const { id, name, cpus, held, upcoming, numaNodes, memory, memoryNodes, devices } = this;
    const { isIsolated, enforcement, flags, warnings } = this;
    return {
      ...{ id, name, cpus, held, upcoming, numaNodes, memory, memoryNodes, devices },
      ...{ isIsolated, enforcement, flags, warnings },
    };
  }

  /** What console.log shows. */
  [inspect.custom](_depth: number, options: InspectOptions): string {
    const isReleased = this.isReleased || !this.#record.isThere;
    return `Grant ${isReleased ? '(released) ' : ''}${inspect(this.toJSON(), options)}`;
  }

  // On record, and ours or nobody's, on this machine.
  #checkUsable(): void {
    this.#record.checkHeld(this.isReleased);
    checkRealMachine(this.#site);
  }

  /**
   * How many threads can run at a time on the grant's CPUs: the number to size pools by.
   * os.availableParallelism() reads the mask of the calling thread, and answers 1 where that was
   * placed on a CPU of its own.
   */
  get availableParallelism(): number {
    return this.cpus.size;
  }

  #threads(): GrantedThreads {
    this.#checkUsable();
    const { site, pod, cpusToStay, group } = this.#record;
    const { enforcement } = pod;
    return {
      grant: this.id,
      owner: pod.owner.uuid,
      cpus: cpusToStay,
      memoryNodes: this.memoryNodes,
      // Not everybody asks.
      get oneToOne() {
        return needsOneToOne(
          { cpus: runningCpus(pod), enforcement: enforcement.level },
          cpusNow(site.topology).unbalanced,
        );
      },
      group,
      learnChoices: () => this.#learnChoices(),
    };
  }

  /**
   * A Worker (node:worker_threads) that is on the grant's CPUs, and has its memory nodes preferred,
   * from its first instruction: this thread takes their mask, starts it, and has its own again.
   * What the Worker starts is born there too. {@link placeThreads} knows it, and {@link unpin} and
   * {@link release} move it away.
   * @throws ERR_SCHEDULING where it would starve under real-time threads, ERR_SYSCALL where the
   *   CPUs cannot be used here, ERR_INVALID_OPTION, ERR_SIMULATED_MACHINE, ERR_GRANT_RELEASED, and
   *   what `new Worker` throws
   */
  worker(filename: string | URL, options: GrantWorkerOptions = {}): Worker {
    const worker = startWorker(this.#threads(), this.#workerCpus, filename, options);
    this.#noteRunning();
    return worker;
  }

  /**
   * Starts libuv's pool on the grant's CPUs (file system, DNS, zlib and crypto jobs run there), or
   * finds its threads and moves them; tells of them. `guaranteed`: all of them were found, which
   * takes one second where one is busy, and are where they should be.
   * @throws as {@link pin}
   */
  async prewarmPool(options: PrewarmOptions = {}): Promise<PinResult> {
    return tracedApply(this.#site, this, 'prewarm', async () => {
      const result = await prewarmPool(() => this.#threads(), options);
      this.#noteRunning();
      return result;
    });
  }

  /**
   * Pins every thread of this process, each kind where it is to be; what is left out runs on all
   * CPUs of the grant. Starts libuv's pool where it is not up. Afterwards {@link worker} puts
   * Workers where `workers` says. A thread belongs to the grant as after {@link pin}, which can be
   * called before or after; memory policies stay as they are. After a {@link resize} the threads
   * are where their places were, as far as these are left: place them again.
   * @throws as {@link pin}; ERR_INVALID_OPTION for CPUs that are not the grant's, and on Node 20
   *   for `v8` and `others` in different places
   */
  async placeThreads(options: PlaceThreadsOptions = {}): Promise<PlaceThreadsResult> {
    return tracedApply(this.#site, this, 'place', async () => {
      const result = await placeThreads(() => this.#threads(), options);
      this.#workerCpus = options.workers;
      this.#noteRunning();
      return result;
    });
  }

  /**
   * Gives a thread of this process that runs on the grant's CPUs another scheduling class, until
   * {@link unpin} or {@link release}, and reads it back. With `fifo` it runs before all others
   * there, and threads that it starts are ordinary ones. A later move of threads after which others
   * could run nowhere but on its CPUs takes it back.
   * @throws ERR_SCHEDULING where threads of this process could run nowhere but on CPUs of real-time
   *   threads, where the thread runs on other CPUs than the grant's, or limits do not allow it;
   *   ERR_SYSCALL where the kernel refuses all the same (EPERM: a control group without real-time
   *   budget), ERR_INVALID_OPTION, ERR_SIMULATED_MACHINE, ERR_GRANT_RELEASED
   */
  schedule(options: ScheduleOptions): ThreadScheduling {
    return schedule(this.#threads(), options);
  }
}

function nodesOf(blocks: readonly MemoryBlock[]): NodeSet {
  return NodeSet.from(blocks.flatMap(({ nodes }) => nodes));
}

// The CPUs are given back; a custom hint provider has failed to do the same.
function isOffTheRecord(error: unknown): boolean {
  return error instanceof NumalignError && error.code === 'ERR_HINT_PROVIDER';
}

/**
 * Releases a grant on record, unless a child of this process runs on it.
 * @throws ERR_CHILD_ALIVE, and as release of the Topology Manager
 */
export async function releaseGrant(site: Site, pod: PodAssignment): Promise<PinResult> {
  checkNoChild(pod, 'released');
  const give = () => ending(pod, () => release(site, pod, vacateOf(site.topology, groupOf(site, pod), pod)));
  const result = await tracedRelease(site, pod, give);
  endAudit(site, pod);
  return result;
}
