// ForkOptions: what a worker of a cluster gets, and what happens when it ends.
import { checkOptions, invalidOption } from '../base/check-options.js';
import { ACQUIRE_OPTIONS, type AcquireOptions } from '../input/request.js';
import { option } from '../input/values/option-values.js';

/** How often a worker is forked again. */
export interface RespawnOptions {
  /**
   * After this many ends in a row, each within ten seconds of the worker's start, it is not forked
   * again, and its CPUs are released. Default: no limit.
   */
  limit?: number;
}

/** Options of {@link Cluster.fork}: those of {@link Manager.acquire}, and those of the worker. */
export interface ForkOptions extends Omit<AcquireOptions, 'cpu' | 'weight' | 'owner' | 'parts' | 'onTaken'> {
  /** The number of the worker's exclusive CPUs. Default: 1. */
  cpu?: number;
  /** Variables for its environment, in addition to those of this process. */
  env?: Readonly<Record<string, string | undefined>>;
  /**
   * True: without CPUs to grant, the worker runs in the shared pool, or without a pool like any
   * process. Its `grant` is then null, and its `refusal` says why. Default: false.
   */
  optional?: boolean;
  /**
   * Whether a worker that dies is forked again on the same CPUs. This does not happen after
   * `disconnect()`, `kill()` or the exit code 0. Default: true.
   */
  respawn?: boolean | RespawnOptions;
}

/** The checked options of a fork. */
export interface WorkerPlan {
  readonly request: AcquireOptions;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly isOptional: boolean;
  /**
   * The number of short lives in a row after which it is not forked again; 0: never fork it again.
   */
  readonly mostShortLives: number;
}

// The grant belongs to this process (`owner`). `parts` and `onTaken` concern threads of this
// process.
const NOT_OF_WORKERS: readonly string[] = ['owner', 'parts', 'onTaken'];
const WORKER_OPTIONS = ['env', 'optional', 'respawn'] as const;
// Built only at a fork, so that the modules for acquiring are not loaded before.
const forkOptions = () => [
  ...new Set([...WORKER_OPTIONS, ...ACQUIRE_OPTIONS.filter((name) => !NOT_OF_WORKERS.includes(name))]),
];

/** {@link Manager.acquire} checks its own options. @throws ERR_INVALID_OPTION */
export function parseFork(options: ForkOptions): WorkerPlan {
  checkOptions(options, forkOptions(), 'fork');
  const { env = {}, optional = false, respawn = true, cpu = 1, ...request } = options;
  return {
    request: { ...request, cpu },
    env: option.object(env, 'env', 'variables by name') as WorkerPlan['env'],
    isOptional: option.flag(optional, 'optional'),
    mostShortLives: parseRespawn(respawn),
  };
}

function parseRespawn(respawn: unknown): number {
  if (typeof respawn !== 'object' || respawn === null)
    return option.flag(respawn, 'respawn') ? Number.POSITIVE_INFINITY : 0;
  const { limit = Number.POSITIVE_INFINITY } = checkOptions(respawn, ['limit'], 'respawn');
  const isCount = limit === Number.POSITIVE_INFINITY || (Number.isInteger(limit) && (limit as number) >= 1);
  return isCount ? (limit as number) : invalidOption('respawn.limit', limit, 'a whole number of at least 1');
}
