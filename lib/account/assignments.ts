// Assignments: who holds what, as an immutable value, and the steps that change it. Pure: no clock,
// no files.
import { CpuSet } from '../machine/cpu-set.js';
import type { TopologyHint } from '../machine/hints.js';
import { PCI_ADDRESS } from '../machine/pci-address.js';
import { type BookedMemory, type MemoryBlock, NOTHING_BOOKED, releaseMemory } from './booked-memory.js';

/** Members of the file that this version does not know; kept when it is rewritten. */
export type UnknownFields = Readonly<Record<string, unknown>>;

/** Recorded once for the machine; see MachineOptions. */
export interface MachineSettings {
  /** null: every online CPU. */
  readonly managedCPUs: CpuSet | null;
  readonly reservedSystemCPUs: CpuSet;
  readonly strictCPUReservation: boolean;
  /** CPUs that are a pool of their own; null: those that the kernel isolates. */
  readonly isolatedCPUs: CpuSet | null;
  /** Bytes kept for the system by NUMA node and memory type. */
  readonly reservedMemory: BookedMemory;
  /**
   * Below it are the cgroups that numalign makes: a path in the hierarchy of cpusets. null: none
   * are used.
   */
  readonly cgroupRoot: string | null;
  /** The state is of a simulated machine. */
  readonly simulated: boolean;
  readonly unknown: UnknownFields;
}

/** One CPU as it was when the state was written: [cpu, core, package, node]. */
export type CpuIdentity = readonly [cpu: number, core: number, socket: number, node: number];

export interface DeviceAssignment {
  readonly id: string;
  /** null: the device reports no topology. */
  readonly nodes: readonly number[] | null;
}

/** What may be used again by a later container of the pod once this one has ended. */
export interface Reusable {
  readonly cpus: CpuSet;
  readonly memory: readonly MemoryBlock[];
  readonly devices: Readonly<Record<string, readonly DeviceAssignment[]>>;
}

export interface ContainerAssignment {
  readonly name: string;
  readonly kind: 'init' | 'sidecar' | 'app';
  readonly started: boolean;
  /** Resource name to amount, as asked for: `cpu` in millicores, everything else in whole units. */
  readonly request: Readonly<Record<string, number>>;
  /** The CPUs it runs on, exclusively; empty for a container of the shared pool. */
  readonly cpus: CpuSet;
  /** CPUs that are held but not run on (SMT siblings). */
  readonly held: CpuSet;
  readonly hint: TopologyHint;
  readonly memory: readonly MemoryBlock[];
  readonly devices: Readonly<Record<string, readonly DeviceAssignment[]>>;
  readonly reusable: Reusable;
  readonly unknown: UnknownFields;
}

/**
 * A cgroup as an owner: it lives as long as this very folder exists and a process is in it or below
 * it.
 */
export interface CgroupIdentity {
  /** The cgroup's folder, as whoever admitted it sees it. */
  readonly path: string;
  /** The device number of its file system, decimal: the hierarchy that it is in. */
  readonly device: string;
  /**
   * The inode of the folder, decimal: another cgroup that comes under the same path has another.
   */
  readonly inode: string;
  /** The cgroup namespace in which `path` is meant, as /proc/self/ns/cgroup reads. */
  readonly namespace: string;
}

/**
 * Who a pod belongs to. `pid` and `command` are for people: only the lock of owners/<uuid> tells
 * whether a process lives.
 */
export interface OwnerRecord {
  readonly kind: 'process' | 'cgroup' | 'persistent';
  /** Of the owner's file; empty for a persistent owner of the first versions, which has none. */
  readonly uuid: string;
  readonly pid: number | null;
  readonly command: string | null;
  /** Of a cgroup only. */
  readonly cgroup: CgroupIdentity | null;
  readonly unknown: UnknownFields;
}

/** How strongly a grant can be kept from others, the weakest first. */
export const ENFORCEMENT_LEVELS = ['recorded', 'members', 'cpuset', 'partition', 'isolated'] as const;
export type EnforcementLevel = (typeof ENFORCEMENT_LEVELS)[number];

