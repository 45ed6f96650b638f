// Programs that are started on the CPUs of a grant.
import {
  type ChildProcess,
  type ForkOptions,
  fork,
  type SpawnOptions,
  type StdioOptions,
  spawn,
} from 'node:child_process';
import { invalidOption } from '../base/check-options.js';
import { NumalignError } from '../base/errors.js';
import { bornOn } from '../births/birth.js';
import type { NodeSet } from '../machine/cpu-set.js';
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
  readonly variables: ChildVariables;
  /** The lock of the grant's owner, where a process owns it: an open descriptor, to be passed on. */
  readonly ownerFd: number | undefined;
  /** How many CPUs of the grant it can use. */
  readonly parallelism: number;
}

/** As in Node, options may come where no arguments are given. */
export type Arguments<Options> = readonly string[] | Options | null | undefined;

/** @throws as {@link Grant.spawn} */
export function spawnWith(
  inheritance: Inheritance,
  command: string,
  ...given: [Arguments<GrantSpawnOptions>, GrantSpawnOptions | undefined]
): ChildProcess {
  const { args, counts, options } = parse(given);
  const { stdio = 'pipe' } = options;
  return spawn(command, args, {
    ...options,
    env: environmentOf(inheritance, options.env, counts),
    stdio: withLock(Array.isArray(stdio) ? stdio : [stdio, stdio, stdio], inheritance.ownerFd),
  });
}

/** @throws as {@link Grant.fork} */
export function forkWith(
  inheritance: Inheritance,
  modulePath: string | URL,
  ...given: [Arguments<GrantForkOptions>, GrantForkOptions | undefined]
): ChildProcess {
  const { args, counts, options } = parse(given);
  return fork(modulePath, args, {
    ...options,
    env: environmentOf(inheritance, options.env, counts),
    stdio: forkStreams(options, inheritance.ownerFd),
  });
}

// What is wrong Node itself refuses.
function parse<Options extends ChildOptions>([first, second]: [Arguments<Options>, Options | undefined]) {
  const isOptions = typeof first === 'object' && first !== null && !Array.isArray(first);
  const [args, given] = isOptions ? [[], first as Options] : [(first ?? []) as readonly string[], second];
  const { threadCounts: counts, ...options } = given ?? ({} as Options);
  return { args, counts, options };
}

/** The streams that node:child_process.fork makes of its options, and the lock behind them. */
export function forkStreams(
  { silent = false, stdio = silent ? 'pipe' : 'inherit' }: Pick<ForkOptions, 'silent' | 'stdio'>,
  ownerFd: number | undefined,
): Streams {
  return withLock(Array.isArray(stdio) ? stdio : [stdio, stdio, stdio, 'ipc'], ownerFd);
}

type Streams = Exclude<StdioOptions, string>;

// Behind the standard streams, which are pipes where they are left out.
function withLock(stdio: Streams, ownerFd: number | undefined): Streams {
  const streams = [...stdio];
  while (streams.length < 3) streams.push('pipe');
  if (ownerFd !== undefined) streams.push(ownerFd);
  return streams;
}

/** The environment of a child. @throws ERR_INVALID_OPTION for other `counts` than 'auto' */
export function environmentOf(
  { variables, parallelism }: Inheritance,
  given: NodeJS.ProcessEnv | null | undefined,
  counts: unknown,
): NodeJS.ProcessEnv {
  const env = given ?? process.env;
  if (counts !== undefined && counts !== 'auto') invalidOption('threadCounts', counts, "'auto', or left out");
  return { ...env, ...(counts === 'auto' && threadCounts(parallelism, env)), ...variables };
}

// Its memory prefers these nodes.
function near(nodes: NodeSet, start: () => ChildProcess): ChildProcess {
  const restore = preferNodes(nodes);
  try {
    return start();
  } finally {
    restore();
  }
}

/**
 * Has `start` start a child that is born on the CPUs of the grant, and whose memory prefers its
 * nodes. With cgroup v2, where threads are not moved, the child is moved once it is there.
 */
export function startOn(
  { cpus, memoryNodes, group, learnChoices }: GrantedThreads,
  start: () => ChildProcess,
): ChildProcess {
  learnChoices();
  if (!group || group.canStartInside) return bornOn({ memoryNodes, group }, cpus, start).value;
  const child = near(memoryNodes, start);
  try {
    if (child.pid !== undefined) group.attach(child.pid);
  } catch (error) {
    // It may have ended already.
    if (error instanceof NumalignError && error.errnoName === 'ESRCH') return child;
    child.kill('SIGKILL');
    throw error;
  }
  return child;
}
