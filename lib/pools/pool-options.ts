// The size of a Worker pool, as options of the packages that make pools.
import { checkNames, invalidOption } from '../base/check-options.js';
import type { GrantedThreads } from '../threads/granted-threads.js';
import { parsePlace } from '../threads/placement.js';
import type { PlaceWorkersOptions } from './worker-placement.js';

/** The CPUs that get one Worker each. */
export type PoolPlace = Pick<PlaceWorkersOptions, 'cpus' | 'part'>;

/** The options of each package for one Worker per CPU. */
export interface PoolOptions {
  /** For `new Piscina`. */
  piscina: { minThreads: number; maxThreads: number };
  /** For `new Tinypool`. */
  tinypool: { minThreads: number; maxThreads: number };
  /** For `pool()` of workerpool. */
  workerpool: { minWorkers: number; maxWorkers: number; workerType: 'thread' };
}

const OPTIONS: { readonly [Package in keyof PoolOptions]: (size: number) => PoolOptions[Package] } = {
  piscina: (size) => ({ minThreads: size, maxThreads: size }),
  tinypool: (size) => ({ minThreads: size, maxThreads: size }),
  workerpool: (size) => ({ minWorkers: size, maxWorkers: size, workerType: 'thread' }),
};

/** @throws ERR_INVALID_OPTION, ERR_INVALID_LIST, ERR_UNKNOWN_PART */
export function poolOptions<Package extends keyof PoolOptions>(
  grant: GrantedThreads,
  name: Package,
  options: PoolPlace,
): PoolOptions[Package] {
  const place = checkPoolPlace(options);
  return poolOfSize(name, parsePlace(grant, 'poolOptions', place).cpus.size);
}

/** @throws ERR_INVALID_OPTION */
export function checkPoolPlace(options: PoolPlace): PoolPlace {
  return checkNames(options, ['cpus', 'part'], 'poolOptions');
}

/** The options for a pool of `size` Workers. @throws ERR_INVALID_OPTION */
export function poolOfSize<Package extends keyof PoolOptions>(
  name: Package,
  size: number,
): PoolOptions[Package] {
  if (!Object.hasOwn(OPTIONS, name)) invalidOption('name', name, `one of ${Object.keys(OPTIONS).join(', ')}`);
  return OPTIONS[name](size);
}
