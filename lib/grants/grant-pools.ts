// GrantPools: Workers that others construct, on a grant.
import type { GrantRecord } from '../admission/grants/grant-record.js';
import type { Warning } from '../admission/warnings.js';
import { type PoolOptions, type PoolPlace, poolOptions } from '../pools/pool-options.js';
import { type PlaceWorkersOptions, WorkerPlacement } from '../pools/worker-placement.js';
import { GrantThreads } from './grant-threads.js';
import { grantedThreads, noteRunning } from './granted.js';

/** Pools of Workers on a grant: see {@link Grant}. */
export class GrantPools extends GrantThreads {
  readonly #record: GrantRecord;

  constructor(record: GrantRecord, warnings: readonly Warning[]) {
    super(record, warnings);
    this.#record = record;
  }

  /**
   * From now on every Worker that this thread constructs, by whatever package, is born on the
   * grant's CPUs, or on those of a part, with its memory nodes preferred; with `oneToOne` each on
   * the CPU that has the fewest. The answer says of each which CPU it has, and since when. Where it
   * cannot be placed, the Worker is where it is born otherwise, and the answer says why. Until it is
   * stopped, or the grant unpinned or released. Of several placements of one thread the last has the
   * Workers.
   * @throws ERR_ENFORCEMENT where the grant has a cgroup of v2 and this process is not in it yet (see
   *   {@link pin}), ERR_INVALID_OPTION, ERR_INVALID_LIST, ERR_UNKNOWN_PART, ERR_SIMULATED_MACHINE,
   *   ERR_GRANT_RELEASED, the reason of `signal` where it is aborted
   */
  async placeWorkers(options: PlaceWorkersOptions = {}): Promise<WorkerPlacement> {
    const target = () => grantedThreads(this.#record, this, '');
    const placement = new WorkerPlacement(
      target,
      options,
      () => noteRunning(this.#record),
      () => this.#record.isEnding,
    );
    this.#record.placements = [...this.#record.placements.filter(({ isActive }) => isActive), placement];
    return placement;
  }

  /**
   * Options for a pool of Workers that has one for each CPU of the grant that no part has, or of
   * those named, in the words of its package.
   * @throws ERR_INVALID_OPTION for another package, and as {@link placeWorkers}
   */
  poolOptions<Package extends keyof PoolOptions>(
    name: Package,
    options: PoolPlace = {},
  ): PoolOptions[Package] {
    return poolOptions(grantedThreads(this.#record, this, ''), name, options);
  }
}
