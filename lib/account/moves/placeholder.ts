// Placeholder: a pod of the process that asks for room, under the uid of its request. While grants
// move it has what they are about to have of memory, then what they have left: so nobody else gets
// either. Its containers have names that no container of a pod can have. Pure.
import { CpuSet } from '../../machine/cpu-set.js';
import type { MemoryBlock } from '../booked-memory.js';
import {
  type ContainerAssignment,
  JUST_PLACED,
  type OwnerRecord,
  type PodAssignment,
} from '../pod-assignment.js';
import { type CpuPool, ISOLATED_OPTION } from '../pod-holdings.js';

/** What grants have left for the request. */
const ROOM = '.room';
/** What the grant that moves has beside its own, of memory. */
const TARGET = '.target';

export const isPlaceholder = ({ containers }: Pick<PodAssignment, 'containers'>): boolean =>
  containers[0]?.name === ROOM;

function containerOf(name: string, cpus: CpuSet, memory: readonly MemoryBlock[]): ContainerAssignment {
  return {
    ...{ name, kind: 'app', started: false, request: {}, cpus, memory },
    isolation: cpus.isEmpty ? 'host' : 'container',
    held: CpuSet.EMPTY,
    hint: { nodes: null, preferred: false },
    devices: {},
    reusable: { cpus: CpuSet.EMPTY, memory: [], devices: {} },
    unknown: {},
  };
}

/** One without anything. `pool`: of the CPUs that it will have. */
export function placeholder(uid: string, owner: OwnerRecord, pool: CpuPool, now: string): PodAssignment {
  return {
    ...{ uid, name: uid, owner, admittedAt: now, booking: null, policy: 'none', scope: 'container' },
    containers: [containerOf(ROOM, CpuSet.EMPTY, [])],
    options: pool === 'isolated' ? { [ISOLATED_OPTION]: true } : {},
    ...JUST_PLACED,
    unknown: {},
  };
}

const memoryIn = ({ containers }: PodAssignment, name: string) =>
  containers.find((each) => each.name === name)?.memory ?? [];

const withContainers = (
  pod: PodAssignment,
  cpus: CpuSet,
  memory: readonly MemoryBlock[],
  target: readonly MemoryBlock[],
): PodAssignment => ({
  ...pod,
  containers: [
    containerOf(ROOM, cpus, memory),
    ...(target.length > 0 ? [containerOf(TARGET, CpuSet.EMPTY, target)] : []),
  ],
});

/** The CPUs that it keeps. */
export const roomCpus = ({ containers }: PodAssignment): CpuSet => containers[0]!.cpus;

/** It keeps `target` for a grant that moves, and gives `cpus` up for that. */
export const withTarget = (pod: PodAssignment, target: readonly MemoryBlock[], cpus = CpuSet.EMPTY) =>
  withContainers(pod, roomCpus(pod).difference(cpus), memoryIn(pod, ROOM), target);

/** What the grant that moves has beside its own becomes room; so do `cpus`. */
export const withRoom = (pod: PodAssignment, cpus: CpuSet) =>
  withContainers(pod, roomCpus(pod).union(cpus), [...memoryIn(pod, ROOM), ...memoryIn(pod, TARGET)], []);

/** The grant does not move. */
export const withoutTarget = (pod: PodAssignment) =>
  withContainers(pod, roomCpus(pod), memoryIn(pod, ROOM), []);

/** Whether it keeps nothing. */
export const isEmpty = (pod: PodAssignment): boolean =>
  pod.containers.every(({ cpus, memory }) => cpus.isEmpty && memory.length === 0);
