// GrantThreads: threads of this process, and memory, on a grant.
import type { Worker } from 'node:worker_threads';
import { cpusNow } from '../account/cpus-now.js';
import { nodesOf } from '../account/pod-holdings.js';
import { sharedPool } from '../account/pools.js';
import type { GrantRecord } from '../admission/grants/grant-record.js';
import { tracedApply } from '../admission/grants/traced.js';
import { transact } from '../admission/transact.js';
import type { Warning } from '../admission/warnings.js';
import { invalidOption } from '../base/check-options.js';
import { NumalignError } from '../base/errors.js';
import { type GrantWorkerOptions, startWorker } from '../births/worker.js';
import { pageBytes } from '../input/values/memory-types.js';
import type { Quantity } from '../input/values/quantity.js';
import type { PinResult } from '../machine/affinity.js';
import { type BufferOptions, checkBuffer, nodeBuffer, noteBuffer, parseBuffer } from '../threads/buffers.js';
import type { GrantedThreads } from '../threads/granted-threads.js';
import { unpinMemory } from '../threads/memory.js';
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
import { readAgain, undoPin } from '../threads/vacate.js';
import { GrantPart } from './grant-part.js';
import { GrantProcesses } from './grant-processes.js';
import { grantedThreads, noteRunning } from './granted.js';

/** Puts threads and memory on a grant: see {@link Grant}. */
export class GrantThreads extends GrantProcesses {
  readonly #record: GrantRecord;
  // Where placeThreads has put the Workers.
  #workerCpus: ThreadCpus | undefined;

  constructor(record: GrantRecord, warnings: readonly Warning[], explanation: string | null) {
    super(record, warnings, explanation);
    this.#record = record;
  }

  /**
   * Moves threads of this process onto the grant's CPUs, at once, and says what became of each. Of
   * a grant with parts these are {@link Grant.sharedCpus}, and threads of parts stay where they are.
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
    return this.#pin(target, request);
  }

  #pin(target: GrantedThreads, request: PinRequest): GrantPinResult {
    const { site, cpus } = this.#record;
    return tracedApply(site, this, 'pin', () => {
      if (request.isStrict && !target.group) throw this.#needsGroup();
      return pinTo(target, cpus, site.topology.numaNodes, request, () => this.#noteRunning());
    });
  }

  /** One of {@link Grant.parts}. @throws ERR_UNKNOWN_PART */
  part(name: string): GrantPart {
    return new GrantPart(this.#record, name, (options) =>
      this.#pin(this.#threads(name), parsePartPin(options)),
    );
  }

  /**
   * Undoes every pin of this grant; the grant stays. Each thread gets back what it had as far as
   * that lies in the shared pool, else the whole pool: CPUs that have become somebody's since are
   * never restored. The calling thread gets its earlier memory policy back, if it was pinned for
   * this grant; those of other threads stay.
   */
  async unpin(): Promise<PinResult> {
    this.#record.checkUsable();
    const { topology } = this.#record.site;
    const undo = () =>
      transact(this.#record.site, undefined, async (state) => {
        const { result, threads } = undoPin(
          topology,
          this.#record.group,
          this.uid,
          sharedPool(state, cpusNow(topology)),
        );
        unpinMemory(this.uid);
        this.#workerCpus = undefined;
        this.#record.stopPlacements();
        this.#record.site.enforcer.apply(state, threads);
        return readAgain(result);
      });
    return tracedApply(this.#record.site, this, 'unpin', undo);
  }

  /**
   * Pins every thread of this process, each kind where it is to be; what is left out runs on all
   * CPUs of the grant, but for those of parts, whose threads stay. Starts libuv's pool where it is
   * not up. Afterwards {@link worker} puts Workers where `workers` says. A thread belongs to the
   * grant as after {@link pin}, which can be called before or after; memory policies stay as they
   * are. After a {@link Grant.resize} the threads are where their places were, as far as these are
   * left: place them again. Of a mixed grant kinds may be `'shared'`: they run in the shared pool,
   * and this process is a shared member from then on, also where its manager was opened without.
   * @throws as {@link pin}; ERR_UNKNOWN_PART; ERR_INVALID_OPTION for CPUs that are not the grant's,
   *   `'shared'` where nothing of the pool is booked, and on Node 20 for `v8` and `others` in
   *   different places; for `'shared'` ERR_ENFORCEMENT where the grant has a cgroup of v2,
   *   ERR_MEMBER_UNMOVABLE where this process is attached to CPUs, ERR_LOCK_TIMEOUT, ERR_STATE_*
   */
  async placeThreads(options: PlaceThreadsOptions = {}): Promise<PlaceThreadsResult> {
    return tracedApply(this.#record.site, this, 'place', async () => {
      const result = await placeThreads(() => this.#threads(), options);
      this.#workerCpus = options.workers;
      this.#noteRunning();
      return result;
    });
  }

