// Grant: exclusive CPUs of one owner, until their release.
import type { ChildProcess } from 'node:child_process';
import type { Worker } from 'node:worker_threads';
import type { PodAssignment } from '../account/pod-assignment.js';
import type { Admission } from '../admission/admit.js';
import type { Attachment, AttachOptions } from '../admission/grants/attachment.js';
import { checkRealMachine, GrantRecord } from '../admission/grants/grant-record.js';
import { resize } from '../admission/grants/resize.js';
import { tracedApply } from '../admission/grants/traced.js';
import { awaitSuccessor, offer, type Transfer, withdraw } from '../admission/grants/transfer.js';
import type { Host } from '../admission/host.js';
import type { GrantAudit } from '../audit/account.js';
import { type AuditOptions, auditGrant } from '../audit/grant-audits.js';
import { invalidOption } from '../base/check-options.js';
import { isNumalignError } from '../base/errors.js';
import { emitterOf, type GrantEmitter, type GrantEvents, type GrantListener } from '../changes/move-event.js';
import type { ExecOptions } from '../children/execution.js';
import type { Arguments, GrantForkOptions, GrantSpawnOptions, Inheritance } from '../children/spawn.js';
import type { Placement } from '../input/placement.js';
import { parseResize, type ResizeOptions } from '../input/requests/resize.js';
import type { Quantity } from '../input/values/quantity.js';
import type { PinResult } from '../machine/affinity.js';
import type { PoolOptions, PoolPlace } from '../pools/pool-options.js';
import type { PlaceWorkersOptions, WorkerPlacement } from '../pools/worker-placement.js';
import type { BufferOptions } from '../threads/buffers.js';
import { checkNoChild } from '../threads/children.js';
import { threadsOf } from '../threads/followers.js';
import { followMemory } from '../threads/memory.js';
import type { MemoryPlacement } from '../threads/memory-placement.js';
import type { GrantPinOptions, GrantPinResult } from '../threads/pin.js';
import type { PlaceThreadsOptions, PlaceThreadsResult } from '../threads/placement.js';
import type { PrewarmOptions } from '../threads/pool.js';
import type { ScheduleOptions, ThreadScheduling } from '../threads/scheduling.js';
import { NOTHING_MOVED } from '../threads/vacate.js';
import type { GrantWorkerOptions } from '../threads/worker.js';
import type { GrantPart } from './grant-part.js';
import { GrantProcesses } from './grant-processes.js';
import { GrantThreads } from './grant-threads.js';
import { GrantView } from './grant-view.js';
import { forgetGrant, handOver, release } from './release.js';

/**
 * Exclusive CPUs of one owner, with their memory and devices; {@link Manager.acquire} makes it.
 * `await using` releases it. See docs/grants.md.
 */
