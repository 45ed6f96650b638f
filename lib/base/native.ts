// Loads the addon and types its surface. Nothing else in lib/ touches it but the files that give it meaning.
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { NumalignError } from './errors.js';
import { type WiredFunctions, wired } from './wire.js';

/** A set as it crosses the boundary: 32-bit words, lowest ids first, the last word not zero. */
export type Words = Uint32Array;

declare const topologyHandle: unique symbol;
/** An immutable Topology of the core, opaque to JavaScript. */
export interface TopologyHandle {
  readonly [topologyHandle]: true;
}

/** Columns of one CPU in {@link TopologyDescription.cpus}. */
export const CPU_COLUMNS = ['cpu', 'core', 'package', 'die', 'l3', 'node'] as const;
/** Columns of one pool of hugepages in {@link TopologyDescription.hugepages}. */
export const HUGEPAGE_COLUMNS = ['node', 'bytes', 'count'] as const;

/** Columns of one thread in {@link NativeThreads.rows}; `role` counts through {@link THREAD_ROLES}. */
export const THREAD_COLUMNS = [
  ...(['pid', 'tid', 'startNs', 'processor', 'role'] as const),
  ...(['runTimeNs', 'runDelayNs', 'timeslices', 'voluntarySwitches', 'involuntarySwitches', 'migrations'] as const),
] as const;
/** Columns of one CPU in the rows of {@link Native.cpuActivity}. */
export const CPU_ACTIVITY_COLUMNS = [
  ...(['cpu', 'interrupts', 'deviceInterrupts', 'softirqs'] as const),
  ...(['busyNs', 'idleNs', 'stealNs', 'frequencyKHz'] as const),
] as const;
/** Columns of one task in {@link NativeTasks.rows}; those from `isKernel` to `isConfined` are 0 or 1. */
export const TASK_COLUMNS = [
  ...(['pid', 'tid', 'startNs', 'processor'] as const),
  ...(['isKernel', 'isBound', 'isRunnable', 'isConfined', 'runTimeNs'] as const),
] as const;

/** Threads that may run on some CPUs, a row each. NaN is what cannot be read. */
export interface NativeThreads {
  rows: Float64Array;
  /** Where each may run. */
  masks: Words[];
  /** When they were looked at, in nanoseconds since boot, as `startNs` counts. */
  bootNs: number;
}

/** Tasks that are on some CPUs, or were last, or are confined to them; a row each. */
export interface NativeTasks {
  rows: Float64Array;
  commands: string[];
  /** Of their processes and all above them: pid, parent, pid, parent, and so on. */
  parents: Float64Array;
  /** Whether no process of the machine is hidden. */
  seesAll: boolean;
}

/** A PCI device as it crosses the boundary. Empty texts and lists stand for what is unknown or not there. */
export interface NativePciDevice {
  id: string;
  class: number;
  vendor: number;
  device: number;
  driver: string;
  names: string[];
  nodes: number[];
  parent: string;
}

/** A machine in flat arrays. `memory` and `distances` go by `nodes`, which is ascending in what the addon returns. */
export interface TopologyDescription {
  cpus: Int32Array;
  nodes: Int32Array;
  memory: Float64Array;
  /** Square, or empty where unknown. */
  distances: Uint32Array;
  hugepages: Float64Array;
  /** By id in what the addon returns. */
  devices: NativePciDevice[];
  possible: Words;
  isolated: Words;
  allowed: Words;
}

export interface NativeMove {
  tid: number;
  before: Words;
  now: Words;
  errno: number;
  /** By {@link Native.undoPin}: what it had chosen before it was pinned. */
  earlier?: Words;
}

export interface NativePinOutcome {
  moved: NativeMove[];
  unmovable: NativeMove[];
}

/** What a thread of this process is, in the order of the core's enumerators. */
export const THREAD_ROLES = ['main', 'worker', 'pool', 'v8', 'other'] as const;
export type ThreadRole = (typeof THREAD_ROLES)[number];

/** A scheduling class by the kernel's numbers. */
export interface NativeScheduling {
  policy: number;
  priority: number;
  nice: number;
  resetOnFork: boolean;
}

