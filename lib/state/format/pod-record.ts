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
import type { Shape } from '../../base/shapes.js';
import { CpuSet } from '../../machine/cpu-set.js';
import type { TopologyHint } from '../../machine/hints.js';
import { changeUnderWay, checkTarget, decodeConsent, decodeUpcoming } from './move-section.js';
import { decodeQuietRequest } from './quiet-section.js';
import { corrupt } from './sealed-json.js';
import {
  cpuSet,
  flag,
  listOf,
  members,
  nodeIds,
  nodeSet,
  nullable,
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

const blockOfAny = members<Omit<MemoryBlock, 'evenBy'>>({ nodes: nodeIds, type: text, bytes: whole });

const memoryBlock: Shape<MemoryBlock> = (value, where) => {
  const block = blockOfAny(value, where);
  const { evenBy } = object(value, where);
  return evenBy === undefined ? block : { ...block, evenBy: Math.max(1, whole(evenBy, 'evenBy')) };
};

export const memoryBlocks: Shape<MemoryBlock[]> = (value, where) => listOf(value, where, memoryBlock);

const device = members<DeviceAssignment>({ id: text, nodes: nullable(nodeIds) });

const deviceList: Shape<DeviceAssignment[]> = (value, where) => listOf(value, where, device);
const deviceLists: Shape<Record<string, DeviceAssignment[]>> = (value, where) =>
  record(value, where, deviceList);

const amounts: Shape<Record<string, number>> = (value, where) => recordOf(value, where, whole);

const decodeHint = members<TopologyHint>({ nodes: nullable(nodeSet), preferred: flag }, 'hint.');

const decodeReusable = members<Reusable>(
  { cpus: cpuSet, memory: memoryBlocks, devices: deviceLists },
  'reusable.',
);

export const CONTAINER_KINDS = ['init', 'sidecar', 'app'] as const;

const CONTAINER_MEMBERS = 'name kind started request isolation cpus held hint memory devices reusable'.split(
  ' ',
);

export function decodeContainer(value: unknown, where: string): ContainerAssignment {
  const fields = object(value, where);
  const cpus = cpuSet(fields.cpus, 'cpus');
  const isolation = fields.isolation ?? (cpus.isEmpty ? 'host' : 'container');
  return {
    name: text(fields.name, 'name'),
    kind: oneOf(fields.kind, 'kind', CONTAINER_KINDS),
    started: flag(fields.started, 'started'),
    request: amounts(fields.request, 'request'),
    cpus,
    held: cpuSet(fields.held, 'held'),
    hint: decodeHint(fields.hint, 'hint'),
    memory: memoryBlocks(fields.memory, 'memory'),
    devices: deviceLists(fields.devices, 'devices'),
    reusable: decodeReusable(fields.reusable, 'reusable'),
    isolation: oneOf(isolation, 'isolation', ISOLATIONS),
    unknown: unknownOf(fields, CONTAINER_MEMBERS),
  };
}

export const cgroupIdentity = members<CgroupIdentity>(
  { path: text, device: text, inode: text, namespace: text },
  'cgroup.',
);

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

const decodeBooking = members<PodBooking>({ cpus: cpuSet, held: cpuSet, memory: memoryBlocks }, 'booking.');

// Moves the booking's memory back to the containers; encodePod moved it for older versions.
function decodeBooked(value: unknown, containers: readonly ContainerAssignment[]): Booked {
  if (value === undefined || value === null) return { booking: null, containers };
  const fields = object(value, 'booking');
  const shares = listOf(fields.shares, 'booking.shares', memoryBlocks);
  const booking = decodeBooking(fields, 'booking');
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

const elasticity = members<Elasticity>({ min: whole, max: whole, weight: whole }, 'elastic.');

const podAmounts = members<PodAmounts>({ requests: amounts, limits: amounts }, 'resources.');

export function decodePod(value: unknown, where: string): PodAssignment {
  const fields = object(value, where);
  const booked = decodeBooked(fields.booking, listOf(fields.containers, 'containers', decodeContainer));
  const change = changeUnderWay(orNull(fields.upcoming ?? null, 'upcoming', upcomingOf), booked);
  const pod = {
    uid: text(fields.uid, 'uid'),
    name: text(fields.name, 'name'),
    namespace: orNull(fields.namespace ?? null, 'namespace', text) ?? undefined,
    containers: booked.containers,
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
    upcoming: change.upcoming,
    transfer: orNull(fields.transfer ?? null, 'transfer', text),
    formerOwner: orNull(fields.formerOwner ?? null, 'formerOwner', uuid),
    admittedAt: text(fields.admittedAt, 'admittedAt'),
    booking: booked.booking,
    unknown: unknownOf(fields, POD_MEMBERS),
  };
  const moving = change.former ? { ...pod, former: change.former } : pod;
  checkTarget(moving);
  return moving;
}