/** CPUs that a container is about to have instead of its own. Until it is done both are held. */
export interface UpcomingCpus {
  readonly container: string;
  readonly cpus: CpuSet;
  readonly held: CpuSet;
  /** The uuid of the process that changes them: once it is dead, the change is off. */
  readonly by: string;
}

export interface PodAssignment {
  /** The grant's id. */
  readonly uid: string;
  readonly name: string;
  /**
   * Of a pod that was admitted; undefined of a grant that was acquired, and in states of the first
   * versions.
   */
  readonly namespace?: string | undefined;
  /** In the order in which they were admitted. */
  readonly containers: readonly ContainerAssignment[];
  readonly policy: string;
  readonly scope: string;
  /** Placement options that were in force, by the kubelet's names. */
  readonly options: Readonly<Record<string, boolean>>;
  readonly owner: OwnerRecord;
  /** `target`: the cgroup or process that it is enforced on, for people. */
  readonly enforcement: { readonly level: EnforcementLevel; readonly target: string | null };
  /** Announced before a resize is carried out. */
  readonly upcoming: UpcomingCpus | null;
  /** Whoever shows this token becomes the owner. */
  readonly transfer: string | null;
  /** The uuid of the owner before, as long as its threads may still be on the CPUs. */
  readonly formerOwner: string | null;
  /** Wall-clock time in ISO 8601. */
  readonly admittedAt: string;
  readonly unknown: UnknownFields;
}

/**
 * The CPUs that the last grant of a name had, so that the next one of that name can have them
 * again.
 */
export interface NamedCpus {
  readonly name: string;
  readonly cpus: CpuSet;
}

/**
 * Of a pod that has just been placed: nobody keeps others off yet but the record, and nothing is
 * about to change.
 */
export const JUST_PLACED = Object.freeze({
  enforcement: Object.freeze({ level: 'recorded', target: null }),
  upcoming: null,
  transfer: null,
  formerOwner: null,
} as const);

export interface Assignments {
  readonly settings: MachineSettings;
  /** The machine's CPUs when the state was last written. */
  readonly cpus: readonly CpuIdentity[];
  readonly pods: readonly PodAssignment[];
  /** What the memory blocks of all pods take from each NUMA node. */
  readonly memory: BookedMemory;
  /** Of grants that have ended, the latest last. */
  readonly lastCpus: readonly NamedCpus[];
  readonly unknown: UnknownFields;
}

export function emptyAssignments(settings: MachineSettings): Assignments {
  return { settings, cpus: [], pods: [], memory: NOTHING_BOOKED, lastCpus: [], unknown: {} };
}

/**
 * Whether threads of a process may be on a pod's CPUs by right: it is its owner, or was and has not
 * left them yet.
 */
export function isHeldBy(
  { owner, formerOwner }: Pick<PodAssignment, 'owner' | 'formerOwner'>,
  uuid: string,
): boolean {
  return owner.uuid === uuid || formerOwner === uuid;
}

/** The CPUs that a pod's containers run on, exclusively. */
export function runningCpus(pod: Pick<PodAssignment, 'containers'>): CpuSet {
  return pod.containers.reduce((cpus, container) => cpus.union(container.cpus), CpuSet.EMPTY);
}

/** All CPUs that a pod has now: running, held, and kept for its later containers. */
export function presentCpus({ containers }: Pick<PodAssignment, 'containers'>): CpuSet {
  let cpus = CpuSet.EMPTY;
  for (const { cpus: running, held, reusable } of containers)
    cpus = cpus.union(running).union(held).union(reusable.cpus);
  return cpus;
}

/** All CPUs that a pod keeps from others: those that it has and those that it is about to have. */
export function cpusOf(pod: Pick<PodAssignment, 'containers' | 'upcoming'>): CpuSet {
  const { upcoming } = pod;
  const present = presentCpus(pod);
  return upcoming === null ? present : present.union(upcoming.cpus).union(upcoming.held);
}

