// EmptyGrant: what a program gets in place of an optional grant if there is none. Everything that
// runs on a grant runs here as it would without numalign.
import type { ChildProcess } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { type InspectOptions, inspect } from 'node:util';
import type { Worker } from 'node:worker_threads';
import { type NumalignError, unlessRefused } from '../base/errors.js';
import { obstacleOf } from '../base/refusal.js';
import { limitsOfProcess } from '../cgroups/limits.js';
import type { GrantEvents } from '../changes/move-event.js';
import type { ChildVariables } from '../children/child-variables.js';
import {
  type Arguments,
  forkWith,
  type GrantForkOptions,
  type GrantSpawnOptions,
  type Inheritance,
  spawnWith,
} from '../children/spawn.js';
import { parseConfig } from '../input/config.js';
import { type AdmissionRequest, parseAcquire } from '../input/requests/request.js';
import type { AcquireOptions } from '../input/requests/request-options.js';
import type { Quantity } from '../input/values/quantity.js';
import { CpuSet, NodeSet } from '../machine/cpu-set.js';
import { checkPoolPlace, type PoolOptions, type PoolPlace, poolOfSize } from '../pools/pool-options.js';
import {
  checkPlaceWorkers,
  type PlaceWorkersOptions,
  type WorkerPlacement,
} from '../pools/worker-placement.js';
import { type BufferOptions, checkBuffer, parseBuffer } from '../threads/buffers.js';
import { memoryPlacement } from '../threads/memory-placement.js';
import { type GrantPinOptions, parsePin } from '../threads/pin.js';
import { checkPlaces, type PlaceThreadsOptions, type PlaceThreadsResult } from '../threads/placement.js';
import { checkPrewarm, type PrewarmOptions } from '../threads/pool.js';
import type { GrantWorkerOptions } from '../threads/worker.js';
import { EmptyPart, NOT_MOVED, notPinned } from './empty-part.js';
import { FACTS, factsOf } from './facts.js';
import type { Grant } from './grant.js';
import type { GrantPart } from './grant-part.js';

/**
 * Options with `optional: true`: if there is no room, no access to the state or no addon, the call
 * returns an {@link EmptyGrant} (or {@link EmptyManager}) instead of throwing. Mistakes in the
 * options still throw. See docs/platforms.md.
 */
export type Optional<Options> = Options & {
  /**
   * Returns an {@link EmptyGrant} instead of throwing if there is no room, no access to the state
   * or no addon. Mistakes in the options still throw. See docs/platforms.md.
   */
  optional: boolean;
};

type Same = Omit<
  Pick<Grant, keyof Grant>,
  'isEmpty' | 'reason' | 'enforcement' | 'toJSON' | 'part' | 'placeWorkers' | 'on' | 'once' | 'off'
>;

// An empty grant places no Worker.
const NO_PLACEMENT = Object.freeze({
  isActive: false,
  workers: [],
  of: () => undefined,
  stop() {},
  [Symbol.dispose]() {},
});

/**
 * The result of `optional: true` without CPUs. It has every member of {@link Grant}: pins move no
 * thread and say so, Workers and children start as without numalign, and `resize`, `transfer`,
 * `attach`, `exec`, `schedule` and `audit` throw the `reason`. Members that differ otherwise are
 * listed. See docs/platforms.md.
 */
export class EmptyGrant implements Same {
  /** Always true. */
  readonly isEmpty = true;
  /** Why there are no CPUs. */
  readonly reason: NumalignError;
  /** The empty text: nothing is on record. */
  readonly uid = '';
  readonly name: string;
  readonly cpus = CpuSet.EMPTY;
  readonly sharedCpus = CpuSet.EMPTY;
  readonly mixed = 0;
  readonly elastic = null;
  readonly held = CpuSet.EMPTY;
  readonly movable = null;
  readonly upcoming = null;
  readonly numaNodes = NodeSet.EMPTY;
  readonly memoryNodes = NodeSet.EMPTY;
  readonly memory = [];
  readonly devices = {};
  readonly memoryEnforcement = [];
  readonly warnings = [];
  readonly explanation = null;
  readonly quiet = null;
  readonly isIsolated = false;
  /** No other process is kept off. */
  readonly enforcement = 'none';
  /** The requested parts, without CPUs. */
  readonly parts: Readonly<Record<string, CpuSet>>;
  #isReleased = false;

  /** Use {@link pin}, or {@link Manager.acquire}, with `optional: true`. */
  constructor(reason: NumalignError, { pod, parts = [] }: AdmissionRequest) {
    this.reason = reason;
    this.name = pod.name ?? '';
    this.parts = Object.freeze(Object.fromEntries(parts.map(({ name }) => [name, CpuSet.EMPTY])));
  }

  get isReleased(): boolean {
    return this.#isReleased;
  }

  /** os.availableParallelism(): how many threads of the process can run at a time. */
  get availableParallelism(): number {
    return availableParallelism();
  }

  limits() {
    return unlessRefused(() => limitsOfProcess(process.pid), { cpuMax: null, memoryMax: null });
  }

