// Manager: the machine, the state that its users share, and the grants.
import { EventEmitter } from 'node:events';
import { NO_MEMBERS } from './cgroups/shared-members.js';
import { checkOptions, invalidOption } from './check-options.js';
import {
  type Config,
  checkPlacement,
  MACHINE_STATE_DIR,
  type MachineOptions,
  type ManagerOptions,
  parseConfig,
  parseMachineOptions,
} from './config.js';
import type { CpuSet, NodeSet } from './cpu-set.js';
import { checkPreferredAllocation, type DeviceResource, type PreferredAllocation } from './device-resources.js';
import { type DeviceSelection, parseDevices } from './devices.js';
import { NumalignError } from './errors.js';
import { Grant, releaseGrant } from './grant.js';
import type { HintProvider } from './hint-provider.js';
import { HintProviders } from './hint-providers.js';
import type { TopologyHint } from './hints.js';
import {
  applySettings,
  checkKnown,
  checkLeavesPool,
  checkRecorded,
  chosenSettings,
  firstState,
} from './machine-settings.js';
import { type MemoryTable, memoryTables } from './managers/memory-manager.js';
import type { Plan } from './managers/plan.js';
import {
  admit,
  assignmentsOf,
  planFor,
  type Site,
  transact,
  unknownGrant,
  withIdentities,
  withoutDead,
} from './managers/topology-manager.js';
import { takeOver } from './managers/transfer.js';
import { Pod } from './pod.js';
import type { PodSpec } from './pod-request.js';
import {
  type AcquireOptions,
  type AdmitOptions,
  checkAcquirable,
  checkSignal,
  parseAcquire,
  parseAdmit,
} from './request.js';
import {
  type Assignments,
  cpusOf,
  type DeviceAssignment,
  devicesOf,
  type EnforcementLevel,
  findPod,
  freeCpus,
  type MemoryBlock,
  memoryOf,
  type PodAssignment,
  sharedPool,
  universe,
  withoutPods,
} from './state/assignments.js';
import type { BookedMemory } from './state/booked-memory.js';
import type { Checkpoint } from './state/checkpoint.js';
import { difference } from './state/difference.js';
import { Ledger, scopeOf } from './state/ledger.js';
import { MemoryStore } from './state/memory-store.js';
import type { Store } from './state/store.js';
import { discover, type Topology } from './topology.js';

/** What the state says of one grant. */
export interface GrantInfo {
  readonly id: string;
  readonly name: string;
  readonly cpus: CpuSet;
  /** Of the CPUs. */
  readonly numaNodes: NodeSet;
  readonly memory: readonly MemoryBlock[];
  /** By resource. */
  readonly devices: Readonly<Record<string, readonly DeviceAssignment[]>>;
  readonly enforcement: EnforcementLevel;
  readonly owner: {
    readonly kind: 'process' | 'cgroup' | 'persistent';
    readonly pid: number | null;
    readonly command: string | null;
  };
  /** False: the owner is dead, and the next transaction takes the CPUs back. */
  readonly alive: boolean;
  /** The CPUs that it is about to have instead, where a resize is announced; else null. */
  readonly upcoming: CpuSet | null;
  /** Wall-clock time in ISO 8601. */
  readonly admittedAt: string;
}

/** What is told of a grant on record. */
export function grantInfo(pod: PodAssignment, topology: Topology, alive: boolean): GrantInfo {
  const cpus = cpusOf({ ...pod, upcoming: null });
  const { kind, pid, command } = pod.owner;
  return {
    id: pod.uid,
    name: pod.name,
    cpus,
    numaNodes: topology.nodesOf(cpus),
    memory: memoryOf(pod),
    devices: devicesOf(pod),
    enforcement: pod.enforcement.level,
    owner: { kind, pid, command },
    alive,
    upcoming: pod.upcoming?.cpus ?? null,
    admittedAt: pod.admittedAt,
  };
}

/** The machine's agreed settings in force. */
export interface Settings {
  readonly managedCPUs: CpuSet;
  readonly reservedSystemCPUs: CpuSet;
  readonly strictCPUReservation: boolean;
  /** Bytes by NUMA node and memory type. */
  readonly reservedMemory: BookedMemory;
}

