// Pinning: puts threads of this process on the CPUs of a grant, and sets the memory policy of the
// calling thread.
import { checkOptions, invalidOption } from '../base/check-options.js';
import { NumalignError } from '../base/errors.js';
import { native } from '../base/native.js';
import { type PinResult, pinFor, type Threads } from '../machine/affinity.js';
import { type CpuSet, NodeSet } from '../machine/cpu-set.js';
import { type GrantedThreads, inGroup } from './granted-threads.js';
import { type MemoryPinResult, OTHER_THREAD, pinMemory } from './memory.js';
import { checkMemoryMode, type MemoryMode } from './memory-mode.js';

export interface GrantPinOptions {
  /** The threads to pin; default: every thread of this process. */
  threads?: Threads;
  /**
   * Take over threads that are pinned for another grant, instead of throwing ERR_ALREADY_PINNED.
   */
  replace?: boolean;
  /**
   * Where memory comes from that the calling thread touches from now on. Default: `preferred`, from
   * the grant's memory nodes. Other threads keep their policies, but threads that this one starts
   * later inherit its own. `none`: leaves the policy as it is. `strict`: like `bind`, and all
   * memory of everything in the grant's cgroup comes only from these nodes (cpuset.mems). Pages on
   * other nodes move there.
   */
  memory?: MemoryMode | 'none' | 'strict';
  /** Also move memory that this process already has on other nodes to the grant's memory nodes. */
  migrate?: boolean;
}

/** Options of {@link GrantPart.pin}. */
export interface PartPinOptions extends Pick<GrantPinOptions, 'replace' | 'migrate'> {
  /** The thread to pin; default: the calling one. */
  threads?: Exclude<Threads, 'process'>;
  /** Like {@link GrantPinOptions.memory}. */
  memory?: MemoryMode | 'none';
}

export interface GrantPinResult extends PinResult {
  /**
   * What became of the memory policy; null with `memory: 'none'`. The CPUs are pinned even if the
   * policy could not be set.
   */
  readonly memory: MemoryPinResult | null;
}

/** {@link GrantPinOptions}, checked and with defaults. */
export interface PinRequest {
  readonly threads: Threads;
  readonly replace: boolean;
  readonly mode: MemoryMode | 'none';
  /** True if it also restricts the memory of everything in the grant's cgroup. */
  readonly isStrict: boolean;
  readonly migrate: boolean;
}

/** @throws ERR_INVALID_OPTION */
export function parsePartPin(options: PartPinOptions): PinRequest {
  const request = parsePin(options, 'current');
  const { threads, isStrict } = request;
  if (threads === 'process')
    invalidOption('threads', threads, "'current' or a thread id: a part is for some threads of the process");
  if (isStrict)
    invalidOption('memory', 'strict', "as for a thread: 'preferred', 'bind', 'interleave' or 'none'");
  return request;
}

/** `usual`: the default threads. @throws ERR_INVALID_OPTION */
export function parsePin(options: GrantPinOptions, usual: Threads = 'process'): PinRequest {
  const {
    threads = usual,
    replace = false,
    memory = 'preferred',
    migrate = false,
  } = checkOptions(options, ['threads', 'replace', 'memory', 'migrate'], 'pin') as GrantPinOptions;
  if (typeof replace !== 'boolean') invalidOption('replace', replace, 'true or false');
  const isStrict = memory === 'strict';
  const mode = isStrict ? 'bind' : checkMemoryMode(memory);
  if (typeof migrate !== 'boolean') invalidOption('migrate', migrate, 'true or false');
  if (migrate && mode === 'none') invalidOption('migrate', migrate, "false with memory: 'none'");
  return { threads, replace, mode, isStrict, migrate };
}

/** @throws ERR_ISOLATED_NEEDS_PLACEMENT if the kernel does not balance load between the CPUs */
export function checkBalanced({ oneToOne, cpus }: GrantedThreads): void {
  if (!oneToOne) return;
  throw new NumalignError(
    'ERR_ISOLATED_NEEDS_PLACEMENT',
    `the kernel does not balance load between the isolated CPUs ${cpus}: place every thread on one of them with placeThreads()`,
    { value: cpus.toString(), valid: 'placeThreads(), or pin() of single threads' },
  );
}

/**
 * Pins threads, and sets the memory policy of the calling one, if it is among them. A grant's
 * cgroup takes the whole process at once, with threads that are just being created. `cpus`: all
 * CPUs of the grant; `numaNodes`: all nodes of the machine.
 * @throws like {@link Grant.pin}
 */
export function pinTo(
  target: GrantedThreads,
  cpus: CpuSet,
  numaNodes: readonly number[],
  { threads, replace, mode, isStrict, migrate }: PinRequest,
  noteRunning: () => void,
): GrantPinResult {
  const { grant, part, owner, group, memoryNodes, learnChoices } = target;
  const result = inGroup({ grant, cpus, group, learnChoices }, [threads], replace, (isWhole) => {
    if (isStrict) group?.setMemoryNodes(memoryNodes);
    const pinned = pinFor(target.cpus, threads, { grant, part, owner, replace });
    noteRunning();
    return isWhole ? { ...pinned, guaranteed: pinned.unmovable.length === 0 } : pinned;
  });
  if (mode === 'none') return { ...result, memory: null };
  const isOther = typeof threads === 'number' && threads !== native.threadId();
  const from = migrate ? NodeSet.from(numaNodes).difference(memoryNodes) : undefined;
  return { ...result, memory: isOther ? OTHER_THREAD : pinMemory({ grant, mode, nodes: memoryNodes, from }) };
}
