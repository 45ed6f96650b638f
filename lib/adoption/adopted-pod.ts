// AdoptedPod: the pod on record that an adoption makes, and its comparison with one on record.
// Pure.
import type { MemoryBlock } from '../account/booked-memory.js';
import { deviceKeys } from '../account/held-devices.js';
import {
  type ContainerAssignment,
  type DeviceAssignment,
  JUST_PLACED,
  type PodAssignment,
} from '../account/pod-assignment.js';
import { cpusOf } from '../account/pod-holdings.js';
import type { DeviceResources } from '../decision/devices/device-resources.js';
import type { Question } from '../decision/question.js';
import type { ContainerRequest } from '../input/pods/resource-amounts.js';
import { MILLI } from '../input/values/quantity.js';
import { CpuSet } from '../machine/cpu-set.js';
import type { AdoptionRequest, ContainerHolding } from './adoption-request.js';

/** The owner of a pod, and the devices that are registered. */
export type AdoptionFacts = Pick<Question, 'uid' | 'owner' | 'now' | 'resources'>;

/**
 * The pod of an adoption. numalign has not placed it: it has no hints, the policy `none`, and
 * running containers.
 */
export function adoptedPod(
  { pod, holdings }: AdoptionRequest,
  { uid, owner, now, resources }: AdoptionFacts,
): PodAssignment {
  return {
    uid,
    name: pod.name ?? uid,
    namespace: pod.namespace,
    containers: pod.containers.map((each) => adoptedContainer(each, holdings.get(each.name)!, resources)),
    booking: null,
    policy: 'none',
    scope: 'container',
    options: {},
    owner,
    ...JUST_PLACED,
    admittedAt: now,
    unknown: {},
  };
}

/** A container with the given holdings. Its request is what it asks for, or else what it has. */
export function adoptedContainer(
  { name, kind, requests }: ContainerRequest,
  { cpus, memory, devices, asks }: ContainerHolding,
  resources: DeviceResources = new Map(),
): ContainerAssignment {
  const ids = Object.entries(devices);
  return {
    name,
    kind,
    started: true,
    request: asks ? requests : requestOf(cpus, memory, ids),
    isolation: cpus.isEmpty ? 'host' : 'container',
    cpus,
    held: CpuSet.EMPTY,
    hint: { nodes: null, preferred: false },
    memory,
    devices: Object.fromEntries(
      ids.map(([resource, list]) => [resource, devicesOf(resource, list, resources)]),
    ),
    reusable: { cpus: CpuSet.EMPTY, memory: [], devices: {} },
    unknown: {},
  };
}

function requestOf(
  cpus: CpuSet,
  memory: readonly MemoryBlock[],
  devices: readonly [string, readonly string[]][],
): ContainerRequest['requests'] {
  const amounts: [string, number][] = cpus.isEmpty ? [] : [['cpu', cpus.size * MILLI]];
  const sums = new Map<string, number>();
  for (const { type, bytes } of memory) sums.set(type, bytes + (sums.get(type) ?? 0));
  return Object.fromEntries([...amounts, ...sums, ...devices.map(([name, { length }]) => [name, length])]);
}

function devicesOf(
  resource: string,
  ids: readonly string[],
  resources: DeviceResources,
): readonly DeviceAssignment[] {
  const devices = resources.get(resource)?.devices ?? [];
  return ids.map((id) => ({ id, nodes: devices.find((each) => each.id === id)?.numaNodes ?? null }));
}

/** Whether two pods have the same holdings, container by container. */
export const isSameHolding = (a: PodAssignment, b: PodAssignment) => holdingText(a) === holdingText(b);

/**
 * What a pod holds, as text: all CPUs that it keeps from others, and the holdings of its
 * containers.
 */
export function holdingText(pod: PodAssignment): string {
  const containers = pod.containers.map(({ name, cpus, memory, devices }) => {
    const blocks = memory.map(({ nodes, type, bytes }) => `${bytes} bytes of ${type} on ${nodes}`);
    return `container ${name} CPUs ${cpus} ${blocks.sort()} ${deviceKeys(devices).sort()}`;
  });
  return [`CPUs ${cpusOf(pod)}`, ...containers.sort()].join('; ');
}

/**
 * Sentences about holdings that two containers of a pod share. Later containers may share those of
 * init containers.
 */
export function overlaps({ uid, containers }: PodAssignment): string[] {
  const lasting = containers.filter(({ kind }) => kind !== 'init');
  return lasting.flatMap((container, i) =>
    lasting.slice(i + 1).flatMap((other) => {
      const cpus = container.cpus.intersection(other.cpus);
      const keys = new Set(deviceKeys(other.devices));
      const shared = [
        ...(cpus.isEmpty ? [] : [`CPUs ${cpus}`]),
        ...deviceKeys(container.devices)
          .filter((key) => keys.has(key))
          .map((key) => `device ${key}`),
      ];
      return shared.map(
        (what) => `containers ${container.name} and ${other.name} of pod ${uid} both have ${what}`,
      );
    }),
  );
}
