// Pinning: puts threads of this process on the CPUs of a grant, and sets the memory policy of the
// calling thread.
import { checkNames, invalidOption } from '../base/check-options.js';
import { NumalignError } from '../base/errors.js';
import { native } from '../base/native.js';
import { option } from '../input/values/option-values.js';
import { type PinResult, pinFor, type Threads } from '../machine/affinity.js';
import { type CpuSet, NodeSet } from '../machine/cpu-set.js';
import { type GrantedThreads, inGroup } from './granted-threads.js';
import {
  checkMemoryMode,
  type MemoryMode,
  type MemoryPinResult,
  MODES_OF_A_THREAD,
  OTHER_THREAD,
  pinMemory,
} from './memory.js';

/** The options of {@link Grant.pin}. */
export interface GrantPinOptions {
  /**
   * Which threads to pin: `process` (all of this process), `current`, or a thread id.
   * @default `process`
   */
  threads?: Threads;
  /**
   * Takes threads over that are pinned for another grant. Otherwise these are ERR_ALREADY_PINNED.
   * @default `false`
   */
  replace?: boolean;
  /**
   * The memory policy of the calling thread, for pages that it touches from now on; threads that it
   * starts later inherit it. `preferred`, `bind`, `interleave` and `weighted-interleave` use the
   * grant's memory nodes. `none` leaves the policy alone. `strict`: as `bind`, and the grant's cgroup is bound to these nodes
   * (cpuset.mems), to which existing pages move; it needs a cgroup. See docs/memory.md.
   * @default `preferred`
   */
  memory?: MemoryMode | 'none' | 'strict';
  /**
   * Moves the existing pages of this process to the grant's memory nodes too, with
   * migrate_pages(2).
   * @default `false`
   */
  migrate?: boolean;
}

/** The options of {@link GrantPart.pin}. */
export interface PartPinOptions extends Pick<GrantPinOptions, 'replace' | 'migrate'> {
  /**
   * Which thread to pin: `current`, or a thread id.
   * @default `current`
   */
  threads?: Exclude<Threads, 'process'>;
  /**
   * As {@link GrantPinOptions.memory}, without `strict`.
   * @default `preferred`
   */
  memory?: MemoryMode | 'none';
}

/** The result of {@link Grant.pin}. */
export interface GrantPinResult extends PinResult {
  /**
   * What became of the memory policy; null with `memory: 'none'`. The CPUs are pinned even if it
   * could not be set.
   */
  readonly memory: MemoryPinResult | null;
}

/** {@link GrantPinOptions}, checked and with defaults. */
export type PinRequest = ReturnType<typeof parsePin>;

/** What a pin needs to know besides its threads. */
interface PinContext {
  /** All CPUs of the grant. */
  readonly cpus: CpuSet;
  /** All nodes of the machine. */
  readonly numaNodes: readonly number[];
  /** Called once threads run on the grant. */
  noteRunning(): void;
}

/** @throws ERR_INVALID_OPTION */
export function parsePartPin(options: PartPinOptions): PinRequest {
  const request = parsePin(options, 'current');
  const { threads, isStrict } = request;
  if (threads === 'process')
    invalidOption('threads', threads, "'current' or a thread id: a part is for some threads of the process");
  if (isStrict) invalidOption('memory', 'strict', `as for a thread: ${MODES_OF_A_THREAD}`);
  return request;
}

/**
 * `usual`: the default threads. `isStrict`: also restrict the memory of everything in the grant's
 * cgroup.
 * @throws ERR_INVALID_OPTION
 */
export function parsePin(options: GrantPinOptions, usual: Threads = 'process') {
  const {
    threads = usual,
    replace = false,
    memory = 'preferred',
    migrate = false,
  } = checkNames(options, ['threads', 'replace', 'memory', 'migrate'], 'pin');
  option.flag(replace, 'replace');
  const isStrict = memory === 'strict';
  const mode = isStrict ? 'bind' : checkMemoryMode(memory);
  if (option.flag(migrate, 'migrate') && mode === 'none')
    invalidOption('migrate', migrate, "false with memory: 'none'");
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
 * cgroup takes the whole process at once, with threads that are just being created.
 * @throws like {@link Grant.pin}
 */
export function pinTo(
  target: GrantedThreads,
  { threads, replace, mode, isStrict, migrate }: PinRequest,
  { cpus, numaNodes, noteRunning }: PinContext,
): GrantPinResult {
  const { grant, part, owner, group, memoryNodes, preferredNodes, learnAskedMasks } = target;
  const result = inGroup({ grant, cpus, group, learnAskedMasks }, [threads], replace, (isWhole) => {
    if (isStrict) group?.memory.restrict(memoryNodes);
    const pinned = pinFor(target.cpus, threads, { grant, part, owner, replace });
    noteRunning();
    return isWhole ? { ...pinned, guaranteed: pinned.unmovable.length === 0 } : pinned;
  });
  if (mode === 'none') return { ...result, memory: null };
  const isOther = typeof threads === 'number' && threads !== native.threadId();
  const from = migrate ? NodeSet.from(numaNodes).difference(memoryNodes) : undefined;
  const nodes = mode === 'preferred' ? preferredNodes : memoryNodes;
  return { ...result, memory: isOther ? OTHER_THREAD : pinMemory({ grant, mode, nodes, from }) };
}
