// GrantPools: Workers that others construct, on a grant.
import type { GrantRecord } from '../admission/grants/grant-record.js';
import { type PoolOptions, poolOptions } from '../pools/pool-options.js';
import { type PlaceWorkersOptions, WorkerPlacement } from '../pools/worker-placement.js';
import { grantedThreads, noteRunning } from './granted.js';

/** Pools of Workers on a grant: see {@link Grant}. */
export class GrantPools {
  readonly #record: GrantRecord;

  constructor(record: GrantRecord) {
    this.#record = record;
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
      () => grantedThreads(this.#record),
      options,
      () => noteRunning(this.#record),
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
    options: Pick<PlaceWorkersOptions, 'cpus' | 'part'> = {},
  ): PoolOptions[Package] {
    return poolOptions(grantedThreads(this.#record), name, options);
  }
}