/** A NUMA memory policy by the kernel's numbers; several preferred nodes are mode 1 too. */
export interface NativePolicy {
  mode: number;
  flags: number;
  nodes: Words;
}

export interface NativePlacement {
  /** Node, bytes, node, bytes, and so on. */
  byNode: Float64Array;
  absent: number;
  unknown: number;
  source: 'move_pages' | 'numa_maps' | '';
  errno: number;
  /** Of ordinary pages. */
  pageBytes: number;
}

/** The exclusive lock of a folder, held until released or until the environment ends. */
export interface NativeLock {
  release(): void;
}

/** A locked file that says its owner is alive. Must be kept referenced: collecting it drops the lock. */
export interface NativeOwner {
  readonly fd: number;
  write(text: string): void;
  close(): void;
  /** Whether the file still has its name in this folder. */
  isCurrent(folder: NativeFolder): boolean;
}

/** `mode`: permission bits; `links`: how many names it has. */
export interface FoundFile {
  readonly bytes: Buffer;
  readonly user: number;
  readonly mode: number;
  readonly links: number;
}

/** An open folder. Names are of files directly in it; no link is followed. */
export interface NativeFolder {
  child(name: string, create: boolean, mode: number, group: number): NativeFolder;
  owner(): { user: number; group: number; mode: number };
  /** Differs from that of every other folder while this one is open. */
  identity(): string;
  isCurrent(): boolean;
  /** This object stands for another folder from now on. */
  become(folder: NativeFolder): void;
  /** On a file system of memory, which does not outlive a boot. */
  isInMemory(): boolean;
  /** `known`: answered itself where the file has these bytes. */
  read(name: string, known?: Buffer): Buffer | undefined;
  /** The bytes, and what fstat(2) says of the very inode that has them. */
  readFound(name: string): FoundFile | undefined;
  /** This folder; new files in it are writable by nobody but their owner. */
  withOwnFiles(): NativeFolder;
  version(name: string): string | undefined;
  list(): string[];
  remove(name: string): void;
  /** Whatever it is, into another folder of the same file system. */
  move(name: string, to: NativeFolder, newName: string): void;
  /** Whole, but not durably: what a crash of the machine leaves of it is not said. */
  replace(name: string, text: string): void;
  /**
   * `stamp`: nanoseconds of the modification time, 0 to 999,999,999. `lock`: must still be the one of its file (else ESTALE); released once the new file is durable
   * if it `isLast`, after `text` was written to the file `record`. Answers the version of the new file: at once where the folder is in memory, else once the device has it.
   */
  replaceDurably(
    name: string,
    previous: string,
    bytes: Buffer,
    stamp: number,
    lock?: NativeLock,
    isLast?: boolean,
    record?: string,
    text?: string,
  ): string | Promise<string>;
  /** `pastWaiting`: although somebody waits. */
  tryLock(name: string, note: string, pastWaiting?: boolean): NativeLock | undefined;
  waitLock(name: string, note: string, callback: (error?: NumalignError, lock?: NativeLock) => void): number;
  giveUp(request: number): boolean;
  /**
   * A new file in place of any other, locked. Nobody sees half of it, and where it fails nothing has changed. `start`,
   * `length`: the bytes that the lock covers, as /proc/locks shows them; else the whole file.
   */
  createOwner(name: string, text: string, start?: bigint, length?: bigint): NativeOwner;
  isOwnerAlive(name: string): boolean;
}

export interface NativeInotify {
  /** A folder; `mask` as inotify(7) has it. Answers the number of the watch. */
  add(path: string, mask: number): number;
  /** Nothing where the watch has ended with its folder. */
  remove(watch: number): void;
  close(): void;
}

/** A thread whose mask is not its own choice: what it has chosen, what it was given instead, and of what (the kernel leaves out what its cpuset does not have). */
export interface NativeMemberThread {
  tid: number;
  chosen: Words;
  applied: Words;
  asked: Words;
  /** The mask that it had on the CPUs of a grant before the kernel may have reset it. */
  place?: Words;
}