  flags() {
    return [];
  }

  pin(options: GrantPinOptions = {}) {
    return notPinned(this.reason, parsePin(options));
  }

  /**
   * Returns a part without CPUs, whose pins move no thread.
   * @throws ERR_UNKNOWN_PART for one that was not requested
   */
  part(name: string): Readonly<GrantPart> {
    return new EmptyPart(this.reason, this.parts, name);
  }

  #checkPart(name: string | undefined): void {
    if (name !== undefined) this.part(name);
  }

  async unpin() {
    return NOT_MOVED;
  }

  async placeThreads(options: PlaceThreadsOptions = {}): Promise<PlaceThreadsResult> {
    for (const { part } of checkPlaces(options).places) this.#checkPart(part);
    const [main, workers, pool, v8, others] = Array(5).fill(NOT_MOVED);
    return { main, workers, pool, v8, others, guaranteed: false };
  }

  async prewarmPool(options: PrewarmOptions = {}) {
    checkPrewarm(options);
    return NOT_MOVED;
  }

  worker(filename: string | URL, { part, cpus: _, ...options }: GrantWorkerOptions = {}): Worker {
    this.#checkPart(part);
    return new (process.getBuiltinModule('node:worker_threads').Worker)(filename, options);
  }

  async placeWorkers(
    options: PlaceWorkersOptions = {},
  ): Promise<Pick<WorkerPlacement, keyof WorkerPlacement>> {
    this.#checkPart(checkPlaceWorkers(options).place.part);
    return NO_PLACEMENT;
  }

  /** Returns the options for a pool of {@link availableParallelism} Workers. */
  poolOptions<Package extends keyof PoolOptions>(
    name: Package,
    options: PoolPlace = {},
  ): PoolOptions[Package] {
    this.#checkPart(checkPoolPlace(options).part);
    return poolOfSize(name, this.availableParallelism);
  }

  spawn(command: string, args?: Arguments<GrantSpawnOptions>, options?: GrantSpawnOptions): ChildProcess {
    return this.startChild((inheritance) => spawnWith(inheritance, command, args, options));
  }

  fork(
    modulePath: string | URL,
    args?: Arguments<GrantForkOptions>,
    options?: GrantForkOptions,
  ): ChildProcess {
    return this.startChild((inheritance) => forkWith(inheritance, modulePath, args, options));
  }

  startChild(start: (inheritance: Inheritance) => ChildProcess): ChildProcess {
    const variables = {} as ChildVariables;
    return start({ variables, ownerFd: undefined, parallelism: this.availableParallelism });
  }

  /** Allocates a Buffer of ordinary memory. @throws the `reason` for a node or hugepages */
  buffer(bytes: Quantity, options: BufferOptions = {}): Buffer {
    const { pageSize, node } = checkBuffer(options);
    if (pageSize !== undefined || node !== undefined) throw this.reason;
    return Buffer.alloc(parseBuffer(bytes, undefined).bytes);
  }

  memoryPlacement(buffer?: ArrayBufferView | ArrayBufferLike) {
    return memoryPlacement(buffer);
  }

  exec(): never {
    throw this.reason;
  }

  schedule(): never {
    throw this.reason;
  }

  audit(): never {
    throw this.reason;
  }

  async attach(): Promise<never> {
    throw this.reason;
  }

  async resize(): Promise<never> {
    throw this.reason;
  }

  async transfer(): Promise<never> {
    throw this.reason;
  }

  /** Adds no listener: an empty grant never moves. */
  on(_event: keyof GrantEvents, _listener: (...args: never[]) => void): this {
    return this;
  }

  once(_event: keyof GrantEvents, _listener: (...args: never[]) => void): this {
    return this;
  }

  off(_event: keyof GrantEvents, _listener: (...args: never[]) => void): this {
    return this;
  }

  async handOver(): Promise<boolean> {
    this.#isReleased = true;
    return false;
  }

  async release() {
    this.#isReleased = true;
    return NOT_MOVED;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /** The facts of a {@link Grant} as a plain object, with `isEmpty` and `reason`. */
  toJSON() {
    const { isEmpty, reason, warnings } = this;
    const { movable: _, ...facts } = factsOf(this as EmptyGrant, FACTS);
    return { isEmpty, reason: reason.toJSON(), ...facts, flags: this.flags(), warnings };
  }

  /** What console.log shows. */
  [inspect.custom](_depth: number, options: InspectOptions): string {
    const { name, reason } = this;
    return `EmptyGrant ${inspect({ name, reason: `${reason.message} [${reason.code}]` }, options)}`;
  }
}

/**
 * The result of a failed request: an empty grant if the request is optional and valid, and the
 * error is an obstacle rather than a mistake.
 * @throws the error otherwise
 */
export function emptyGrant(options: AcquireOptions, error: unknown): EmptyGrant {
  if ((options as Partial<Optional<AcquireOptions>> | null)?.optional !== true) throw error;
  const reason = obstacleOf(error);
  return new EmptyGrant(reason, parseAcquire(options, parseConfig({}).placement));
}
