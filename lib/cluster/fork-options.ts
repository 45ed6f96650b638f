// ForkOptions: what a worker of a cluster is to have, and what is done where it ends.
import { checkOptions, invalidOption } from '../base/check-options.js';
import { ACQUIRE_OPTIONS, type AcquireOptions } from '../input/request.js';
import { option } from '../input/values/option-values.js';

/** How often a worker is forked again. */
export interface RespawnOptions {
  /**
   * After so many ends in a row, each within ten seconds of the worker's start, it is not forked
   * again, and its CPUs are given back. Default: no limit.
   */
  limit?: number;
}

/** What {@link Cluster.fork} takes: what {@link Manager.acquire} does, and what is the worker's. */
export interface ForkOptions extends Omit<AcquireOptions, 'cpu' | 'weight' | 'owner' | 'parts' | 'onTaken'> {
  /** How many exclusive CPUs the worker has. Default: 1. */
  cpu?: number;
  /** Variables of its environment, beside those of this process. */
  env?: Readonly<Record<string, string | undefined>>;
  /**
   * Where the CPUs cannot be had, the worker runs in the shared pool, or where there is none as any
   * process: its `grant` is null and its `refusal` says why. Default: false.
   */
  optional?: boolean;
  /**
   * Whether a worker that dies is forked again, on the same CPUs: not after `disconnect()`, `kill()`
   * or the exit code 0. Default: true.
   */
  respawn?: boolean | RespawnOptions;
}

/** A fork, checked. */
export interface WorkerPlan {
  readonly request: AcquireOptions;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly isOptional: boolean;
  /** How many short lives in a row are too many; 0: it is never forked again. */
  readonly mostShortLives: number;
}

// `owner`: the grant is this process's. `parts` and `onTaken` are about threads of this process. A worker's
// CPUs do not grow and shrink.
const NOT_OF_WORKERS: readonly string[] = ['owner', 'parts', 'onTaken', 'weight'];
const OWN = ['env', 'optional', 'respawn'] as const;
// Only at a fork: what acquires is not loaded before.
const forkOptions = () => [
  ...new Set([...OWN, ...ACQUIRE_OPTIONS.filter((name) => !NOT_OF_WORKERS.includes(name))]),
];

/** What {@link Manager.acquire} is asked for it checks itself. @throws ERR_INVALID_OPTION */
export function parseFork(options: ForkOptions): WorkerPlan {
  checkOptions(options, forkOptions(), 'fork');
  const { env = {}, optional = false, respawn = true, cpu = 1, ...request } = options;
  if (typeof cpu !== 'number') invalidOption('cpu', cpu, 'a whole number of at least 1');
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
