// The disk format of the state: Assignments <-> the text of state.json. docs/state-format.md
// describes it. Pure.
import type { Assignments, MachineSettings, NamedCpus } from '../../account/assignments.js';
import { type BookedMemory, bookingFlaw, type MemoryBlock } from '../../account/booked-memory.js';
import { deviceKeys } from '../../account/held-devices.js';
import {
  type CgroupIdentity,
  type ContainerAssignment,
  type CpuIdentity,
  type DeviceAssignment,
  ENFORCEMENT_LEVELS,
  type OwnerRecord,
  type PodAssignment,
  type UpcomingCpus,
} from '../../account/pod-assignment.js';
import { cpusOf } from '../../account/pod-holdings.js';
import type { NumalignError } from '../../base/errors.js';
import { NodeSet } from '../../machine/cpu-set.js';
import { encodeSettings, podsText, textOf } from './pod-text.js';
import { corrupt, type FileFormat, reading, seal, unseal } from './sealed-json.js';
import {
  cpuSet,
  flag,
  generation,
  list,
  listOf,
  nodeIds,
  object,
  oneOf,
  orNull,
  record,
  text,
  unknownOf,
  uuid,
  whole,
} from './shapes.js';

export const STATE_FORMAT: FileFormat = { name: 'numalign-state', version: 1, what: 'the state file' };

/** One generation of the state, as it stands on disk. */
export interface Checkpoint {
  /** Grows by one with every commit and never goes back. */
  readonly generation: number;
  /** /proc/sys/kernel/random/boot_id when it was written: grants do not outlive a reboot. */
  readonly bootId: string;
  /** Wall-clock time in ISO 8601. */
  readonly writtenAt: string;
  readonly assignments: Assignments;
  /**
   * Why nothing may be written in its place: a newer numalign wrote it (ERR_STATE_VERSION), or it
   * was put together and owners live of whom nobody can tell what they hold (ERR_STATE_CORRUPT).
   * Not in the file.
   */
  readonly refusal?: NumalignError;
}

export function encodeCheckpoint({ assignments, refusal: _, ...header }: Checkpoint): string {
  const { unknown, settings, cpus, pods, memory, lastCpus } = assignments;
  const { format: _format, version: _version, ...unknownMembers } = unknown;
  const before = { ...unknownMembers, ...header, settings: encodeSettings(settings) };
  const known = { cpus: textOf(cpus, (rows) => rows), pods: podsText(pods) };
  return seal(STATE_FORMAT, before, known, { memory, lastCpus });
}

function memoryBlocks(value: unknown, where: string): MemoryBlock[] {
  return list(value, where).map((item) => {
    const block = object(item, where);
    return {
      nodes: nodeIds(block.nodes, `${where}.nodes`),
      type: text(block.type, `${where}.type`),
      bytes: whole(block.bytes, `${where}.bytes`),
    };
  });
}

function devices(value: unknown, where: string): Record<string, DeviceAssignment[]> {
  return record(value, where, (items, at) =>
    list(items, at).map((item) => {
      const device = object(item, at);
      return { id: text(device.id, `${at}.id`), nodes: orNull(device.nodes, `${at}.nodes`, nodeIds) };
    }),
  );
}

function decodeContainer(value: unknown, where: string): ContainerAssignment {
  const given = object(value, where);
  const hint = object(given.hint, `${where}.hint`);
  const reusable = object(given.reusable, `${where}.reusable`);
  const known = {
    name: text(given.name, `${where}.name`),
    kind: oneOf(given.kind, `${where}.kind`, ['init', 'sidecar', 'app']),
    started: flag(given.started, `${where}.started`),
    request: record(given.request, `${where}.request`, whole),
    cpus: cpuSet(given.cpus, `${where}.cpus`),
    held: cpuSet(given.held, `${where}.held`),
    hint: {
      nodes: orNull(hint.nodes, `${where}.hint.nodes`, (nodes, at) => NodeSet.from(nodeIds(nodes, at))),
      preferred: flag(hint.preferred, `${where}.hint.preferred`),
    },
    memory: memoryBlocks(given.memory, `${where}.memory`),
    devices: devices(given.devices, `${where}.devices`),
    reusable: {
      cpus: cpuSet(reusable.cpus, `${where}.reusable.cpus`),
      memory: memoryBlocks(reusable.memory, `${where}.reusable.memory`),
      devices: devices(reusable.devices, `${where}.reusable.devices`),
    },
  };
  return { ...known, unknown: unknownOf(given, known) };
}

