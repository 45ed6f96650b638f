// The size of a pool of Workers, in the words of the packages that make them.
import { checkOptions, invalidOption } from '../base/check-options.js';
import type { GrantedThreads } from '../threads/granted-threads.js';
import { type WorkerPlace, workerPlace } from './worker-placement.js';

/** By package, its options for a Worker for each CPU. */
export interface PoolOptions {
  piscina: { minThreads: number; maxThreads: number };
  tinypool: { minThreads: number; maxThreads: number };
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
  options: WorkerPlace,
): PoolOptions[Package] {
  const place = checkOptions(options, ['cpus', 'part'], 'poolOptions') as WorkerPlace;
  return poolOfSize(name, workerPlace(grant, place, 'poolOptions').cpus.size);
}

/** For a pool of `size` Workers. @throws ERR_INVALID_OPTION */
export function poolOfSize<Package extends keyof PoolOptions>(
  name: Package,
  size: number,
): PoolOptions[Package] {
  if (!Object.hasOwn(OPTIONS, name)) invalidOption('name', name, `one of ${Object.keys(OPTIONS).join(', ')}`);
  return OPTIONS[name](size);
}
