// The surface of the addon.
import type { NumalignError } from './errors.js';
import type { NativeFolder, NativeInotify, NativeNotices } from './native-files.js';
import type {
  NativeTasks,
  NativeThreads,
  RepackingLimits,
  RepackingTables,
  TopologyDescription,
} from './native-tables.js';
import type {
  ConfineMemberCall,
  MemberChoicesCall,
  NativeConfinement,
  NativeMemberChoice,
  NativeMemberThread,
  NativeMove,
  NativePinOutcome,
  NativePlacement,
  NativePolicy,
  NativeScheduling,
  PinCall,
  PlaceCall,
  ScheduleCall,
  ThreadRole,
} from './native-threads.js';
import type { TopologyHandle, Words } from './words.js';

/** A best fit of `count` CPUs. */
export interface BestFitCall {
  readonly topology: TopologyHandle;
  readonly available: Words;
  /** Only those that are among these too; undefined: all. */
  readonly within?: Words | undefined;
  readonly count: number;
  readonly spread: boolean;
  readonly alignByL3: boolean;
  readonly distributeAcrossNuma: boolean;
  readonly cpuGroupSize: number;
  readonly wholeCores: boolean;
  /** With alignByL3: as of the kubelet v1.34. */
  readonly anyRestInL3: boolean;
}

/** Hints for `count` CPUs. */
export interface CpuHintsCall {
  readonly topology: TopologyHandle;
  readonly available: Words;
  readonly reusable: Words;
  readonly count: number;
  readonly alignBySocket: boolean;
}

/** Hints for all types of memory of one request. */
export interface MemoryHintsCall {
  /** How many there are. */
  readonly nodes: number;
  readonly types: number;
  /** For each type [request, free by node..., allocatable by node...]. */
  readonly amounts: readonly number[];
  /** By node the nodes that share its allocations, [low, high]. */
  readonly groups: readonly number[];
  /** Rows of [low, high, bytes by type...]. */
  readonly reusable: readonly number[];
  /** The nodes that every hint includes, [low, high]. */
  readonly must: readonly number[];
}

/** A part of the hints of a family. */
export interface ListHintsCall {
  readonly family: Words;
  /** The mask after which they come, [low, high]; no nodes: from the first. */
  readonly after: readonly number[];
  readonly limit: number;
  /** True if fewer will do, where finding the next one takes some milliseconds. */
  readonly isBounded: boolean;
}

/** Hints for devices of one resource. */
export interface DeviceHintsCall {
  /** How many there are. */
  readonly nodes: number;
  readonly request: number;
  /** Only sets of NUMA nodes that have devices, as of the kubelet v1.36. */
  readonly onlyNearDevices: boolean;
  /** All that are registered, in rows of [low, high, available | reusable << 1]. */
  readonly devices: readonly number[];
}

/** What the core is asked by for hints, where they need not come back before they are merged. */
export type HintQuestion =
  | { readonly kind: 'cpus'; readonly call: CpuHintsCall }
  /** Counts once for each type. */
  | { readonly kind: 'memory'; readonly call: MemoryHintsCall }
  | { readonly kind: 'devices'; readonly call: DeviceHintsCall };

/** The words of a family of hints. */
export interface PackedHints {
  readonly words: Words;
}

/** A merge of the hints of some resources. */
export interface MergeHintsCall {
  /** Families of hints, and what others are asked by; at most one question for CPUs. */
  readonly hints: readonly (PackedHints | HintQuestion)[];
  /** How many there are. */
  readonly nodes: number;
  /** Counts through TOPOLOGY_MANAGER_POLICIES. */
  readonly policy: number;
  /** Row by row; undefined: they do not count. */
  readonly distances: Words | undefined;
  /** The joint choice of the core; undefined: the merge. */
  readonly joint?: JointCall | undefined;
}

/** The inputs of a joint choice beside the hints. */
export interface JointCall {
  /** The nodes that it is kept to, [low, high]. */
  readonly within: readonly number[];
  /** The free part of everything, by node, as parts of the machine. */
  readonly rooms: readonly number[];
}

/** A program in place of this process. */
export interface ProgramCall {
  /** A path, or a name to be looked for in the PATH of `environment`. */
  readonly file: string;
  /** The first is the program's own name. */
  readonly args: readonly string[];
  /** Each `NAME=value`. */
  readonly environment: readonly string[];
  /** Descriptors that the program inherits beside the standard streams. */
  readonly descriptors: readonly number[];
}

/** The functions of the addon, as the rest of the package sees them. */
export interface Native {
  setErrorClass(errorClass: typeof NumalignError): void;

  parseCpuList(text: string): Words;
  parseNodeList(text: string): Words;
  formatCpuList(words: Words): string;
  formatNodeList(words: Words): string;

