// A pod as the state file has it. Pure.
import type { MemoryBlock } from '../../account/booked-memory.js';
import {
  type CgroupIdentity,
  type ContainerAssignment,
  type DeviceAssignment,
  ENFORCEMENT_LEVELS,
  type OwnerRecord,
  type PodAssignment,
  type UpcomingCpus,
} from '../../account/pod-assignment.js';
import { NodeSet } from '../../machine/cpu-set.js';
import { corrupt } from './sealed-json.js';
import {
  cpuSet,
  flag,
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

export function devices(value: unknown, where: string): Record<string, DeviceAssignment[]> {
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
