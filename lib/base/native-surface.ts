// The surface of the addon.
import type { NumalignError } from './errors.js';
import type {
  MergedLines,
  NativeCode,
  NativeFolder,
  NativeInotify,
  NativeNotices,
  NativeOwnerNames,
} from './native-files.js';
import type {
  BestFitCall,
  CpuHintsCall,
  DecideCall,
  DeviceHintsCall,
  HintsToMerge,
  ListHintsCall,
  MemoryHintsCall,
  MergeRules,
} from './native-hints.js';
import type {
  NativePciDevice,
  NativeTasks,
  NativeThreads,
  RepackingLimits,
  RepackingTables,
  TopologyDescription,
} from './native-tables.js';
import type {
  AskedMasksCall,
  ConfineMemberCall,
  NativeConfinement,
  NativeDeparture,
  NativeMemberPlan,
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
import type { AnswerReader, TopologyHandle, Words } from './words.js';

/** The program that replaces this process. */
export interface ProgramCall {
  /** A path, or a name to look up in the PATH of `environment`. */
  readonly file: string;
  /** The first is the program's own name. */
  readonly args: readonly string[];
  /** Each `NAME=value`. */
  readonly environment: readonly string[];
  /** Descriptors that the program inherits besides the standard streams. */
  readonly descriptors: readonly number[];
}

/** The functions of the addon, as the rest of the package sees them. */
export interface Native extends NativeCode {
  setErrorClass(errorClass: typeof NumalignError): void;

  /**
   * Merges change lines that follow a generation into one change; without a generation, reads the line
   * of a whole state. Undefined if a line is damaged, or is not as numalign writes it: then only its
   * reader can tell what it says.
   */
  mergeLines(lines: Buffer, generation?: number): MergedLines | undefined;

  /** The CRC-32 of zlib. `before`: that of what stands before. Node's would load all its streams. */
  crc32(bytes: string | Uint8Array, before?: number): number;

  parseCpuList(text: string): Words;
  parseNodeList(text: string): Words;
  formatCpuList(words: Words): string;
  formatNodeList(words: Words): string;

  createTopology(description: TopologyDescription): TopologyHandle;
  describeTopology(topology: TopologyHandle): TopologyDescription;
  /** `withDevices` is for this machine: without, its description has none. */
  discoverTopology(
    source: 'machine' | 'xml' | 'synthetic',
    text: string | undefined,
    withDevices: boolean,
  ): Promise<TopologyHandle>;
  /** The devices of this machine as they are now. */
  readDevices(topology: TopologyHandle): NativePciDevice[];
  bestFit(call: BestFitCall): Words;
  /** See housekeeping_cpus() of the core. */
  housekeepingCpus(topology: TopologyHandle, base: Words, quiet: Words): Words;
  /**
   * See cache_ways() of the core. Takes [all, min_bits, shareable, foreign, base, released], then
   * for each request [ways, current]; returns [rest, most], then the mask of each request.
   */
  cacheWays(question: Words): Words;
  /**
   * See find_repackings() of the core. Returns [all | bounded << 1, then for each move of each
   * proposal its grant and its target].
   */
  findRepackings(tables: RepackingTables, limits: RepackingLimits): Words;

  /** Returns a family of hints: HintFamily::to_words() of the core. */
  cpuHints(call: CpuHintsCall): Words;
  /** Returns a family of hints. */
  memoryHints(call: MemoryHintsCall): Words;
  /** Returns a family of hints. */
  deviceHints(call: DeviceHintsCall): Words;
  wholeCores(topology: TopologyHandle, cpus: Words): Words;
  isHintFamily(words: Words, nodes: number): boolean;
  /**
   * Returns [1 if no hint follows these, else 0; then for each hint with nodes low, high,
   * preferred]. For a family in the form of a list it returns all hints.
   */
  listHints(call: ListHintsCall): Words;
  /** The family with these masks, [low, high] each, not preferred. */
  withoutPreferred(family: Words, masks: readonly number[]): Words;
  /** What answer_merge() of the core writes, at its beginning. */
  mergeHints(asked: HintsToMerge, rules: MergeRules): AnswerReader;
  /** What answer_placement() of the core writes, at its beginning. */
  decide(call: DecideCall): AnswerReader;

  pin(call: PinCall): NativePinOutcome;
  /** @throws ERR_ALREADY_PINNED if a thread is pinned for another grant */
  checkNotPinned(tid: number, grant: string): void;
  undoPin(grant: string, sharedPool: Words): NativeDeparture | undefined;
  /**
   * Undoes the pins of some threads, like {@link undoPin}, for whichever grant they are pinned.
   * `cpus`: the CPUs of the grant.
   */
  shareThreads(grant: string, cpus: Words, tids: readonly number[], sharedPool: Words): NativeDeparture;
  /**
   * Moves the threads that are pinned for a grant (see {@link PinCall.part}) to its present CPUs.
   */
  followGrant(grant: string, part: string, cpus: Words): NativePinOutcome;
  /**
   * Moves the threads that are pinned for a grant to other CPUs while none of the grant's CPUs is
   * online. {@link followGrant} brings them back.
   */
  parkGrant(grant: string, part: string, cpus: Words): NativePinOutcome;
  /** The ids of this process's threads that belong on a grant. */
  grantThreads(grant: string, part: string): number[];
  /**
   * Those of {@link grantThreads} that may run on CPUs outside of `cpus`, which are the grant's,
   * and where they belong (`now`). Changes nothing.
   */
  strayThreads(grant: string, part: string, cpus: Words): NativeMove[];
  /** Puts threads back to their place on the grant. */
  recallThreads(grant: string, part: string, cpus: Words, tids: readonly number[]): NativePinOutcome;
  affinity(tid: number): Words;
  /**
   * The mask to ask the kernel for so that the calling thread gets its present mask again, even if
   * its cpuset cuts off a part of it.
   */
  askedMask(): Words;
  /** What the main thread has chosen: its mask before numalign pinned or clipped it. */
  chosenMask(): Words;
  /** Asks the kernel for this mask. False if the thread's cpuset has none of these CPUs. */
  ask(cpus: Words): boolean;
  /**
   * Notes a choice of the calling thread that its cpuset does not allow now: it has all of its
   * cpuset until {@link settleAskedMasks}. `all`: the mask to ask for until then.
   */
  askLater(choice: Words, all: Words): void;
  /**
   * Asks for the chosen masks of threads that are pinned for a grant and about to leave its cgroup.
   * Later the kernel would refuse a mask that has no CPU of their next cgroup, but from Linux 6.2
   * on it keeps a mask that it has accepted.
   */
  askForMasks(grant: string): void;
  /**
   * Gives threads their choice if their cpuset had none of its CPUs when they left a grant.
   * `limit`: the CPUs that the cpuset has now. Returns the number of threads; with `dryRun` it
   * changes nothing.
   */
  settleAskedMasks(limit: Words, dryRun: boolean): number;
  /**
   * Call it before you move threads into a cgroup, which changes their masks: the next pin,
   * placement or undoing then starts from the masks that they have now. If that fails, call {@link
   * restoreMasks}.
   */
  rememberMasks(): void;
  /** Gives threads the masks that {@link rememberMasks} remembers, and forgets these. */
  restoreMasks(): void;
  /**
   * Records, for later pins, the choices of the threads that run on no grant. `limit`: the CPUs of
   * their cpuset; empty if unknown. A thread that may run on all of them has chosen nothing, and
   * gets `all`. `record`: of this process, which has this name.
   */
  learnAskedMasks(limit: Words, all: Words, process: string, record: string): void;
  /** The known choices of threads that are pinned for no grant, with the mask last requested. */
  choices(): NativeMemberThread[];
  /**
   * The choices of the threads of a process; none if it has ended. `threads`: a record with their
   * masks now, which is only for {@link planMember}; empty without threads. `areFree`: each may use
   * all of its cpuset: the kernel itself then gives it CPUs that come back.
   */
  askedMasks(call: AskedMasksCall): { threads: string; areFree: boolean };
  /** The record of threads of a process with this name. */
  memberRecord(process: string, threads: readonly NativeMemberThread[]): string;
  /** The threads of a record; none if it is not of this process, or damaged. */
  memberThreads(process: string, record: string): NativeMemberThread[];
  /**
   * How to keep the threads of a process off `taken` by their masks; undefined if the process has
   * ended. Changes nothing.
   */
  planMember(call: ConfineMemberCall): NativeMemberPlan | undefined;
  /**
   * Does what the last plan of this environment has found to do; undefined if that was nothing or is
   * of another process, or the process has ended. `keepsUndo`: returns
   * {@link NativeConfinement.putBack}.
   */
  moveMember(pid: number, keepsUndo: boolean): NativeConfinement | undefined;
  /** True if this process may change the mask of a thread. Changes nothing. */
  mayMove(tid: number): boolean;
  /** The kernel's current list; the same array while the list does not change. */
  onlineCpus(): Words;
  /** The list with this index of CPU_LISTS, like {@link onlineCpus}; undefined if there is none. */
  readCpuList(which: number): Words | undefined;
  threadId(): number;
  threads(): { tid: number; role: ThreadRole; cpus: Words }[];

  /** Returns the outcomes in the order of {@link THREAD_ROLES}. */
  place(call: PlaceCall): NativePinOutcome[];
  /**
   * Starts a birth: threads that the calling thread starts until {@link closeBirth} start on these
   * CPUs. Returns the number of open births.
   */
  openBirth(cpus: Words): number;
  /** The id of the only thread that was started since; 0 if unknown. */
  closeBirth(birth: number): number;
  /**
   * Records threads that the calling thread has started on CPUs of a grant; `tid`: a Worker, or 0.
   */
  adopt(tid: number, granted: Words, grant: string, part: string, owner: string): void;
  /** Call it for a Worker that has ended. */
  forgetThread(tid: number): void;
  /** The CPU of these to which the fewest threads are pinned alone. */
  leastUsedCpu(cpus: Words): number;
  /** Queues a job for each thread; the jobs wait for each other. The last to settle has all ids. */
  probePool(threads: number, timeoutMs: number): Promise<{ tids: number[]; complete: boolean }>[];
  scheduling(tid: number): NativeScheduling;
  /** Refuses if a thread (`starved`) could run only on CPUs of real-time threads. */
  schedule(call: ScheduleCall): NativeScheduling | { starved: number; cpus: Words };

  /** The threads of these processes that may run on these CPUs; with `confined`, only there. */
  threadActivity(pids: Int32Array, cpus: Words, confined: boolean): NativeThreads;
  /** A row for each CPU; NaN for a value that cannot be read. */
  cpuActivity(cpus: Words, withInterrupts: boolean, withFrequency: boolean): Float64Array;
  /**
   * Nanoseconds since boot, the number of threads, their rows, and those of the CPUs: all counters, but
   * no roles and frequencies. The threads of these processes that may run only on these CPUs; if there
   * are none, those of this process that may run there.
   */
  beginActivity(pids: Int32Array, cpus: Words): Float64Array;
  /** Looks at every process that /proc shows. */
  scanTasks(cpus: Words): NativeTasks;

  /**
   * Replaces this process by another program, which inherits the attributes of the calling thread.
   * Throws ERR_SYSCALL if the kernel refuses; the process is then unchanged.
   */
  execute(program: ProgramCall): never;
  /** True if /proc shows this process's pid namespace. */
  isProcOurs(): boolean;
  /**
   * Starts a program whose descriptor 3 is the end of a pipe, and waits until it has left another
   * process reading that. Returns the other end, which execve(2) closes. @throws ERR_SYSCALL
   */
  startReaper(file: string, args: readonly string[], environment: readonly string[]): number;
  /** Of version 4, by getrandom(2). @throws ERR_SYSCALL */
  randomUuid(): string;

  /** The memory policy of the calling thread. */
  memoryPolicy(): NativePolicy;
  setMemoryPolicy(mode: number, flags: number, nodes: Words): void;
  /** Returns the number of pages of a process (0: of this one) that could not be moved. */
  migratePages(from: Words, to: Words, pid: number): number;
  /** Where these bytes are, or the memory of this process, or of the process with this id. */
  memoryPlacement(what: Uint8Array | undefined | number): NativePlacement;
  /** `hugepageBytes`: 0 for ordinary pages. `strict`: on these nodes or an error. */
  nodeBuffer(bytes: number, hugepageBytes: number, nodes: Words, strict: boolean): Buffer;
  /** `memory`: a whole buffer of {@link nodeBuffer}. Throws EIO if a part of it has not moved. */
  moveBuffer(memory: Uint8Array, hugepageBytes: number, nodes: Words, strict: boolean): void;

  /**
   * The uuids of owners whose environment has ended while threads of this process were pinned for
   * their grants.
   */
  orphanedOwners(): string[];
  closeOrphanedOwner(uuid: string): void;

  /** Undefined if the file has no attribute of this name, or it is hidden from this process. */
  extendedAttribute(path: string, name: string): string | undefined;

  Folder: { open(path: string, create: boolean, mode: number, group: number): NativeFolder };
  OwnerNames: new (owners: NativeFolder, notes: NativeFolder, path: string) => NativeOwnerNames;
  /** inotify(7) on this environment's event loop. It does not keep the event loop alive. */
  Inotify: new (
    onEvent: (watch: number, mask: number, name: string) => void,
  ) => NativeInotify;
  /**
   * Reports that CPUs have gone offline or come online (uevents, netlink(7)). It does not keep the
   * event loop alive. Throws ERR_SYSCALL if the kernel does not report them.
   */
  CpuEvents: new (
    onEvent: () => void,
  ) => NativeNotices;
}