  createTopology(description: TopologyDescription): TopologyHandle;
  describeTopology(topology: TopologyHandle): TopologyDescription;
  discoverTopology(source: 'machine' | 'xml' | 'synthetic', text?: string): Promise<TopologyHandle>;
  bestFit(call: BestFitCall): Words;
  /** See housekeeping_cpus() of the core. */
  housekeepingCpus(topology: TopologyHandle, base: Words, quiet: Words): Words;
  /**
   * See cache_ways() of the core. Takes [all, min_bits, shareable, foreign, base, released], then of
   * each request [ways, current]; answers [rest, most], then the mask of each request.
   */
  cacheWays(question: Words): Words;
  /**
   * See find_repackings() of the core: [all | bounded << 1, then for each move of each proposal its
   * grant and its target].
   */
  findRepackings(tables: RepackingTables, limits: RepackingLimits): Words;

  /** A family of hints: HintFamily::to_words() of the core. */
  cpuHints(call: CpuHintsCall): Words;
  /** A family of hints. */
  memoryHints(call: MemoryHintsCall): Words;
  /** A family of hints. */
  deviceHints(call: DeviceHintsCall): Words;
  wholeCores(topology: TopologyHandle, cpus: Words): Words;
  isHintFamily(words: Words, nodes: number): boolean;
  /**
   * [whether no others come after these, then of each hint with nodes low, high, preferred]; all of
   * a family in the form of a list.
   */
  listHints(call: ListHintsCall): Words;
  /** A family in which these masks are not preferred, [low, high] each. */
  withoutPreferred(family: Words, masks: readonly number[]): Words;
  /**
   * [low, high, any | preferred << 1 | admitted << 2 | exact << 3, sets, nearest, tightest], then for
   * each question the length and the words of its family. Good until the next call.
   */
  mergeHints(call: MergeHintsCall): Words;

  pin(call: PinCall): NativePinOutcome;
  /** @throws ERR_ALREADY_PINNED where a thread is pinned for another grant */
  checkNotPinned(tid: number, grant: string): void;
  undoPin(grant: string, sharedPool: Words): NativePinOutcome;
  /**
   * Like {@link undoPin}, of some threads, whichever grant they are pinned for. `cpus`: those of the
   * grant.
   */
  shareThreads(grant: string, cpus: Words, tids: readonly number[], sharedPool: Words): NativePinOutcome;
  /** Moves the threads that are pinned for a grant (see {@link PinCall.part}) to its present CPUs. */
  followGrant(grant: string, part: string, cpus: Words): NativePinOutcome;
  /**
   * Has the threads that are pinned for a grant wait on other CPUs: none of its own is online.
   * {@link followGrant} brings them back.
   */
  parkGrant(grant: string, part: string, cpus: Words): NativePinOutcome;
  /** Threads of this process that are to run on a grant, by their ids. */
  grantThreads(grant: string, part: string): number[];
  /**
   * Of these the threads that may run on other CPUs than `cpus`, which are the grant's, and where
   * they should be (`now`). Changes nothing.
   */
  strayThreads(grant: string, part: string, cpus: Words): NativeMove[];
  /** Puts threads that are to run on a grant back to where they were put. */
  recallThreads(grant: string, part: string, cpus: Words, tids: readonly number[]): NativePinOutcome;
  affinity(tid: number): Words;
  /**
   * What to tell the kernel for the calling thread to have again what it has, wherever its cpuset
   * cuts that.
   */
  askedMask(): Words;
  /** Tells it. False where its cpuset has none of these CPUs. */
  ask(cpus: Words): boolean;
  /**
   * The calling thread has chosen what could not be asked for: it has all of its cpuset until
   * {@link settleChoices}. `all`: what to ask for then.
   */
  askLater(chosen: Words, all: Words): void;
  /**
   * Threads that are pinned for a grant are about to leave its cgroup: asks for what they have
   * chosen. The kernel refuses a mask of which the cgroup that they go to has nothing, but from
   * Linux 6.2 on it keeps one that it has taken.
   */
  askChoices(grant: string): void;
  /**
   * Threads get what they have chosen, and could not have when they left a grant, because their
   * cpuset had none of it. `limit`: the CPUs that it has now. Answers how many; with `dryRun` it
   * changes nothing.
   */
  settleChoices(limit: Words, dryRun: boolean): number;
  /**
   * Before threads are moved into a cgroup, which changes their masks: the next pin, placement or
   * undoing goes by what they were.
   */
  rememberMasks(): void;
  /**
   * Has it known, for pins from now on, what the threads that run on no grant have chosen. `limit`:
   * the CPUs of their cpuset, none where these are not known: a thread that may run on all of them
   * has chosen nothing, that is `all`. `known`: what numalign has made of masks of these threads.
   */
  learnChoices(limit: Words, all: Words, known: readonly NativeMemberThread[]): void;
  /**
   * What is known of the choices of threads that are pinned for no grant, with what the kernel was
   * told last.
   */
  choices(): NativeMemberThread[];
  /** The choices of the threads of a process; none if it has ended. */
  memberChoices(call: MemberChoicesCall): NativeMemberChoice[];
  /**
   * Keeps the threads of a process off `taken` by their masks; undefined where there is no such
   * process.
   */
  confineMember(call: ConfineMemberCall): NativeConfinement | undefined;
  /** True if this process may change the mask of a thread. Changes nothing. */
  mayMove(tid: number): boolean;
  /** The kernel's current list; the same array while the list does not change. */
  onlineCpus(): Words;
  /** Like {@link onlineCpus}, of one of CPU_LISTS; undefined where there is none. */
  readCpuList(which: number): Words | undefined;
  threadId(): number;
  threads(): { tid: number; role: ThreadRole; cpus: Words }[];

