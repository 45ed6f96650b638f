// ForkOptions: what a worker of a cluster gets, and what happens when it ends.
import { checkOptions, invalidOption } from '../base/check-options.js';
import { ACQUIRE_OPTIONS, type AcquireOptions } from '../input/requests/request-options.js';
import { option } from '../input/values/option-values.js';

/** How often `cluster.fork` replaces a worker that died, see {@link ForkOptions.respawn}. */
export interface RespawnOptions {
  /**
   * Gives up after so many deaths in a row within ten seconds of the start, and releases the CPUs.
   * @default no limit
   */
  limit?: number;
}

/** The options of {@link Cluster.fork}. See docs/cluster.md. */
export interface ForkOptions extends Omit<AcquireOptions, 'cpu' | 'weight' | 'owner' | 'parts' | 'onTaken'> {
  /**
   * How many exclusive CPUs the worker gets.
   * @default 1
   */
  cpu?: number;
  /**
   * Variables to add to the environment of the worker.
   * @default none
   */
  env?: Readonly<Record<string, string | undefined>>;
  /**
   * Runs the worker in the shared pool if there is no room: its `grant` is null, its `refusal` says why.
   * @default `false`
   */
  optional?: boolean;
  /**
   * Forks a worker that dies again, on the same CPUs; not after `disconnect()`, `kill()` or exit code 0.
   * @default `true`
   */
  respawn?: boolean | RespawnOptions;
}

/** The checked options of a fork. */
export type WorkerPlan = ReturnType<typeof parseFork>;

// `owner`: the grant is this process's. `parts` and `onTaken` are about threads of this process. A worker's
// CPUs do not grow and shrink.
const NOT_OF_WORKERS: readonly string[] = ['owner', 'parts', 'onTaken', 'weight'];
const WORKER_OPTIONS = ['env', 'optional', 'respawn'] as const;
// Read at a fork: earlier, it would load the code that acquires.
const forkOptions = () => [
  ...new Set([...WORKER_OPTIONS, ...ACQUIRE_OPTIONS.filter((name) => !NOT_OF_WORKERS.includes(name))]),
];

/** {@link Manager.acquire} checks its own options. @throws ERR_INVALID_OPTION */
export function parseFork(options: ForkOptions) {
  checkOptions(options, forkOptions(), 'fork');
  const { env = {}, optional = false, respawn = true, cpu = 1, ...request } = options;
  if (typeof cpu !== 'number') invalidOption('cpu', cpu, 'a whole number of at least 1');
  return {
    request: { ...request, cpu } as AcquireOptions,
    env: option.object(env, 'env', 'variables by name') as NonNullable<ForkOptions['env']>,
    isOptional: option.flag(optional, 'optional'),
    mostShortLives: parseRespawn(respawn),
  };
}

// The number of short lives in a row after which a worker is not forked again; 0: never fork it again.
function parseRespawn(respawn: unknown): number {
  if (typeof respawn !== 'object' || respawn === null)
    return option.flag(respawn, 'respawn') ? Number.POSITIVE_INFINITY : 0;
  const { limit = Number.POSITIVE_INFINITY } = checkOptions(respawn, ['limit'], 'respawn');
  const isCount = limit === Number.POSITIVE_INFINITY || (Number.isInteger(limit) && (limit as number) >= 1);
  return isCount ? (limit as number) : invalidOption('respawn.limit', limit, 'a whole number of at least 1');
}