/** All memory that is booked for a pod, a block for each type and set of nodes. */
export function memoryOf({ containers }: Pick<PodAssignment, 'containers'>): readonly MemoryBlock[] {
  const sums = new Map<string, MemoryBlock>();
  for (const { nodes, type, bytes } of containers.flatMap(({ memory }) => memory)) {
    const key = `${type} ${nodes}`;
    if (bytes > 0) sums.set(key, { nodes, type, bytes: bytes + (sums.get(key)?.bytes ?? 0) });
  }
  return [...sums.values()];
}

/**
 * All devices of a pod by resource, each once: later containers may have those of init containers.
 */
export function devicesOf({
  containers,
}: Pick<PodAssignment, 'containers'>): Readonly<Record<string, readonly DeviceAssignment[]>> {
  const all = new Map<string, Map<string, DeviceAssignment>>();
  for (const { devices } of containers) {
    for (const [resource, list] of Object.entries(devices)) {
      const own = all.get(resource) ?? new Map();
      for (const device of list) own.set(device.id, device);
      all.set(resource, own);
    }
  }
  return Object.freeze(Object.fromEntries([...all].map(([resource, own]) => [resource, [...own.values()]])));
}

/**
 * What is asked of one list of pods again and again: by every plan on a state, and more than once
 * by each.
 */
export function oncePerPods<T extends object>(
  find: (pods: readonly PodAssignment[]) => T,
): (pods: readonly PodAssignment[]) => T {
  const found = new WeakMap<readonly PodAssignment[], T>();
  return (pods) => {
    let known = found.get(pods);
    if (!known) {
      known = find(pods);
      found.set(pods, known);
    }
    return known;
  };
}

const cpusOfPods = oncePerPods((pods) => {
  let cpus = CpuSet.EMPTY;
  for (const pod of pods) cpus = cpus.union(cpusOf(pod));
  return cpus;
});

/** Every CPU that somebody holds exclusively. */
export function exclusiveCpus({ pods }: Pick<Assignments, 'pods'>): CpuSet {
  return cpusOfPods(pods);
}

/** What the kernel tells of a machine's CPUs at one moment. */
export interface CpusNow {
  readonly online: CpuSet;
  /** Those that it keeps ordinary work off. */
  readonly isolated: CpuSet;
}

/**
 * Where the exclusive CPUs of a grant come from: CPUs that are shared until granted, or isolated
 * ones.
 */
export type CpuPool = 'ordinary' | 'isolated';

/** The managed CPUs among `online`: what numalign hands out or shares. */
export function universe(settings: MachineSettings, { online }: Pick<CpusNow, 'online'>): CpuSet {
  return settings.managedCPUs === null ? online : settings.managedCPUs.intersection(online);
}

/** The managed CPUs that are isolated, granted or not. Those that are reserved stay so. */
export function isolatedPool(settings: MachineSettings, now: CpusNow): CpuSet {
  const isolated = settings.isolatedCPUs ?? now.isolated;
  return universe(settings, now).intersection(isolated).difference(settings.reservedSystemCPUs);
}

/** Managed CPUs of a pool, granted or not, reserved ones left out. */
export function grantableCpus(settings: MachineSettings, now: CpusNow, pool: CpuPool): CpuSet {
  const isolated = isolatedPool(settings, now);
  if (pool === 'isolated') return isolated;
  return universe(settings, now).difference(settings.reservedSystemCPUs).difference(isolated);
}

/** What a new grant may take of a pool: CPUs that nobody holds, reserved ones left out. */
export function freeCpus(state: Assignments, now: CpusNow, pool: CpuPool = 'ordinary'): CpuSet {
  return grantableCpus(state.settings, now, pool).difference(exclusiveCpus(state));
}

/** Where everything without exclusive CPUs runs. Derived, never stored. */
export function sharedPool(state: Assignments, now: CpusNow): CpuSet {
  const { settings } = state;
  const shared = universe(settings, now)
    .difference(isolatedPool(settings, now))
    .difference(exclusiveCpus(state));
  return settings.strictCPUReservation ? shared.difference(settings.reservedSystemCPUs) : shared;
}

/** What a pod's recorded `options` say of the pool that its CPUs are from. */
export const ISOLATED_OPTION = 'isolated-cpus';

/** The pool that a pod's exclusive CPUs are from. */
export function poolOf({ options }: Pick<PodAssignment, 'options'>): CpuPool {
  return options[ISOLATED_OPTION] ? 'isolated' : 'ordinary';
}