export interface NativeConfinement {
  threads: NativeMemberThread[];
  /** Still on CPUs that they must leave. `errno` 0: the kernel did something else than it was told. */
  stuck: { tid: number; errno: number; cpus: Words }[];
  moved: number;
  /** Of a dry run: a thread is to be moved that this process may not move. */
  isRefused: boolean;
}

/** What the addon does, as the rest of the package sees it. */
export interface Native {
  setErrorClass(errorClass: typeof NumalignError): void;

  parseCpuList(text: string): Words;
  parseNodeList(text: string): Words;
  formatCpuList(words: Words): string;
  formatNodeList(words: Words): string;

  createTopology(description: TopologyDescription): TopologyHandle;
  describeTopology(topology: TopologyHandle): TopologyDescription;
  discoverTopology(source: 'machine' | 'xml' | 'synthetic', text?: string): Promise<TopologyHandle>;
  bestFit(
    topology: TopologyHandle,
    available: Words,
    count: number,
    spread: boolean,
    alignByL3: boolean,
    distributeAcrossNuma: boolean,
    cpuGroupSize: number,
    wholeCores: boolean,
  ): Words;

  /** A family of hints; lib/hints.ts reads it. */
  cpuHints(topology: TopologyHandle, available: Words, reusable: Words, count: number, alignBySocket: boolean): Words;
  /**
   * A family of hints for all types of memory of one request. `amounts`: for each type [request, free by node..., allocatable by node...];
   * `groups`: by node the nodes that share its allocations, [low, high]; `reusable`: rows of [low, high, bytes by type...];
   * `must`: the nodes that every hint includes, [low, high].
   */
  memoryHints(
    nodes: number,
    types: number,
    amounts: readonly number[],
    groups: readonly number[],
    reusable: readonly number[],
    must: readonly number[],
  ): Words;
  /** A family of hints. `devices`: all that are registered, in rows of [low, high, available | reusable << 1]. */
  deviceHints(nodes: number, request: number, devices: readonly number[]): Words;
  wholeCores(topology: TopologyHandle, cpus: Words): Words;
  isHintFamily(words: Words, nodes: number): boolean;
  /** [low, high, any | preferred << 1 | admitted << 2 | exact << 3] */
  mergeHints(families: readonly Words[], nodes: number, policy: number, distances: Words | undefined): number[];

