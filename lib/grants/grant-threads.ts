// GrantThreads: threads of this process, its Workers, and memory, on a grant.
import type { Worker } from 'node:worker_threads';
import { cpusNow } from '../account/cpus-now.js';
import { firstNodes, memoryOf, runningCpus } from '../account/pod-holdings.js';
import { sharedPool } from '../account/pools.js';
import type { GrantRecord } from '../admission/grants/grant-record.js';
import { tracedApply } from '../admission/grants/traced.js';
import { transact } from '../admission/transact.js';
import { invalidOption } from '../base/check-options.js';
import { NumalignError } from '../base/errors.js';
import { pageBytes } from '../input/values/memory-types.js';
import type { Quantity } from '../input/values/quantity.js';
import type { PinResult } from '../machine/affinity.js';
import { type PoolOptions, type PoolPlace, poolOptions } from '../pools/pool-options.js';
import { type PlaceWorkersOptions, WorkerPlacement } from '../pools/worker-placement.js';
import { type BufferOptions, checkBuffer, nodeBuffer, noteBuffer, parseBuffer } from '../threads/buffers.js';
import type { GrantedThreads } from '../threads/granted-threads.js';
import { type MemoryPlacement, memoryPlacement } from '../threads/memory-placement.js';
import {
  checkBalanced,
  type GrantPinOptions,
  type GrantPinResult,
  type PinRequest,
  parsePartPin,
  parsePin,
  pinTo,
} from '../threads/pin.js';
import {
  type PlaceThreadsOptions,
  type PlaceThreadsResult,
  placeThreads,
  type ThreadCpus,
} from '../threads/placement.js';
import { type PrewarmOptions, prewarmPool } from '../threads/pool.js';
import { type ScheduleOptions, schedule, type ThreadScheduling } from '../threads/scheduling.js';
import { leaveGrant } from '../threads/vacate.js';
import { type GrantWorkerOptions, startWorker } from '../threads/worker.js';
import { GrantPart } from './grant-part.js';
import { grantedThreads, noteRunning } from './granted.js';

/** Puts threads and memory on a grant: see {@link Grant}. */
export class GrantThreads {
  readonly #record: GrantRecord;
  // Where placeThreads has put the Workers.
  #workerCpus: ThreadCpus | undefined;

  constructor(record: GrantRecord) {
    this.#record = record;
  }

  /**
   * Moves threads of this process onto the grant's CPUs at once, with sched_setaffinity(2) and into
   * the grant's cgroup, and says what became of each. With parts these are the
   * {@link Grant.sharedCpus}; threads of parts stay. It sets the memory policy of the calling
   * thread (set_mempolicy(2)), if that is among them; the result says what the kernel denies of
   * it. See docs/threads.md.
   * @throws ERR_ALREADY_PINNED if a thread is pinned for another grant; ERR_SYSCALL if no thread
   *   could be moved; ERR_ISOLATED_NEEDS_PLACEMENT for the whole process on several isolated CPUs;
   *   ERR_ENFORCEMENT for `strict` without a cgroup, or for a single thread in a cgroup that takes
   *   whole processes; ERR_CGROUP, ERR_INVALID_OPTION, ERR_SIMULATED_MACHINE, ERR_GRANT_RELEASED
   */
  pin(options: GrantPinOptions = {}): GrantPinResult {
    const request = parsePin(options);
    const target = this.#threads();
    if (request.threads === 'process') checkBalanced(target);
    return this.#pin(target, request);
  }

  #pin(target: GrantedThreads, request: PinRequest): GrantPinResult {
    const { host, pod } = this.#record;
    return tracedApply(this.#record, 'pin', () => {
      if (request.isStrict && !target.group) throw this.#needsGroup();
      const { numaNodes } = host.topology;
      const cpus = runningCpus(pod);
      return pinTo(target, request, { cpus, numaNodes, noteRunning: () => this.#noteRunning() });
    });
  }

  /** Returns one of {@link Grant.parts}. @throws ERR_UNKNOWN_PART */
  part(name: string): GrantPart {
    return new GrantPart(this.#record, name, (options) =>
      this.#pin(this.#threads(name), parsePartPin(options)),
    );
  }

