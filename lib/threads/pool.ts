// The threads of libuv's pool: finds them, and puts them on a grant.
import { checkNames } from '../base/check-options.js';
import { textOf } from '../base/errors.js';
import { native } from '../base/native.js';
import { option } from '../input/values/option-values.js';
import { type PinResult, toPinResult } from '../machine/affinity.js';
import type { CpuSet } from '../machine/cpu-set.js';
import { cpusWithin, type GrantedThreads, inGroup, placeByRole } from './granted-threads.js';

const DEFAULT_THREADS = 4;
const MAX_THREADS = 1024;
// Longer than most jobs of a pool take. A longer job makes the probe incomplete.
const TIMEOUT_MS = 1_000;

/** The threads of libuv's pool that {@link probePool} found. */
export interface PoolProbe {
  /** Linux thread ids of the pool's threads that answered. */
  readonly tids: readonly number[];
  /**
   * True if all of them answered. False if one was busy for a second, or if there are fewer than
   * UV_THREADPOOL_SIZE says because it was changed after the pool had started.
   */
  readonly complete: boolean;
}

/** The options of {@link Grant.prewarmPool}. */
export interface PrewarmOptions {
  /**
   * CPUs of the grant for the threads of libuv's pool.
   * @default all CPUs of the grant
   */
  cpus?: CpuSet | string;
  /**
   * Takes threads over that are pinned for another grant. Otherwise these are ERR_ALREADY_PINNED.
   * @default `false`
   */
  replace?: boolean;
}

// libuv uses atoi, and at least 1.
function parseSize(variable: string): number {
  const size = Number.parseInt(variable, 10) || 1;
  return size < 0 ? MAX_THREADS : Math.min(size, MAX_THREADS);
}

// libuv does not report the size. It read the variable when the pool started, before or after the
// program last set it. The greater value finds every thread, or the probe is incomplete.
function poolSize(): number {
  const sizes = [process.env.UV_THREADPOOL_SIZE, initialVariable()].map((text) =>
    text === undefined ? DEFAULT_THREADS : parseSize(text),
  );
  const count = native.threads().filter(({ role }) => role === 'pool').length;
  return Math.max(...sizes, count);
}

// Undefined also if this process has changed its user, and may not read it.
function initialVariable(): string | undefined {
  const name = 'UV_THREADPOOL_SIZE=';
  const entries = textOf('/proc/self/environ')?.split('\0');
  return entries?.find((entry) => entry.startsWith(name))?.slice(name.length);
}

/**
 * Finds the threads of libuv's pool, and starts it if necessary: as many jobs as it has threads
 * wait for each other, for at most a second. Other jobs of the pool wait meanwhile.
 */
export async function probePool(): Promise<PoolProbe> {
  const answers = await Promise.all(native.probePool(poolSize(), TIMEOUT_MS));
  return {
    tids: [...new Set(answers.flatMap(({ tids }) => tids))].sort((a, b) => a - b),
    complete: answers.some(({ complete }) => complete),
  };
}

/** Checks what does not depend on the grant. @throws ERR_INVALID_OPTION */
export function checkPrewarm(options: PrewarmOptions) {
  const { cpus, replace = false } = checkNames(options, ['cpus', 'replace'], 'prewarmPool');
  return { cpus, replace: option.flag(replace, 'replace') };
}

/** Calls `target` again after the wait: the grant may have changed or ended. */
export async function prewarmPool(target: () => GrantedThreads, options: PrewarmOptions): Promise<PinResult> {
  const { cpus, replace } = checkPrewarm(options);
  cpusWithin(target(), 'cpus', cpus);
  const { tids, complete } = await probePool();
  const granted = target();
  const { part, oneToOne } = granted;
  const place = { part, cpus: cpusWithin(granted, 'cpus', cpus), oneEach: oneToOne };
  const outcomes = inGroup(granted, tids, replace, () => placeByRole(granted, { pool: place }, replace));
  return toPinResult(outcomes.pool, !complete);
}