  /** `tid`: 0 the calling thread, -1 every thread of the process. An empty `grant` is not remembered. */
  pin(tid: number, cpus: Words, grant: string, owner: string, replace: boolean): NativePinOutcome;
  /** @throws ERR_ALREADY_PINNED where a thread is pinned for another grant */
  checkNotPinned(tid: number, grant: string): void;
  undoPin(grant: string, sharedPool: Words): NativePinOutcome;
  /** Moves the threads that are pinned for a grant to the CPUs that it has now. */
  followGrant(grant: string, cpus: Words): NativePinOutcome;
  /** Has the threads that are pinned for a grant wait in the shared pool: none of its CPUs is online. {@link followGrant} brings them back. */
  parkGrant(grant: string, sharedPool: Words): NativePinOutcome;
  /** Threads of this process that are to run on a grant, by their ids. */
  grantThreads(grant: string): number[];
  /** Of these the threads that may run on other CPUs than `cpus`, which are the grant's, and where they should be (`now`). Changes nothing. */
  strayThreads(grant: string, cpus: Words): NativeMove[];
  /** Puts threads that are to run on a grant back to where they were put. */
  recallThreads(grant: string, cpus: Words, tids: readonly number[]): NativePinOutcome;
  affinity(tid: number): Words;
  /** What to tell the kernel for the calling thread to have again what it has, wherever its cpuset cuts that. */
  askedMask(): Words;
  /** Tells it. False where its cpuset has none of these CPUs. */
  ask(cpus: Words): boolean;
  /** The calling thread has chosen what could not be asked for: it has all of its cpuset until {@link settleChoices}. `all`: what to ask for then. */
  askLater(chosen: Words, all: Words): void;
  /**
   * Threads that are pinned for a grant are about to leave its cgroup: asks for what they have chosen. The kernel refuses a mask of which the cgroup that they go to has nothing, but from Linux
   * 6.2 on it keeps one that it has taken.
   */
  askChoices(grant: string): void;
  /**
   * Threads get what they have chosen, and could not have when they left a grant, because their cpuset had none of it. `limit`: the CPUs that it has now. Answers how many; with
   * `dryRun` it changes nothing.
   */
  settleChoices(limit: Words, dryRun: boolean): number;
  /** Before threads are moved into a cgroup, which changes their masks: the next pin, placement or undoing goes by what they were. */
  rememberMasks(): void;
  /**
   * Has it known, for pins from now on, what the threads that run on no grant have chosen. `limit`: the CPUs of their cpuset, none where these are not known: a
   * thread that may run on all of them has chosen nothing, that is `all`. `known`: what numalign has made of masks of these threads.
   */
  learnChoices(limit: Words, all: Words, known: readonly NativeMemberThread[]): void;
  /** What is known of the choices of threads that are pinned for no grant, with what the kernel was told last. */
  choices(): NativeMemberThread[];
  /** Keeps the threads of a process off `taken` by their masks; undefined where there is no such process. */
  confineMember(
    pid: number,
    known: readonly NativeMemberThread[],
    taken: Words,
    pool: Words,
    grants: readonly Words[],
    unpinned: readonly number[],
    onlyNarrow: boolean,
    dryRun: boolean,
    limit: Words,
  ): NativeConfinement | undefined;
  /** Whether this process may change the mask of a thread. Changes nothing. */
  mayMove(tid: number): boolean;
  /** Read anew. */
  onlineCpus(): Words;
  /** A list of CPUs that the kernel shows in a file; undefined where there is none. */
  readCpuList(path: string): Words | undefined;
  threadId(): number;
  threads(): { tid: number; role: ThreadRole; cpus: Words }[];

  /**
   * Pins every thread of the process for a grant; `cpus` (undefined: left alone), `oneEach` and the outcomes go by {@link THREAD_ROLES}.
   */
  place(
    cpus: readonly (Words | undefined)[],
    oneEach: readonly (boolean | undefined)[],
    granted: Words,
    grant: string,
    owner: string,
    replace: boolean,
  ): NativePinOutcome[];
  /** Threads that the calling thread starts in `action` are born on these CPUs. `tid`: of the only one, 0 where unknown. */
  bornOn<T>(cpus: Words, action: () => T): { value: T; tid: number };
  /** The calling thread has started threads on CPUs of a grant; `tid`: a Worker, or 0. */
  adopt(tid: number, granted: Words, grant: string, owner: string): void;
  /** Of a Worker that has ended. */
  forgetThread(tid: number): void;
  /** The CPU of these that the fewest threads have to themselves. */
  leastUsedCpu(cpus: Words): number;
  /** Queues as many jobs, which wait for each other. The last to be settled knows all threads. */
  probePool(threads: number, timeoutMs: number): Promise<{ tids: number[]; complete: boolean }>[];
  scheduling(tid: number): NativeScheduling;
  /** `priority`: 0 for an ordinary thread. Refused where a thread (`starved`) could run nowhere but on CPUs of real-time threads. */
  schedule(
    tid: number,
    priority: number,
    nice: number,
    grant: string,
  ): NativeScheduling | { starved: number; cpus: Words };

  /** Of these processes: their threads that may run on these CPUs, `confined` to them or not. */
  threadActivity(pids: Int32Array, cpus: Words, confined: boolean): NativeThreads;
  /** A row for each CPU; NaN is what cannot be read. */
  cpuActivity(cpus: Words, withInterrupts: boolean): Float64Array;
  /** Looks at every process that /proc shows. */
  scanTasks(cpus: Words): NativeTasks;

