// Spawning: starts programs on the CPUs of a grant.
import type { ChildProcess, ForkOptions, SpawnOptions, StdioOptions } from 'node:child_process';
import { invalidOption } from '../base/check-options.js';
import { NumalignError } from '../base/errors.js';
import type { NodeSet } from '../machine/cpu-set.js';
import { bornOn } from '../threads/birth.js';
import type { GrantedThreads } from '../threads/granted-threads.js';
import { preferNodes } from '../threads/memory.js';
import type { ChildVariables } from './child-variables.js';
import { threadCounts } from './thread-counts.js';

/** The options that {@link Grant.spawn}, {@link Grant.fork} and {@link Grant.exec} add to Node's. */
export interface ChildOptions {
  /**
   * `auto`: sets variables such as OMP_NUM_THREADS and GOMAXPROCS, unless the environment has them, so
   * that libraries start as many threads as the child has CPUs. See docs/threads.md.
   * @default nothing is set
   */
  threadCounts?: 'auto';
}

/** The options of {@link Grant.spawn}. */
export interface GrantSpawnOptions extends SpawnOptions, ChildOptions {}

/** The options of {@link Grant.fork}. */
export interface GrantForkOptions extends ForkOptions, ChildOptions {}

/** What a child of a grant gets. */
export interface Inheritance {
  /** The variables of its environment that lead to the grant. */
  readonly variables: ChildVariables;
  /** The lock of the grant's owner if that is a process: an open descriptor to pass on. */
  readonly ownerFd: number | undefined;
  /** The number of the grant's CPUs that it can use. */
  readonly parallelism: number;
}

/** As in Node, options may replace omitted arguments. */
export type Arguments<Options> = readonly string[] | Options | null | undefined;

/** @throws like {@link Grant.spawn} */
export function spawnWith(
  inheritance: Inheritance,
  command: string,
  ...rest: [Arguments<GrantSpawnOptions>, GrantSpawnOptions | undefined]
): ChildProcess {
  const { args, counts, options } = parse(rest);
  return process.getBuiltinModule('node:child_process').spawn(command, args, {
    ...options,
    env: environmentOf(inheritance, options.env, counts),
    stdio: withLock(options.stdio, inheritance.ownerFd),
  });
}

/** @throws like {@link Grant.fork} */
export function forkWith(
  inheritance: Inheritance,
  modulePath: string | URL,
  ...rest: [Arguments<GrantForkOptions>, GrantForkOptions | undefined]
): ChildProcess {
  const { args, counts, options } = parse(rest);
  return process.getBuiltinModule('node:child_process').fork(modulePath, args, {
    ...options,
    env: environmentOf(inheritance, options.env, counts),
    stdio: forkStreams(options, inheritance.ownerFd),
  });
}

// Node itself rejects invalid values.
function parse<Options extends ChildOptions>([first, second]: [Arguments<Options>, Options | undefined]) {
  const isOptions = typeof first === 'object' && first !== null && !Array.isArray(first);
  const [args, chosenOptions] = isOptions
    ? [[], first as Options]
    : [(first ?? []) as readonly string[], second];
  const { threadCounts: counts, ...options } = chosenOptions ?? ({} as Options);
  return { args, counts, options };
}

/** The streams that node:child_process.fork derives from its options, followed by the lock. */
export function forkStreams(
  { silent = false, stdio = silent ? 'pipe' : 'inherit' }: Pick<ForkOptions, 'silent' | 'stdio'>,
  ownerFd: number | undefined,
): Streams {
  return withLock(Array.isArray(stdio) ? stdio : [stdio, stdio, stdio, 'ipc'], ownerFd);
}

type Streams = Exclude<StdioOptions, string>;

// The lock follows the standard streams, which default to pipes.
function withLock(stdio: StdioOptions = 'pipe', ownerFd: number | undefined): Streams {
  const streams: Streams = Array.isArray(stdio) ? [...stdio] : [stdio, stdio, stdio];
  while (streams.length < 3) streams.push('pipe');
  if (ownerFd !== undefined) streams.push(ownerFd);
  return streams;
}

/** The environment of a child. @throws ERR_INVALID_OPTION for `counts` other than 'auto' */
export function environmentOf(
  { variables, parallelism }: Inheritance,
  environment: NodeJS.ProcessEnv | null | undefined,
  counts: unknown,
): NodeJS.ProcessEnv {
  const env = environment ?? process.env;
  if (counts !== undefined && counts !== 'auto') invalidOption('threadCounts', counts, "'auto', or left out");
  return { ...env, ...(counts === 'auto' && threadCounts(parallelism, env)), ...variables };
}

// Starts a child whose memory prefers these nodes.
function near(nodes: NodeSet, start: () => ChildProcess): ChildProcess {
  const restore = preferNodes(nodes);
  try {
    return start();
  } finally {
    restore();
  }
}

/**
 * Runs `start`, which starts a child on the grant's CPUs, with its memory nodes preferred. If
 * threads cannot start in the cgroup from outside, as with cgroup v2, the child moves there after
 * its start.
 */
export function startOn(
  { cpus, preferredNodes, group, learnAskedMasks }: GrantedThreads,
  start: () => ChildProcess,
): ChildProcess {
  learnAskedMasks();
  if (!group || group.canStartInside) return bornOn({ preferredNodes, group }, cpus, start).value;
  const child = near(preferredNodes, start);
  try {
    if (child.pid !== undefined) group.attach(child.pid);
  } catch (error) {
    // It may already have ended.
    if (error instanceof NumalignError && error.errnoName === 'ESRCH') return child;
    child.kill('SIGKILL');
    throw error;
  }
  return child;
}