/** What has changed between two looks at the state, perhaps in several steps. */
export interface StateChange {
  /** The generation that was seen last, and the one now. */
  readonly before: number;
  readonly generation: number;
  readonly added: readonly GrantInfo[];
  readonly removed: readonly GrantInfo[];
  /** A resize is told twice: when it is announced (`after.upcoming`) and when it is done. */
  readonly changed: readonly { readonly before: GrantInfo; readonly after: GrantInfo }[];
  /** The machine's settings, where they have changed; else null. */
  readonly settings: Settings | null;
  /** As it is now. */
  readonly sharedPool: CpuSet;
}

/** Events of a {@link Manager}, by name. */
export interface ManagerEvents {
  change: [change: StateChange];
  /** The state cannot be read, or what dead owners had not be taken back. Only told where somebody listens. */
  error: [error: Error];
}

/** What {@link Manager.registerDevices} takes beside the devices. */
export interface DeviceOptions {
  preferredAllocation?: PreferredAllocation;
}

// Of every emitter.
interface ListenerEvents {
  newListener: [event: string | symbol];
  removeListener: [event: string | symbol];
}

// How often a manager that watches looks for dead owners, at most.
const DEATHS_MS = 250;

/**
 * Made by {@link openManager}. Emits `change` within milliseconds of anybody's commit, with all that has changed since the last; while somebody listens, it watches
 * the folder (inotify(7)), keeps the process alive, and takes back what dead owners had within a second.
 */
export class Manager extends EventEmitter<ManagerEvents & ListenerEvents> {
  readonly topology: Topology;
  /** `machine`: speaks for the whole machine. `private`: only for those who share the folder. `memory`: only for this object. */
  readonly scope: 'machine' | 'private' | 'memory';
  /** Empty where nothing is kept on disk. */
  readonly stateDir: string;
  readonly #config: Config;
  readonly #ledger: Store;
  readonly #resources: Map<string, DeviceResource>;
  readonly #providers = new HintProviders();
  #closed = false;
  #stopWatch: (() => void) | undefined;
  // What the listeners were told last.
  #seen: Checkpoint | undefined;
  #isReclaiming = false;
  #nextReclaim = 0;

  /** Use {@link openManager}. */
  constructor(config: Config, topology: Topology, ledger: Store, resources: Map<string, DeviceResource>) {
    super();
    this.#config = config;
    this.#resources = resources;
    this.#ledger = ledger;
    this.topology = topology;
    this.scope = ledger.scope;
    this.stateDir = ledger.scope === 'memory' ? '' : ledger.path;
    // Told before the listener is added.
    this.on('newListener', (event) => {
      if (event === 'change') this.#startWatching();
    });
    this.on('removeListener', (event) => {
      if (event === 'change' && this.listenerCount('change') === 0) this.#stopWatching();
    });
  }

  #startWatching(): void {
    this.#checkOpen();
    if (this.#stopWatch) return;
    this.#seen = this.#ledger.read();
    this.#stopWatch = this.#ledger.watch(() => this.#look());
  }