export function cgroupIdentity(value: unknown, where: string): CgroupIdentity {
  const { path, device, inode, namespace } = object(value, where);
  return {
    path: text(path, `${where}.path`),
    device: text(device, `${where}.device`),
    inode: text(inode, `${where}.inode`),
    namespace: text(namespace, `${where}.namespace`),
  };
}

function decodeOwner(value: unknown, where: string): OwnerRecord {
  const given = object(value, where);
  const known = {
    kind: oneOf(given.kind, `${where}.kind`, ['process', 'cgroup', 'persistent']),
    uuid: uuid(given.uuid, `${where}.uuid`),
    pid: orNull(given.pid, `${where}.pid`, whole),
    command: orNull(given.command, `${where}.command`, text),
    cgroup: orNull(given.cgroup ?? null, `${where}.cgroup`, cgroupIdentity),
  };
  if (known.kind === 'cgroup' && known.cgroup === null) corrupt(`${where} has no cgroup`, given);
  return { ...known, unknown: unknownOf(given, known) };
}

function upcomingCpus(value: unknown, where: string): UpcomingCpus {
  const { container, cpus, held, by } = object(value, where);
  return {
    container: text(container, `${where}.container`),
    cpus: cpuSet(cpus, `${where}.cpus`),
    held: cpuSet(held, `${where}.held`),
    by: uuid(by, `${where}.by`),
  };
}

export function decodePod(value: unknown, where: string): PodAssignment {
  const given = object(value, where);
  const enforcement = object(given.enforcement, `${where}.enforcement`);
  const known = {
    uid: text(given.uid, `${where}.uid`),
    name: text(given.name, `${where}.name`),
    namespace: orNull(given.namespace ?? null, `${where}.namespace`, text) ?? undefined,
    containers: listOf(given.containers, `${where}.containers`, decodeContainer),
    policy: text(given.policy, `${where}.policy`),
    scope: text(given.scope, `${where}.scope`),
    options: record(given.options, `${where}.options`, flag),
    owner: decodeOwner(given.owner, `${where}.owner`),
    enforcement: {
      level: oneOf(enforcement.level, `${where}.enforcement.level`, ENFORCEMENT_LEVELS),
      target: orNull(enforcement.target, `${where}.enforcement.target`, text),
    },
    upcoming: orNull(given.upcoming ?? null, `${where}.upcoming`, upcomingCpus),
    transfer: orNull(given.transfer ?? null, `${where}.transfer`, text),
    formerOwner: orNull(given.formerOwner ?? null, `${where}.formerOwner`, uuid),
    admittedAt: text(given.admittedAt, `${where}.admittedAt`),
  };
  return { ...known, unknown: unknownOf(given, known) };
}

// Files of the first versions have none, and no memory in their pods.
function bookedMemory(value: unknown = {}, where: string): BookedMemory {
  const byNode = record(value, where, (types, at) => record(types, at, whole));
  for (const node of Object.keys(byNode)) nodeIds([Number(node)], where);
  return byNode;
}

function lastCpus(value: unknown = [], where: string): NamedCpus[] {
  return listOf(value, where, (item, at) => {
    const { name, cpus } = object(item, at);
    return { name: text(name, `${at}.name`), cpus: cpuSet(cpus, `${at}.cpus`) };
  });
}

