// The record of a pod in the state file. Pure.
import type { MemoryBlock } from '../../account/booked-memory.js';
import { ENFORCEMENT_LEVELS } from '../../account/levels.js';
import {
  type CgroupIdentity,
  type ContainerAssignment,
  type DeviceAssignment,
  type Elasticity,
  ISOLATIONS,
  type OwnerRecord,
  type PodAmounts,
  type PodAssignment,
  type PodBooking,
  type Reusable,
  type UpcomingCpus,
} from '../../account/pod-assignment.js';
import { CpuSet, NodeSet } from '../../machine/cpu-set.js';
import type { TopologyHint } from '../../machine/hints.js';
import { changeUnderWay, checkTarget, decodeConsent, decodeUpcoming } from './move-section.js';
import { decodeQuietRequest } from './quiet-section.js';
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

export function memoryBlock(value: unknown, where: string): MemoryBlock {
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

const CONTAINER_KINDS = ['init', 'sidecar', 'app'] as const;

const CONTAINER_MEMBERS = 'name kind started request isolation cpus held hint memory devices reusable'.split(
  ' ',
);

function decodeContainer(value: unknown, where: string): ContainerAssignment {
  const fields = object(value, where);
  const cpus = cpuSet(fields.cpus, 'cpus');
  const isolation = fields.isolation ?? (cpus.isEmpty ? 'host' : 'container');
  return {
    name: text(fields.name, 'name'),
    kind: oneOf(fields.kind, 'kind', CONTAINER_KINDS),
    started: flag(fields.started, 'started'),
    request: recordOf(fields.request, 'request', whole),
    isolation: oneOf(isolation, 'isolation', ISOLATIONS),
    cpus,
    held: cpuSet(fields.held, 'held'),
    hint: decodeHint(fields.hint, 'hint'),
    memory: listOf(fields.memory, 'memory', memoryBlock),
    devices: record(fields.devices, 'devices', deviceList),
    reusable: decodeReusable(fields.reusable, 'reusable'),
    unknown: unknownOf(fields, CONTAINER_MEMBERS),
  };
}

export function cgroupIdentity(value: unknown, where: string): CgroupIdentity {
  const { path, device, inode, namespace } = object(value, where);
  return {
    path: text(path, 'cgroup.path'),
    device: text(device, 'cgroup.device'),
    inode: text(inode, 'cgroup.inode'),
    namespace: text(namespace, 'cgroup.namespace'),
  };
}

export const OWNER_KINDS = ['process', 'cgroup', 'persistent'] as const;

const OWNER_MEMBERS = ['kind', 'uuid', 'pid', 'command', 'cgroup'];

export function decodeOwner(value: unknown, where: string): OwnerRecord {
  const fields = object(value, where);
  const owner = {
    kind: oneOf(fields.kind, 'owner.kind', OWNER_KINDS),
    uuid: uuid(fields.uuid, 'owner.uuid'),
    pid: orNull(fields.pid, 'owner.pid', whole),
    command: orNull(fields.command, 'owner.command', text),
    cgroup: orNull(fields.cgroup ?? null, 'owner.cgroup', cgroupIdentity),
    unknown: unknownOf(fields, OWNER_MEMBERS),
  };
  if (owner.kind === 'cgroup' && owner.cgroup === null) corrupt(`${where} has no cgroup`, fields);
  return owner;
}

function decodeEnforcement(value: unknown, where: string): PodAssignment['enforcement'] {
  const { level, fallenFrom, target, memory } = object(value, where);
  return {
    level: oneOf(level, 'enforcement.level', ENFORCEMENT_LEVELS),
    fallenFrom:
      fallenFrom === undefined ? undefined : oneOf(fallenFrom, 'enforcement.fallenFrom', ENFORCEMENT_LEVELS),
    target: orNull(target, 'enforcement.target', text),
    memory: memory === undefined ? undefined : recordOf(memory, 'enforcement.memory', text),
  };
}

const POD_MEMBERS =
  'uid name namespace containers resources booking policy scope options owner mixed elastic quiet movable moves enforcement upcoming transfer formerOwner admittedAt'.split(
    ' ',
  );

type Booked = Pick<PodAssignment, 'booking' | 'containers'>;

// Moves the booking's memory back to the containers; encodePod moved it for older versions.
function decodeBooked(value: unknown, containers: readonly ContainerAssignment[]): Booked {
  if (value === undefined || value === null) return { booking: null, containers };
  const fields = object(value, 'booking');
  const shares = listOf(fields.shares, 'booking.shares', (share, at) => listOf(share, at, memoryBlock));
  const booking: PodBooking = {
    cpus: cpuSet(fields.cpus, 'booking.cpus'),
    held: cpuSet(fields.held, 'booking.held'),
    memory: listOf(fields.memory, 'booking.memory', memoryBlock),
  };
  return {
    booking,
    containers: containers.map((container, i) => {
      const { name, cpus, held, reusable } = container;
      // CPUs outside the booking may belong to other pods.
      if (!cpus.isSubsetOf(booking.cpus) || !held.isSubsetOf(booking.held))
        corrupt(`container ${name} has CPUs ${cpus.union(held)} that are not booked for its pod`, fields);
      return { ...container, memory: shares[i] ?? [], reusable: { ...reusable, cpus: CpuSet.EMPTY } };
    }),
  };
}

function upcomingOf(value: unknown, where: string): UpcomingCpus {
  return decodeUpcoming(value, where, (target, at) => {
    const { booking, containers } = object(target, at);
    return decodeBooked(booking, listOf(containers, `${at}.containers`, decodeContainer));
  });
}

function elasticity(value: unknown, where: string): Elasticity {
  const { min, max, weight } = object(value, where);
  return {
    min: whole(min, 'elastic.min'),
    max: whole(max, 'elastic.max'),
    weight: whole(weight, 'elastic.weight'),
  };
}

function podAmounts(value: unknown, where: string): PodAmounts {
  const { requests, limits } = object(value, where);
  return {
    requests: recordOf(requests, 'resources.requests', whole),
    limits: recordOf(limits, 'resources.limits', whole),
  };
}

export function decodePod(value: unknown, where: string): PodAssignment {
  const fields = object(value, where);
  const booked = decodeBooked(fields.booking, listOf(fields.containers, 'containers', decodeContainer));
  const pod = {
    uid: text(fields.uid, 'uid'),
    name: text(fields.name, 'name'),
    namespace: orNull(fields.namespace ?? null, 'namespace', text) ?? undefined,
    ...booked,
    resources: orNull(fields.resources ?? null, 'resources', podAmounts) ?? undefined,
    policy: text(fields.policy, 'policy'),
    scope: text(fields.scope, 'scope'),
    options: recordOf(fields.options, 'options', flag),
    owner: decodeOwner(fields.owner, 'owner'),
    mixed: orNull(fields.mixed ?? null, 'mixed', whole) ?? undefined,
    elastic: orNull(fields.elastic ?? null, 'elastic', elasticity) ?? undefined,
    quiet: orNull(fields.quiet ?? null, 'quiet', decodeQuietRequest) ?? undefined,
    movable: orNull(fields.movable ?? null, 'movable', decodeConsent) ?? undefined,
    moves: fields.moves === undefined ? undefined : listOf(fields.moves, 'moves', text),
    enforcement: decodeEnforcement(fields.enforcement, 'enforcement'),
    ...changeUnderWay(orNull(fields.upcoming ?? null, 'upcoming', upcomingOf), booked),
    transfer: orNull(fields.transfer ?? null, 'transfer', text),
    formerOwner: orNull(fields.formerOwner ?? null, 'formerOwner', uuid),
    admittedAt: text(fields.admittedAt, 'admittedAt'),
    unknown: unknownOf(fields, POD_MEMBERS),
  };
  checkTarget(pod);
  return pod;
}