  /** The outcomes by {@link THREAD_ROLES}. */
  place(call: PlaceCall): NativePinOutcome[];
  /**
   * Threads that the calling thread starts until {@link closeBirth} are born on these CPUs. Answers
   * how many births are open.
   */
  openBirth(cpus: Words): number;
  /** The id of the only thread that was started since, 0 where unknown. */
  closeBirth(birth: number): number;
  /** The calling thread has started threads on CPUs of a grant; `tid`: a Worker, or 0. */
  adopt(tid: number, granted: Words, grant: string, part: string, owner: string): void;
  /** For a Worker that has ended. */
  forgetThread(tid: number): void;
  /** The CPU of these that the fewest threads have to themselves. */
  leastUsedCpu(cpus: Words): number;
  /** Queues as many jobs, which wait for each other. The last to be settled knows all threads. */
  probePool(threads: number, timeoutMs: number): Promise<{ tids: number[]; complete: boolean }>[];
  scheduling(tid: number): NativeScheduling;
  /**
   * Refused where a thread (`starved`) could run nowhere but on CPUs of real-time threads.
   */
  schedule(call: ScheduleCall): NativeScheduling | { starved: number; cpus: Words };

  /** Of these processes: their threads that may run on these CPUs, `confined` to them or not. */
  threadActivity(pids: Int32Array, cpus: Words, confined: boolean): NativeThreads;
  /** A row for each CPU; NaN is what cannot be read. */
  cpuActivity(cpus: Words, withInterrupts: boolean): Float64Array;
  /** Looks at every process that /proc shows. */
  scanTasks(cpus: Words): NativeTasks;

  /**
   * This process becomes another program, which inherits what the calling thread has. Throws
   * ERR_SYSCALL, errnoName and all, where the kernel refuses: then it is as it was.
   */
  execute(program: ProgramCall): never;

  /** Of the calling thread. */
  memoryPolicy(): NativePolicy;
  setMemoryPolicy(mode: number, flags: number, nodes: Words): void;
  /** How many pages of a process, or with 0 of this one, could not be moved. */
  migratePages(from: Words, to: Words, pid: number): number;
  /** Of these bytes, of this process, or of the process with this id. */
  memoryPlacement(what: Uint8Array | undefined | number): NativePlacement;
  /** `hugepageBytes`: 0 for ordinary pages. `strict`: on these nodes or an error. */
  nodeBuffer(bytes: number, hugepageBytes: number, nodes: Words, strict: boolean): Buffer;
  /** `memory`: all of what {@link nodeBuffer} has given. Throws EIO where not all of it has moved. */
  moveBuffer(memory: Uint8Array, hugepageBytes: number, nodes: Words, strict: boolean): void;

  /**
   * The uuids of owners whose environment has ended while threads of this process were pinned for
   * their grants.
   */
  orphanedOwners(): string[];
  closeOrphanedOwner(uuid: string): void;

  /** Undefined where the file has none of this name, or it is hidden from this process. */
  extendedAttribute(path: string, name: string): string | undefined;

  Folder: { open(path: string, create: boolean, mode: number, group: number): NativeFolder };
  /** inotify(7) on this environment's event loop, which it does not keep alive. */
  Inotify: new (
    onEvent: (watch: number, mask: number, name: string) => void,
  ) => NativeInotify;
  /**
   * CPUs have gone offline or come online (uevents, netlink(7)). Does not keep the event loop alive.
   * ERR_SYSCALL where the kernel does not tell.
   */
  CpuEvents: new (
    onEvent: () => void,
  ) => NativeNotices;
}