export function decodeSettings(value: unknown): MachineSettings {
  const given = object(value, 'settings');
  const known = {
    managedCPUs: orNull(given.managedCPUs, 'settings.managedCPUs', cpuSet),
    reservedSystemCPUs: cpuSet(given.reservedSystemCPUs, 'settings.reservedSystemCPUs'),
    strictCPUReservation: flag(given.strictCPUReservation, 'settings.strictCPUReservation'),
    isolatedCPUs: orNull(given.isolatedCPUs ?? null, 'settings.isolatedCPUs', cpuSet),
    reservedMemory: bookedMemory(given.reservedMemory, 'settings.reservedMemory'),
    cgroupRoot: orNull(given.cgroupRoot ?? null, 'settings.cgroupRoot', text),
    simulated: flag(given.simulated, 'settings.simulated'),
  };
  return { ...known, unknown: unknownOf(given, known) };
}

/**
 * @throws ERR_STATE_CORRUPT where two pods hold the same, or the memory that is booked is not what
 *   pods have
 */
export function checkHoldings({ pods, memory }: Pick<Assignments, 'pods' | 'memory'>): void {
  const clash = clashOf(pods);
  if (clash)
    corrupt(`${clash.what} is held by both ${clash.pods.map(({ uid }) => uid).join(' and ')}`, clash.what);
  const flaw = bookingFlaw(memory, pods);
  if (flaw !== undefined) corrupt(flaw, memory);
}

function decodeIdentity(value: unknown, where: string): CpuIdentity {
  const row = list(value, where).map((cell) => whole(cell, where));
  if (row.length !== 4) corrupt(`${where} is not [cpu, core, package, node]`, value);
  return row as unknown as CpuIdentity;
}

/** Something that two pods hold, which numalign never wrote. */
export interface Clash {
  /** Such as `CPU 3`. */
  readonly what: string;
  readonly pods: readonly [PodAssignment, PodAssignment];
}

function clashIn<T>(
  pods: readonly PodAssignment[],
  heldBy: (pod: PodAssignment) => Iterable<T>,
  nameOf: (held: T) => string,
): Clash | undefined {
  const holder = new Map<T, PodAssignment>();
  for (const pod of pods) {
    for (const held of new Set(heldBy(pod))) {
      const other = holder.get(held);
      if (other) return { what: nameOf(held), pods: [other, pod] };
      holder.set(held, pod);
    }
  }
  return undefined;
}

/** The first CPU or device that two pods hold. */
export function clashOf(pods: readonly PodAssignment[]): Clash | undefined {
  const keys = ({ containers }: PodAssignment) => containers.flatMap(({ devices }) => deviceKeys(devices));
  return clashIn(pods, cpusOf, (cpu) => `CPU ${cpu}`) ?? clashIn(pods, keys, (key) => `device ${key}`);
}

/**
 * Reads a state file. Of one that a newer numalign wrote, what is known here, with a `refusal`.
 * @throws ERR_STATE_CORRUPT where the checksum or any field is wrong, ERR_STATE_VERSION where
 *   nothing of a newer file can be made out
 */
export function decodeCheckpoint(bytes: Buffer): Checkpoint {
  return reading(STATE_FORMAT, () => {
    const { members: given, newer } = unseal(STATE_FORMAT, bytes);
    if (!newer) return decodeMembers(given);
    try {
      return { ...decodeMembers(given), refusal: newer };
    } catch {
      throw newer;
    }
  });
}

function decodeMembers(value: unknown): Checkpoint {
  const given = object(value, 'the file');
  const header = {
    generation: generation(given.generation),
    bootId: text(given.bootId, 'bootId'),
    writtenAt: text(given.writtenAt, 'writtenAt'),
  };
  const body = {
    settings: decodeSettings(given.settings),
    cpus: listOf(given.cpus, 'cpus', decodeIdentity),
    pods: listOf(given.pods, 'pods', decodePod),
    memory: bookedMemory(given.memory, 'memory'),
    lastCpus: lastCpus(given.lastCpus, 'lastCpus'),
  };
  checkHoldings(body);
  const known = { format: '', version: 0, checksum: '', ...header, ...body };
  return { ...header, assignments: { ...body, unknown: unknownOf(given, known) } };
}
