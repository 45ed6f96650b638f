// A pod as the state file has it. Pure.
import type { MemoryBlock } from '../../account/booked-memory.js';
import {
  type CgroupIdentity,
  type ContainerAssignment,
  type DeviceAssignment,
  ENFORCEMENT_LEVELS,
  type OwnerRecord,
  type PodAssignment,
  type Reusable,
  type UpcomingCpus,
} from '../../account/pod-assignment.js';
import { NodeSet } from '../../machine/cpu-set.js';
import type { TopologyHint } from '../../machine/hints.js';
import { corrupt } from './sealed-json.js';
import {
  cpuSet,
  flag,
  listOf,
  nodeIds,
  object,
  oneOf,
  orNull,
  record,
  recordOf,
  text,
  unknownOf,
  uuid,
  whole,
} from './shapes.js';

function memoryBlock(value: unknown, where: string): MemoryBlock {
  const { nodes, type, bytes } = object(value, where);
  return { nodes: nodeIds(nodes, 'nodes'), type: text(type, 'type'), bytes: whole(bytes, 'bytes') };
}

function device(value: unknown, where: string): DeviceAssignment {
  const { id, nodes } = object(value, where);
  return { id: text(id, 'id'), nodes: orNull(nodes, 'nodes', nodeIds) };
}

const deviceList = (value: unknown, where: string) => listOf(value, where, device);

function decodeHint(value: unknown, where: string): TopologyHint {
  const { nodes, preferred } = object(value, where);
  return {
    nodes: nodes === null ? null : NodeSet.from(nodeIds(nodes, 'hint.nodes')),
    preferred: flag(preferred, 'hint.preferred'),
  };
}

function decodeReusable(value: unknown, where: string): Reusable {
  const { cpus, memory, devices } = object(value, where);
  return {
    cpus: cpuSet(cpus, 'reusable.cpus'),
    memory: listOf(memory, 'reusable.memory', memoryBlock),
    devices: record(devices, 'reusable.devices', deviceList),
  };
}

const KINDS = ['init', 'sidecar', 'app'] as const;

function decodeContainer(value: unknown, where: string): ContainerAssignment {
  const given = object(value, where);
  const known = {
    name: text(given.name, 'name'),
    kind: oneOf(given.kind, 'kind', KINDS),
    started: flag(given.started, 'started'),
    request: recordOf(given.request, 'request', whole),
    cpus: cpuSet(given.cpus, 'cpus'),
    held: cpuSet(given.held, 'held'),
    hint: decodeHint(given.hint, 'hint'),
    memory: listOf(given.memory, 'memory', memoryBlock),
    devices: record(given.devices, 'devices', deviceList),
    reusable: decodeReusable(given.reusable, 'reusable'),
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

export const OWNER_KINDS = ['process', 'cgroup', 'persistent'] as const;

function decodeOwner(value: unknown, where: string): OwnerRecord {
  const given = object(value, where);
  const known = {
    kind: oneOf(given.kind, 'owner.kind', OWNER_KINDS),
    uuid: uuid(given.uuid, 'owner.uuid'),
    pid: orNull(given.pid, 'owner.pid', whole),
    command: orNull(given.command, 'owner.command', text),
    cgroup: orNull(given.cgroup ?? null, 'owner.cgroup', cgroupIdentity),
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

function decodeEnforcement(value: unknown, where: string): PodAssignment['enforcement'] {
  const { level, target } = object(value, where);
  return {
    level: oneOf(level, 'enforcement.level', ENFORCEMENT_LEVELS),
    target: orNull(target, 'enforcement.target', text),
  };
}

export function decodePod(value: unknown, where: string): PodAssignment {
  const given = object(value, where);
  const known = {
    uid: text(given.uid, 'uid'),
    name: text(given.name, 'name'),
    namespace: given.namespace == null ? undefined : text(given.namespace, 'namespace'),
    containers: listOf(given.containers, 'containers', decodeContainer),
    policy: text(given.policy, 'policy'),
    scope: text(given.scope, 'scope'),
    options: recordOf(given.options, 'options', flag),
    owner: decodeOwner(given.owner, 'owner'),
    enforcement: decodeEnforcement(given.enforcement, 'enforcement'),
    upcoming: orNull(given.upcoming ?? null, 'upcoming', upcomingCpus),
    transfer: orNull(given.transfer ?? null, 'transfer', text),
    formerOwner: orNull(given.formerOwner ?? null, 'formerOwner', uuid),
    admittedAt: text(given.admittedAt, 'admittedAt'),
  };
  return { ...known, unknown: unknownOf(given, known) };
}