  /** Of the calling thread. */
  memoryPolicy(): NativePolicy;
  setMemoryPolicy(mode: number, flags: number, nodes: Words): void;
  /** How many pages of this process could not be moved. */
  migratePages(from: Words, to: Words): number;
  /** Of these bytes, of this process, or of the process with this id. */
  memoryPlacement(what: Uint8Array | undefined | number): NativePlacement;
  /** `hugepageBytes`: 0 for ordinary pages. `strict`: on these nodes or an error. */
  nodeBuffer(bytes: number, hugepageBytes: number, nodes: Words, strict: boolean): Buffer;

  /** Whether the owner's environment has ended while threads of this process were pinned for its grants. */
  isOrphanedOwner(uuid: string): boolean;
  closeOrphanedOwner(uuid: string): void;

  /** Undefined where the file has none of this name, or it is hidden from this process. */
  extendedAttribute(path: string, name: string): string | undefined;

  Folder: { open(path: string, create: boolean, mode: number, group: number): NativeFolder };
  /** inotify(7) on this environment's event loop, which it does not keep alive. */
  Inotify: new (
    onEvent: (watch: number, mask: number, name: string) => void,
  ) => NativeInotify;
}

type Addon = Omit<Native, keyof WiredFunctions> & WiredFunctions;

function load(): Addon {
  // Bundlers leave nothing of it in CommonJS.
  const here = import.meta.url as string | undefined;
  if (here === undefined) throw notLoaded(bundledText('another file'));
  const require = createRequire(here);
  // From a file of dist/ or, in tests, from this one.
  const packageFolder = fileURLToPath(new URL(here.endsWith('.ts') ? '../..' : '..', here));
  // What node-gyp-build finds first, without the time that it takes to load.
  const compiled = join(packageFolder, 'build/Release/numalign.node');
  try {
    return (existsSync(compiled) ? require(compiled) : require('node-gyp-build')(packageFolder)) as Addon;
  } catch (cause) {
    throw notLoaded(whyNotLoaded(fileURLToPath(here), packageFolder, cause as NodeJS.ErrnoException), cause);
  }
}

function notLoaded(message: string, cause?: unknown): NumalignError {
  return new NumalignError('ERR_ADDON_MISSING', message, { cause });
}

function bundledText(file: string): string {
  return `numalign was bundled into ${file}, but its native addon cannot be: have the bundler leave numalign where it is installed (esbuild --external:numalign; \`external\` of Rollup, rolldown and Vite; \`externals\` of webpack)`;
}

function isNumalign(folder: string): boolean {
  try {
    return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).name === 'numalign';
  } catch {
    return false;
  }
}

function whyNotLoaded(file: string, folder: string, { code, message }: NodeJS.ErrnoException): string {
  const [reason] = message.split('\n');
  if (code === 'ERR_DLOPEN_DISABLED') {
    const isPermissionModel = (process as { permission?: unknown }).permission !== undefined;
    return `Node may not load the native addon of numalign: start it ${isPermissionModel ? 'with --allow-addons' : 'without --no-addons'}`;
  }
  // Under the permission model package.json may be closed too.
  if (code === 'ERR_ACCESS_DENIED')
    return `Node may not read the native addon of numalign: start it with --allow-fs-read=${folder}* as well`;
  if (!isNumalign(folder)) return bundledText(file);
  if (code === 'MODULE_NOT_FOUND')
    return `the native addon of numalign cannot be looked for: ${reason}; install numalign again, with its dependencies`;
  if (code === 'ERR_DLOPEN_FAILED')
    return `the native addon of numalign cannot be loaded: ${reason}; run \`npm rebuild numalign\` (${NEEDS})`;
  return `the native addon of numalign is not built for this machine; run \`npm rebuild numalign\` (${NEEDS})`;
}

const NEEDS = 'it needs: apt-get install libhwloc-dev pkg-config g++ make python3';

// By the addon, of which an environment has one, however often this module is evaluated there: it knows one wire.
const WIRED = Symbol.for('numalign.wired');

function withWire(addon: Addon & { [WIRED]?: ReturnType<typeof wired> }): Native {
  addon[WIRED] ??= wired(addon);
  return { ...addon, ...addon[WIRED] };
}

/** The addon. Every function throws NumalignError, or TypeError where an argument has the wrong shape. */
export const native: Native = withWire(load());
native.setErrorClass(NumalignError);