/**
 * What tells devices apart: the address of a PCI device whatever the resource is called, else the
 * id and its resource.
 */
export function deviceKey(resource: string, id: string): string {
  return PCI_ADDRESS.test(id) ? id : `${resource} ${id}`;
}

/** The {@link deviceKey}s of devices by resource. */
export function deviceKeys(devices: Readonly<Record<string, readonly DeviceAssignment[]>>): string[] {
  const keys: string[] = [];
  for (const resource of Object.keys(devices))
    for (const { id } of devices[resource]!) keys.push(deviceKey(resource, id));
  return keys;
}

/** The {@link deviceKey}s of all devices that somebody holds. */
export function heldDevices({ pods }: Pick<Assignments, 'pods'>): ReadonlySet<string> {
  return devicesOfPods(pods);
}

const devicesOfPods = oncePerPods((pods) => {
  const held = new Set<string>();
  for (const { containers } of pods) {
    for (const { devices } of containers) for (const key of deviceKeys(devices)) held.add(key);
  }
  return held;
});

function withoutMemory(booked: BookedMemory, containers: readonly ContainerAssignment[]): BookedMemory {
  return containers.flatMap(({ memory }) => memory).reduce(releaseMemory, booked);
}

/** The state with one more pod, and the memory that is booked with it. */
export function addPod(state: Assignments, pod: PodAssignment, memory: BookedMemory): Assignments {
  return { ...state, pods: [...state.pods, pod], memory };
}

/** The state of a machine that was started anew: settings outlive a boot, grants do not. */
export function withoutPods(state: Assignments): Assignments {
  return { ...state, pods: [], memory: NOTHING_BOOKED };
}

/**
 * The state less some pods; what they had is free, and their CPUs are remembered by their names.
 */
export function removePods(state: Assignments, uids: ReadonlySet<string>): Assignments {
  if (uids.size === 0) return state;
  const isGone = ({ uid }: PodAssignment) => uids.has(uid);
  const gone = state.pods.filter(isGone);
  return {
    ...state,
    pods: state.pods.filter((pod) => !isGone(pod)),
    memory: withoutMemory(
      state.memory,
      gone.flatMap(({ containers }) => containers),
    ),
    lastCpus: gone.reduce(rememberCpus, state.lastCpus),
  };
}

// Names that are remembered; the oldest is forgotten first.
const MOST_NAMES = 64;

function rememberCpus(last: readonly NamedCpus[], pod: PodAssignment): readonly NamedCpus[] {
  const { uid, name } = pod;
  const cpus = presentCpus(pod);
  // Nobody comes again under a name that was made up for one grant.
  if (name === uid || cpus.isEmpty) return last;
  return [...last.filter((each) => each.name !== name), { name, cpus }].slice(-MOST_NAMES);
}

/** The state with one pod as it is now; `memory`: what is booked with it. */
export function replacePod(
  state: Assignments,
  pod: PodAssignment,
  memory: BookedMemory = state.memory,
): Assignments {
  return { ...state, pods: state.pods.map((each) => (each.uid === pod.uid ? pod : each)), memory };
}

/**
 * A container has started, and with it every one before: what init containers before it have had of
 * memory is free for other pods. CPUs and devices stay with the pod, as in the kubelet.
 */
export function startContainer(state: Assignments, pod: PodAssignment, name: string): Assignments {
  const at = pod.containers.findIndex((container) => container.name === name);
  const hasEnded = ({ kind }: ContainerAssignment, i: number) => kind === 'init' && i < at;
  const containers = pod.containers.map((container, i) => {
    const started = container.started || i <= at;
    if (!hasEnded(container, i)) return started === container.started ? container : { ...container, started };
    return { ...container, started, memory: [], reusable: { ...container.reusable, memory: [] } };
  });
  return replacePod(
    state,
    { ...pod, containers },
    withoutMemory(state.memory, pod.containers.filter(hasEnded)),
  );
}

export function findPod(state: Assignments, uid: string): PodAssignment | undefined {
  return state.pods.find((pod) => pod.uid === uid);
}