export class Grant
  extends GrantView
  implements Pick<GrantThreads, keyof GrantThreads>, Pick<GrantProcesses, keyof GrantProcesses>
{
  readonly #placement: Placement;
  readonly #record: GrantRecord;
  readonly #threads: GrantThreads;
  readonly #processes: GrantProcesses;

  /** Use {@link Manager.acquire}. */
  constructor(
    host: Host,
    placement: Placement,
    pod: PodAssignment,
    { warnings = [], explanation = null }: Partial<Pick<Admission, 'warnings' | 'explanation'>> = {},
  ) {
    const record = new GrantRecord(host, pod);
    super(record, warnings, explanation);
    this.#placement = placement;
    this.#record = record;
    this.#threads = new GrantThreads(record);
    this.#processes = new GrantProcesses(record, this);
  }

  pin(options?: GrantPinOptions): GrantPinResult {
    return this.#threads.pin(options);
  }

  part(name: string): GrantPart {
    return this.#threads.part(name);
  }

  unpin(): Promise<PinResult> {
    return this.#threads.unpin();
  }

  placeThreads(options?: PlaceThreadsOptions): Promise<PlaceThreadsResult> {
    return this.#threads.placeThreads(options);
  }

  prewarmPool(options?: PrewarmOptions): Promise<PinResult> {
    return this.#threads.prewarmPool(options);
  }

  worker(filename: string | URL, options?: GrantWorkerOptions): Worker {
    return this.#threads.worker(filename, options);
  }

  schedule(options: ScheduleOptions): ThreadScheduling {
    return this.#threads.schedule(options);
  }

  buffer(bytes: Quantity, options?: BufferOptions): Buffer {
    return this.#threads.buffer(bytes, options);
  }

  memoryPlacement(buffer?: ArrayBufferView | ArrayBufferLike): MemoryPlacement {
    return this.#threads.memoryPlacement(buffer);
  }

  placeWorkers(options?: PlaceWorkersOptions): Promise<WorkerPlacement> {
    return this.#threads.placeWorkers(options);
  }

  poolOptions<Package extends keyof PoolOptions>(name: Package, options?: PoolPlace): PoolOptions[Package] {
    return this.#threads.poolOptions(name, options);
  }

  spawn(command: string, args?: Arguments<GrantSpawnOptions>, options?: GrantSpawnOptions): ChildProcess {
    return this.#processes.spawn(command, args, options);
  }

  fork(
    modulePath: string | URL,
    args?: Arguments<GrantForkOptions>,
    options?: GrantForkOptions,
  ): ChildProcess {
    return this.#processes.fork(modulePath, args, options);
  }

  startChild(start: (inheritance: Inheritance) => ChildProcess): ChildProcess {
    return this.#processes.startChild(start);
  }

  exec(command: string, args?: readonly string[], options?: ExecOptions): never {
    return this.#processes.exec(command, args, options);
  }

  attach(pid: number, options?: AttachOptions): Promise<Attachment> {
    return this.#processes.attach(pid, options);
  }

  /**
   * Changes the amount of CPUs and memory. A larger grant keeps what it has; from CPUs that it
   * loses, its pinned threads leave first. {@link upcoming} shows the announced CPUs for
   * `noticeMs`. Pinned threads of this process and the memory policy of the calling thread follow;
   * the result says which threads moved. Other processes on the grant must move themselves at the
   * event `change`. Growth is subject to the policy of the grant again. A rejected resize changes
   * nothing.
   * @throws ERR_INVALID_OPTION, ERR_INVALID_QUANTITY; ERR_INVALID_ARGUMENT for a pod of several
   *   containers; a rejection as {@link Manager.admit}; ERR_GRANT_BUSY during another resize;
   *   ERR_CHILD_ALIVE if it shrinks while a child of {@link spawn} runs; ERR_SYSCALL if a thread
   *   cannot leave; ERR_GRANT_RELEASED, ERR_OWNER_ALIVE, ERR_LOCK_TIMEOUT, ERR_STATE_*
   */
  async resize(options: ResizeOptions): Promise<PinResult> {
    const request = parseResize(options);
    if (request.memory !== undefined && this.#placement.memoryPolicy === 'None') {
      invalidOption('memory', options.memory, 'left out with the memory policy None, which books no memory');
    }
    this.#record.checkHeld();
    const { host, pod: before } = this.#record;
    if (request.cpu !== undefined && before.elastic)
      invalidOption('cpu', options.cpu, 'left out for a grant that grows and shrinks by itself');
    return tracedApply(this.#record, 'resize', async () => {
      const { pod, followed } = await resize({
        host,
        grant: before,
        request,
        defaults: this.#placement,
        followers: threadsOf(host.ledger, this.uid, before),
      });
      this.#record.pod = pod;
      followMemory(this.uid, this.memoryNodes, this.#record.preferredNodesNear(this.cpus));
      const memory = this.#record.group?.memory;
      if (memory?.isStrict) memory.restrict(this.memoryNodes);
      return followed ?? NOTHING_MOVED;
    });
  }

  /**
   * Calls `listener` before (`move`) and after (`moveEnd`) the grant moves to make room for another
   * request, or after it grew or shrank by itself (`resize`): see {@link GrantEvents}. Only the
   * process that owns the grant gets these events, on every object of the grant. A listener does
   * not keep the process alive.
   * @throws ERR_GRANT_RELEASED
   */
  on<Event extends keyof GrantEvents>(event: Event, listener: GrantListener<Event>): this {
    this.#record.check();
    this.#emitter.on<keyof GrantEvents>(event, listener as () => void);
    return this;
  }

  /** As {@link on}, for the next event only. @throws ERR_GRANT_RELEASED */
  once<Event extends keyof GrantEvents>(event: Event, listener: GrantListener<Event>): this {
    this.#record.check();
    this.#emitter.once<keyof GrantEvents>(event, listener as () => void);
    return this;
  }

  /** Removes a listener. */
  off<Event extends keyof GrantEvents>(event: Event, listener: GrantListener<Event>): this {
    this.#emitter.off<keyof GrantEvents>(event, listener as () => void);
    return this;
  }

  get #emitter(): GrantEmitter {
    return emitterOf(this.#record.host.ledger, this.uid);
  }

  /**
   * Hands the grant to another process without a gap: that process calls {@link Manager.takeOver}
   * with the token. When it has the grant, the threads of this process leave, and then its call
   * returns.
   * @throws ERR_INVALID_ARGUMENT if the owner is not a process; ERR_CHILD_ALIVE, ERR_GRANT_RELEASED,
   *   ERR_OWNER_ALIVE, ERR_LOCK_TIMEOUT, ERR_STATE_*
   */
  async transfer(): Promise<Transfer> {
    this.#record.checkHeld();
    const { host, pod } = this.#record;
    checkNoChild(host.ledger, pod, 'handed over');
    const token = await offer(host, pod);
    const accepted = awaitSuccessor(host, pod, token).then((hasLeft) => {
      if (hasLeft) {
        this.#record.released = Promise.resolve(NOTHING_MOVED);
        forgetGrant(host, pod);
      }
      return hasLeft;
    });
    // The caller may await it later: until then an unhandled rejection would end the process.
    accepted.catch(() => {});
    return Object.freeze({ token, accepted, cancel: () => withdraw(host, pod, token) });
  }

  /**
   * Leaves the grant to the children that this process started on it. Resolves with true if a
   * child, or what it started, still lives: the grant ends with the last of them. Resolves with
   * false if none is left, and the grant is released.
   * @throws ERR_OWNER_SHARED if this process holds other grants or keeps the record of the kubelet;
   *   as {@link release}
   */
  async handOver(): Promise<boolean> {
    this.#record.checkUsable();
    const { host, pod } = this.#record;
    try {
      const isAlive = await handOver(host, pod);
      this.#record.released = Promise.resolve(NOTHING_MOVED);
      return isAlive;
    } catch (error) {
      if (isOffTheRecord(error)) this.#record.released = Promise.resolve(NOTHING_MOVED);
      throw error;
    }
  }

  /**
   * Releases the grant and undoes its pins as {@link unpin} does; the result says which threads
   * moved. A second call does nothing.
   * @throws ERR_CHILD_ALIVE while a child of {@link spawn} runs: end it, or call {@link handOver};
   *   ERR_OWNER_ALIVE, ERR_LOCK_TIMEOUT, ERR_STATE_*, and the grant stays
   */
  release(): Promise<PinResult> {
    this.#record.released ??= release(this.#record.host, this.#record.look()).catch((error) => {
      // Another caller released it by its uid. The threads of this process have left.
      if (isNumalignError(error, 'ERR_UNKNOWN_GRANT')) return NOTHING_MOVED;
      this.#record.released = isOffTheRecord(error) ? Promise.resolve(NOTHING_MOVED) : undefined;
      throw error;
    });
    return this.#record.released;
  }

  /** As {@link release}. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /**
   * What happened on the grant's CPUs since its first {@link pin} in this process, or since the
   * first audit: by thread and by CPU, with the tasks of other processes that ran there. See
   * docs/audit.md.
   * @throws ERR_INVALID_OPTION, ERR_GRANT_RELEASED, ERR_SIMULATED_MACHINE
   */
  audit(options: AuditOptions = {}): GrantAudit {
    const pod = this.#record.check();
    checkRealMachine(this.#record.host);
    return auditGrant(this.#record.host, pod, options);
  }
}

// The CPUs are released, but a custom hint provider failed to release what it holds.
const isOffTheRecord = (error: unknown) => isNumalignError(error, 'ERR_HINT_PROVIDER');