  /**
   * Undoes every pin of this grant; the grant stays. Each thread gets its earlier mask back as far
   * as that is in the shared pool, else the whole pool. The calling thread gets its earlier memory
   * policy back, if it was pinned for this grant; other threads keep theirs.
   * @throws ERR_GRANT_RELEASED, ERR_OWNER_ALIVE, ERR_LOCK_TIMEOUT, ERR_STATE_*
   */
  async unpin(): Promise<PinResult> {
    this.#record.checkUsable();
    const { host, pod } = this.#record;
    const undo = () =>
      transact(host, undefined, async (state) => {
        const left = leaveGrant(host, state.settings, pod, sharedPool(state, cpusNow(host.topology)));
        try {
          host.enforcer.apply(state, left.threads);
        } catch (error) {
          left.comeBack();
          throw error;
        }
        this.#workerCpus = undefined;
        this.#record.stopPlacements();
        return left.settled();
      });
    return tracedApply(this.#record, 'unpin', undo);
  }

  /**
   * Pins every thread of this process, each kind where `options` says. It starts libuv's pool if
   * necessary. {@link worker} puts later Workers where `workers` says. It leaves memory policies
   * alone, and you can call {@link pin} before or after. After a {@link Grant.resize}, threads stay
   * within the CPUs that are left: place them again. With `'shared'` this process becomes a shared
   * member. See docs/threads.md.
   * @throws as {@link pin}; ERR_UNKNOWN_PART; ERR_INVALID_OPTION for CPUs outside of the grant, for
   *   `'shared'` without a mixed grant, and on Node 20 for `v8` and `others` in different places;
   *   with `'shared'` also ERR_ENFORCEMENT if the grant has a cgroup v2, ERR_MEMBER_UNMOVABLE if
   *   this process is attached to CPUs, ERR_LOCK_TIMEOUT, ERR_STATE_*
   */
  async placeThreads(options: PlaceThreadsOptions = {}): Promise<PlaceThreadsResult> {
    return tracedApply(this.#record, 'place', async () => {
      const result = await placeThreads(() => this.#threads(), options);
      this.#workerCpus = options.workers;
      this.#noteRunning();
      return result;
    });
  }

  /**
   * Starts libuv's pool (file system, DNS, zlib and crypto jobs) on the grant's CPUs without those
   * of parts, or moves its threads there. `guaranteed` in the result: all threads were found and
   * are there. It takes a second if one is busy.
   * @throws as {@link pin}
   */
  async prewarmPool(options: PrewarmOptions = {}): Promise<PinResult> {
    return tracedApply(this.#record, 'prewarm', async () => {
      const result = await prewarmPool(() => this.#threads(), options);
      this.#noteRunning();
      return result;
    });
  }

  /**
   * Starts a Worker (node:worker_threads) that runs on the grant's CPUs, or on those of a `part`,
   * from its first instruction, with its memory nodes preferred. What the Worker starts inherits
   * that. {@link unpin} and {@link Grant.release} move it away.
   * @throws ERR_SCHEDULING if real-time threads would starve it; ERR_SYSCALL if the CPUs cannot be
   *   used here; ERR_UNKNOWN_PART, ERR_INVALID_OPTION, ERR_SIMULATED_MACHINE, ERR_GRANT_RELEASED;
   *   what `new Worker` throws
   */
  worker(filename: string | URL, options: GrantWorkerOptions = {}): Worker {
    const worker = startWorker(this.#threads(), this.#workerCpus, filename, options);
    this.#noteRunning();
    return worker;
  }

  /**
   * Places every Worker that this thread constructs from now on, also in packages, on the grant's
   * CPUs or on those of a part, from its first instruction, with its memory nodes preferred. The
   * result lists the Workers with their CPUs; a Worker that cannot be placed runs where it would
   * without numalign, with the reason. It lasts until it is stopped, or the grant is unpinned or
   * released. The latest placement of a thread counts. See docs/pools.md.
   * @throws ERR_ENFORCEMENT if the grant has a cgroup v2 that this process is not in (see
   *   {@link pin}); ERR_INVALID_OPTION, ERR_INVALID_LIST, ERR_UNKNOWN_PART, ERR_SIMULATED_MACHINE,
   *   ERR_GRANT_RELEASED; the signal's reason
   */
  async placeWorkers(options: PlaceWorkersOptions = {}): Promise<WorkerPlacement> {
    const placement = new WorkerPlacement(
      () => this.#threads(),
      options,
      () => this.#noteRunning(),
      () => this.#record.isEnding,
    );
    this.#record.placements = [...this.#record.placements.filter(({ isActive }) => isActive), placement];
    return placement;
  }

  /**
   * Returns the options of `piscina`, `tinypool` or `workerpool` for a pool with one Worker for
   * each CPU that no part has, or for each CPU of `options`.
   * @throws ERR_INVALID_OPTION for another package; as {@link placeWorkers}
   */
  poolOptions<Package extends keyof PoolOptions>(
    name: Package,
    options: PoolPlace = {},
  ): PoolOptions[Package] {
    return poolOptions(this.#threads(), name, options);
  }

  /**
   * Gives a thread of this process on the grant's CPUs another scheduling class with
   * sched_setattr(2), until {@link unpin} or {@link Grant.release}, and reads it back. Threads that
   * it starts are ordinary ones. A later move that leaves other threads no other CPU than its own
   * reverts it. See docs/threads.md.
   * @throws ERR_SCHEDULING if threads of this process would have only CPUs of real-time threads, if
   *   the thread is on other CPUs, or if limits forbid it; ERR_SYSCALL if the kernel refuses
   *   (EPERM: a control group without real-time budget); ERR_INVALID_OPTION, ERR_SIMULATED_MACHINE,
   *   ERR_GRANT_RELEASED
   */
  schedule(options: ScheduleOptions): ThreadScheduling {
    const { grant } = this.#threads();
    return schedule({ grant, cpus: this.#record.cpusToStay() }, options);
  }

  /**
   * Allocates a Buffer: with `node` entirely on that node, else preferably on the grant's memory
   * nodes; with `pageSize` in hugepages, which need not be booked. Every page is allocated when it
   * returns. The memory is freed with the Buffer or its thread. Free pages count, not booked ones.
   * See docs/memory.md.
   * @throws ERR_MEMORY_SHORTAGE if there are too few free pages; ERR_INVALID_OPTION for a `node`
   *   outside of {@link memoryNodes} or a page size that the machine lacks; ERR_INVALID_QUANTITY;
   *   ERR_SYSCALL if the memory is elsewhere and mbind(2) is denied; ERR_SIMULATED_MACHINE,
   *   ERR_GRANT_RELEASED
   */
  buffer(bytes: Quantity, options: BufferOptions = {}): Buffer {
    const { pageSize, node } = checkBuffer(options);
    const request = parseBuffer(bytes, pageSize);
    const memoryNodes = this.#record.memoryNodesNear(this.#record.cpus);
    if (node !== undefined && !memoryNodes.has(node)) {
      invalidOption('node', node, `one of the grant's memory nodes: ${memoryNodes}`);
    }
    this.#record.checkRunnable();
    const booked = firstNodes(
      this.#record.host.topology,
      memoryOf(this.#record.pod).filter(({ type }) => (pageBytes(type) ?? 0) === request.hugepageBytes),
    );
    const buffer = nodeBuffer(request, booked.isEmpty ? memoryNodes : booked, node);
    noteBuffer(this.#record.uid, buffer, request.hugepageBytes, node !== undefined);
    return buffer;
  }

  /**
   * Says on which NUMA nodes the memory of a buffer or of the process is: see
   * {@link memoryPlacement}.
   */
  memoryPlacement(buffer?: ArrayBufferView | ArrayBufferLike): MemoryPlacement {
    return memoryPlacement(buffer);
  }

  // What may run on the grant, or on a part of it.
  #threads(part?: string): GrantedThreads {
    return grantedThreads(this.#record, part);
  }

  #noteRunning(): void {
    noteRunning(this.#record);
  }

  #needsGroup(): NumalignError {
    const { uid, enforcement } = this.#record.pod;
    const { level } = enforcement;
    return new NumalignError(
      'ERR_ENFORCEMENT',
      `memory: 'strict' sets cpuset.mems of the grant's cgroup, but grant ${uid} has no cgroup at the level ${level}`,
      { value: level, valid: "memory: 'bind', or a grant at the level cpuset or a stronger one" },
    );
  }
}