  /**
   * Starts libuv's pool on the grant's CPUs, without those of parts (file system, DNS, zlib and
   * crypto jobs run there), or finds its threads and moves them; tells of them. `guaranteed`: all
   * of them were found, which takes one second where one is busy, and are where they should be.
   * @throws as {@link pin}
   */
  async prewarmPool(options: PrewarmOptions = {}): Promise<PinResult> {
    return tracedApply(this.#record.site, this, 'prewarm', async () => {
      const result = await prewarmPool(() => this.#threads(), options);
      this.#noteRunning();
      return result;
    });
  }

  /**
   * A Worker (node:worker_threads) that is on the grant's CPUs, or with `part` on those of a part,
   * and has its memory nodes preferred, from its first instruction: this thread takes their mask,
   * starts it, and has its own again.
   * What the Worker starts is born there too. Where {@link placeThreads} has put the Workers into the
   * shared pool, it goes there right after. {@link placeThreads} knows it, and {@link unpin} and
   * {@link Grant.release} move it away.
   * @throws ERR_SCHEDULING where it would starve under real-time threads, ERR_SYSCALL where the
   *   CPUs cannot be used here, ERR_UNKNOWN_PART, ERR_INVALID_OPTION, ERR_SIMULATED_MACHINE,
   *   ERR_GRANT_RELEASED, and what `new Worker` throws
   */
  worker(filename: string | URL, options: GrantWorkerOptions = {}): Worker {
    const worker = startWorker(this.#threads(), this.#workerCpus, filename, options);
    this.#noteRunning();
    return worker;
  }

  /**
   * Gives a thread of this process that runs on the grant's CPUs another scheduling class, until
   * {@link unpin} or {@link Grant.release}, and reads it back. With `fifo` it runs before all others
   * there, and threads that it starts are ordinary ones. A later move of threads after which others
   * could run nowhere but on its CPUs takes it back.
   * @throws ERR_SCHEDULING where threads of this process could run nowhere but on CPUs of real-time
   *   threads, where the thread runs on other CPUs than the grant's, or limits do not allow it;
   *   ERR_SYSCALL where the kernel refuses all the same (EPERM: a control group without real-time
   *   budget), ERR_INVALID_OPTION, ERR_SIMULATED_MACHINE, ERR_GRANT_RELEASED
   */
  schedule(options: ScheduleOptions): ThreadScheduling {
    const { grant } = this.#threads();
    return schedule({ grant, cpus: this.#record.cpusToStay }, options);
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
    const { pageSize, node } = checkBuffer(options);
    const request = parseBuffer(bytes, pageSize);
    if (node !== undefined && !this.memoryNodes.has(node)) {
      invalidOption('node', node, `one of the grant's memory nodes: ${this.memoryNodes}`);
    }
    this.#record.checkRunnable();
    const booked = nodesOf(
      this.memory.filter(({ type }) => (pageBytes(type) ?? 0) === request.hugepageBytes),
    );
    const buffer = nodeBuffer(request, booked.isEmpty ? this.memoryNodes : booked, node);
    noteBuffer(this.uid, buffer, request.hugepageBytes, node !== undefined);
    return buffer;
  }

  /** Where memory is: see {@link memoryPlacement}. */
  memoryPlacement(buffer?: ArrayBufferView | ArrayBufferLike): MemoryPlacement {
    return memoryPlacement(buffer);
  }

  // What may run on the grant, or on a part of it.
  #threads(part = ''): GrantedThreads {
    return grantedThreads(this.#record, this, part);
  }

  #noteRunning(): void {
    noteRunning(this.#record);
  }

  #needsGroup(): NumalignError {
    const { enforcement } = this;
    return new NumalignError(
      'ERR_ENFORCEMENT',
      `memory: 'strict' is cpuset.mems of the grant's cgroup, and grant ${this.uid}, enforced by the level ${enforcement}, has none`,
      {
        value: enforcement,
        valid: "memory: 'bind', or a grant that is enforced by the level cpuset or a stronger one",
      },
    );
  }
}