  #stopWatching(): void {
    this.#stopWatch?.();
    this.#stopWatch = undefined;
  }

  #look(): void {
    if (!this.#stopWatch) return;
    try {
      const now = this.#ledger.read();
      const before = this.#seen;
      this.#seen = now;
      if (before && now && before.generation !== now.generation) this.emit('change', this.#changeSince(before, now));
      if (now) this.#reclaim(now.assignments.pods);
    } catch (error) {
      this.#tellError(error);
    }
  }

  #changeSince(before: Checkpoint, now: Checkpoint): StateChange {
    const { added, removed, changed, haveSettingsChanged } = difference(before.assignments, now.assignments);
    return Object.freeze({
      before: before.generation,
      generation: now.generation,
      added: added.map((pod) => this.#info(pod)),
      removed: removed.map((pod) => this.#info(pod)),
      changed: changed.map((each) => ({ before: this.#info(each.before), after: this.#info(each.after) })),
      settings: haveSettingsChanged ? this.settings : null,
      sharedPool: this.sharedPool,
    });
  }

  // Every manager that watches may try: the first does it, the others then find nothing to do.
  #reclaim(pods: readonly PodAssignment[]): void {
    if (this.#isReclaiming || performance.now() < this.#nextReclaim) return;
    this.#nextReclaim = performance.now() + DEATHS_MS;
    if (this.#ledger.owners.deadPods(pods).length === 0) return;
    this.#isReclaiming = true;
    transact(this.#site, undefined, async (state, commit, recorded) => {
      if (state !== recorded) await commit(state, true);
    })
      .catch((error) => this.#tellError(error))
      .finally(() => {
        this.#isReclaiming = false;
      });
  }

  #tellError(error: unknown): void {
    if (this.listenerCount('error') > 0) this.emit('error', error as Error);
  }

  #checkOpen(): void {
    if (this.#closed) throw new NumalignError('ERR_MANAGER_CLOSED', 'the manager has been closed');
  }

  get #site(): Site {
    this.#checkOpen();
    return siteOf(this.#config, this.topology, this.#ledger, this.#resources, this.#providers);
  }

  #state(): Assignments {
    return assignmentsOf(this.#site, this.#ledger.read());
  }

  /** The generation of the state that the synchronous getters answer for. */
  get generation(): number {
    this.#state();
    return this.#ledger.read()?.generation ?? 0;
  }

  /** CPUs for everything without exclusive ones. Synchronous: a stat, and a read where the state has changed. */
  get sharedPool(): CpuSet {
    return sharedPool(this.#state(), this.topology.cpus);
  }

  /**
   * CPUs that nobody holds and that are not reserved. One grant cannot take all of them where nothing else would be left to share; those of dead
   * owners count as taken until the next transaction.
   */
  get freeCpus(): CpuSet {
    return freeCpus(this.#state(), this.topology.cpus);
  }

  get settings(): Settings {
    const { settings } = this.#state();
    return {
      managedCPUs: universe(settings, this.topology.cpus),
      reservedSystemCPUs: settings.reservedSystemCPUs,
      strictCPUReservation: settings.strictCPUReservation,
      reservedMemory: settings.reservedMemory,
    };
  }

  /** What every NUMA node has of each type of memory, and how much of it is granted. The machine itself keeps no such account. */
  get memory(): readonly MemoryTable[] {
    return memoryTables(this.#state(), this.topology);
  }

  /** All grants on record, those of other processes too. */
  grants(): GrantInfo[] {
    return this.#state().pods.map((pod) => this.#info(pod));
  }

  #info(pod: PodAssignment): GrantInfo {
    return grantInfo(pod, this.topology, this.#ledger.owners.isAlive(pod.owner));
  }

  /**
   * Takes exclusive CPUs for this process: a Guaranteed pod of one container. Remembers them on disk, and returns once that is durable.
   * @throws ERR_INVALID_OPTION; as {@link admit}
   */
  async acquire(options: AcquireOptions): Promise<Grant> {
    const site = this.#site;
    const request = parseAcquire(options, this.#config.placement);
    checkPlacement(request.placement, this.topology);
    checkAcquirable(request, this.#resources.keys(), !this.#providers.isEmpty);
    const { pod, warnings } = await admit(site, request, options.signal);
    return new Grant(site, this.#config.placement, pod, warnings);
  }

  /**
   * Admits a pod as the kubelet would: all its containers get what they ask for, or nothing is changed. Containers of Guaranteed pods with whole CPUs
   * get exclusive ones, everything else runs in the shared pool. A pod that is placed already (by its uid) stays as it is.
   * @throws ERR_INVALID_POD, ERR_INVALID_QUANTITY, ERR_INVALID_OPTION; a rejection is ERR_TOPOLOGY_AFFINITY, ERR_SMT_ALIGNMENT, ERR_INSUFFICIENT_CPUS,
   *   ERR_INSUFFICIENT_MEMORY, ERR_INSUFFICIENT_DEVICES or ERR_SHARED_POOL_EMPTY, with the kubelet's `reason` and an `explanation` in the details; ERR_HINT_PROVIDER, ERR_PREFERRED_ALLOCATION; ERR_POD_CONFLICT where the uid is placed with
   *   another request; ERR_LOCK_TIMEOUT, ERR_STATE_*, ERR_SYSCALL (a full disk, say); the signal's reason.
   */
  async admit(pod: PodSpec, options: AdmitOptions = {}): Promise<Pod> {
    const site = this.#site;
    const request = parseAdmit(pod, options, this.#config.placement);
    checkPlacement(request.placement, this.topology);
    const admission = await admit(site, request, options.signal);
    return new Pod(site, admission);
  }

  /**
   * What {@link admit} would decide now, without doing it: synchronous, nothing is locked or changed. Custom hint providers are asked to allocate, and to
   * release at once, with `dryRun` set.
   * @throws what {@link admit} throws before it decides, and ERR_HINT_PROVIDER
   */
  plan(pod: PodSpec, options: AdmitOptions = {}): Plan & { readonly generation: number } {
    const site = this.#site;
    const request = parseAdmit(pod, options, this.#config.placement);
    checkPlacement(request.placement, this.topology);
    return { ...planFor(site, request), generation: this.#ledger.read()?.generation ?? 0 };
  }

  /** The pod with this uid, whoever admitted it. @throws ERR_UNKNOWN_GRANT */
  pod(uid: string): Pod {
    return new Pod(this.#site, { pod: this.#find(uid), warnings: [], alreadyAdmitted: true });
  }

  /** What the Topology Manager decided for a container when it was admitted. @throws ERR_UNKNOWN_GRANT, ERR_UNKNOWN_CONTAINER */
  getAffinity(podUid: string, containerName: string): TopologyHint {
    return this.pod(podUid).container(containerName).hint;
  }

  /**
   * Has devices take part in every admission of this manager: a list of them, or a pattern that selects some of {@link Topology.devices}. Once more for the same
   * resource, it replaces the list: so a device that has fallen ill is told; the callback stays unless another is given. What is granted stays granted, whatever the list says, and so do devices of resources that
   * this manager does not know.
   * @throws ERR_INVALID_OPTION
   */
  registerDevices(resource: string, selection: DeviceSelection, options: DeviceOptions = {}): void {
    this.#checkOpen();
    const { preferredAllocation } = checkOptions(options, ['preferredAllocation'], 'registerDevices');
    const devices = parseDevices(selection, this.topology, resource);
    const before = this.#resources.get(resource)?.preferredAllocation;
    const callback = checkPreferredAllocation(preferredAllocation) ?? before;
    this.#resources.set(resource, { name: resource, devices, preferredAllocation: callback });
  }

  /**
   * Has a resource of your own take part in every admission of this manager, after numalign's and in the order of registration.
   * @throws ERR_INVALID_OPTION for an object that is no provider, or a name that is taken
   */
  addHintProvider(provider: HintProvider): void {
    this.#site.providers.add(provider);
  }

  /**
   * Acquires, calls `body`, and releases however it ends. Where both fail, the error of `body` is thrown.
   * @throws as {@link acquire} and {@link Grant.release}
   */
  async use<T>(options: AcquireOptions, body: (grant: Grant) => T | Promise<T>): Promise<T> {
    if (typeof body !== 'function') invalidOption('body', body, 'a function');
    const grant = await this.acquire(options);
    let result: T;
    try {
      result = await body(grant);
    } catch (error) {
      // What went wrong first is what the caller must hear of.
      await grant.release().catch(() => {});
      throw error;
    }
    await grant.release();
    return result;
  }

  /** The grant with this id, whoever made it. @throws ERR_UNKNOWN_GRANT */
  grant(id: string): Grant {
    return new Grant(this.#site, this.#config.placement, this.#find(id));
  }

  /**
   * Becomes the owner of a grant that another process hands over (see {@link Grant.transfer}), and returns once its threads have left the CPUs.
   * @throws ERR_UNKNOWN_TRANSFER where the token was used or withdrawn, or the other has ended; ERR_LOCK_TIMEOUT, ERR_STATE_*; the signal's reason, as long as the
   *   grant is the other's
   */
  async takeOver(token: string, options: { signal?: AbortSignal } = {}): Promise<Grant> {
    if (typeof token !== 'string') invalidOption('token', token, 'the token of a transfer');
    const { signal } = checkOptions(options, ['signal'], 'takeOver');
    const site = this.#site;
    return new Grant(site, this.#config.placement, await takeOver(site, token, checkSignal(signal)));
  }

  #find(id: string): PodAssignment {
    const state = this.#state();
    const pod = findPod(state, id);
    if (!pod) throw unknownGrant(id, state, this.#ledger.path);
    return pod;
  }

  /** Releases a grant by its id: one of this process, a persistent one, or one whose owner is dead. @throws ERR_UNKNOWN_GRANT, ERR_OWNER_ALIVE */
  async release(id: string): Promise<void> {
    await releaseGrant(this.#site, this.#find(id));
  }

  /**
   * Changes the machine's settings for all its users. Grants in force are kept, whatever the new settings say.
   * @throws ERR_INVALID_OPTION; ERR_CONFIG_CONFLICT where nothing would be left to share.
   */
  async configure(options: MachineOptions): Promise<Settings> {
    const site = this.#site;
    const given = parseMachineOptions(options);
    checkKnown(given, this.topology);
    await transact(site, undefined, async (state, commit) => {
      const required = chosenSettings(given, this.#config.placement, this.topology, state.settings);
      const settings = applySettings(state.settings, required);
      checkLeavesPool({ ...state, settings }, this.topology);
      await commit({ ...state, settings }, true);
    });
    return this.settings;
  }

  /** Ends the use of this object, and its events. Grants stay as they are. */
  close(): void {
    this.#closed = true;
    this.#stopWatching();
    this.removeAllListeners('change');
    this.removeAllListeners('error');
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

// The first opener records the settings; every later one must agree. Grants of an earlier boot are archived, those of dead owners dropped.
function prepare(site: Site, config: Config, first: Assignments): Promise<void> {
  const { ledger, topology, lockTimeoutMs } = site;
  return ledger.transact({ lockTimeoutMs }, async (checkpoint, commit) => {
    const write = (next: Assignments) => commit(withIdentities(next, topology));
    if (!checkpoint) {
      ledger.checkUnused();
      return write(first);
    }
    const state = checkpoint.assignments;
    checkRecorded(state, config, topology, ledger.path);
    if (!ledger.isOfThisBoot(checkpoint)) {
      await ledger.archive(checkpoint);
      return write(withoutPods(state));
    }
    const alive = withoutDead(site, state);
    if (alive !== state) await write(alive);
    ledger.owners.sweep();
  });
}

// A simulated machine has no say in the real one's folder, and needs none of its own.
function openStore({ stateDir }: Config, topology: Topology): Store {
  if (!topology.isSimulated) return Ledger.open(stateDir ?? MACHINE_STATE_DIR);
  if (stateDir === undefined) return new MemoryStore();
  if (scopeOf(stateDir) !== 'machine') return Ledger.open(stateDir);
  throw new NumalignError(
    'ERR_SIMULATED_MACHINE',
    `a simulated machine cannot use ${stateDir}, which speaks for the real one: set another stateDir, or none`,
    { value: stateDir, valid: 'another folder' },
  );
}

function siteOf(
  { lockTimeoutMs }: Config,
  topology: Topology,
  ledger: Store,
  resources: Site['resources'],
  providers: HintProviders,
): Site {
  return { topology, ledger, members: NO_MEMBERS, resources, providers, lockTimeoutMs };
}

/** The devices among the options. @throws ERR_INVALID_OPTION */
export function deviceResources({ devices }: Config, topology: Topology): Map<string, DeviceResource> {
  return new Map(
    Object.entries(devices).map(([name, selection]) => [
      name,
      { name, devices: parseDevices(selection, topology, name), preferredAllocation: undefined },
    ]),
  );
}

/**
 * Opens the machine: discovers it, opens the state that its processes share, and drops the grants of dead owners. Several managers in one
 * process are allowed and see each other.
 * @throws ERR_INVALID_OPTION; ERR_STATE_FOLDER without access to the folder; ERR_CONFIG_CONFLICT where the recorded machine settings differ from those
 *   given; ERR_STATE_CORRUPT, ERR_STATE_VERSION, ERR_LOCK_TIMEOUT; ERR_SIMULATED_MACHINE.
 */
export async function openManager(options: ManagerOptions = {}): Promise<Manager> {
  const config = parseConfig(options);
  const topology = config.topology ?? (await discover());
  // Before anything is made on disk.
  checkPlacement(config.placement, topology);
  const first = firstState(config, topology);
  const resources = deviceResources(config, topology);
  const ledger = openStore(config, topology);
  await prepare(siteOf(config, topology, ledger, resources, new HintProviders()), config, first);
  return new Manager(config, topology, ledger, resources);
}
