// Placeholder: a pod of the asking process that keeps room for its request, under the request's
// uid. While a grant moves, it holds the memory of the target; afterwards, what the grant has left.
// No container of a real pod can have the names of its containers. Pure.
import type { MemoryBlock } from '../../account/booked-memory.js';
import {
  type ContainerAssignment,
  JUST_PLACED,
  type OwnerRecord,
  type PodAssignment,
} from '../../account/pod-assignment.js';
import { type CpuPool, ISOLATED_OPTION } from '../../account/pod-holdings.js';
import { CpuSet } from '../../machine/cpu-set.js';

/** The container with the room that grants have left for the request. */
const ROOM = '.room';

/** The container with memory for the target of a move, beyond what the moving grant has. */
const TARGET = '.target';

/** The parts of a block that a placeholder can yield from its room. */
export function memoryToYield(
  pod: PodAssignment,
  { nodes, type, bytes }: MemoryBlock,
): readonly MemoryBlock[] {
  let left = bytes;
  return memoryIn(pod, ROOM).flatMap((block) => {
    if (block.type !== type || !block.nodes.every((node) => nodes.includes(node))) return [];
    const share = Math.min(left, block.bytes);
    left -= share;
    return share > 0 ? [{ ...block, bytes: share }] : [];
  });
}

/**
 * The room's blocks on nodes that these blocks would be allocated on with other nodes: a node's
 * memory is allocated in one group at a time.
 */
export const memoryInTheWay = (pod: PodAssignment, blocks: readonly MemoryBlock[]) =>
  memoryIn(pod, ROOM).filter(({ nodes }) =>
    blocks.some(
      (block) => String(block.nodes) !== String(nodes) && block.nodes.some((node) => nodes.includes(node)),
    ),
  );

/** Removes a part of one block from a placeholder's room. */
export function withLessRoom(pod: PodAssignment, part: MemoryBlock): PodAssignment {
  const memory = [...memoryIn(pod, ROOM)];
  const isOne = ({ nodes, type, bytes }: MemoryBlock) =>
    type === part.type && String(nodes) === String(part.nodes) && bytes >= part.bytes;
  const at = memory.findIndex(isOne);
  const bytes = memory[at]!.bytes - part.bytes;
  memory.splice(at, 1, ...(bytes > 0 ? [{ ...part, bytes }] : []));
  return withContainers(pod, roomCpus(pod), memory, memoryIn(pod, TARGET));
}

/** Removes CPUs from a placeholder's room. */
export const withLessCpus = (pod: PodAssignment, cpus: CpuSet) =>
  withTarget(pod, memoryIn(pod, TARGET), cpus);

export const isPlaceholder = ({ containers }: Pick<PodAssignment, 'containers'>): boolean =>
  containers[0]?.name === ROOM;

function containerOf(name: string, cpus: CpuSet, memory: readonly MemoryBlock[]): ContainerAssignment {
  return {
    name,
    kind: 'app',
    started: false,
    request: {},
    cpus,
    memory,
    isolation: cpus.isEmpty ? 'host' : 'container',
    held: CpuSet.EMPTY,
    hint: { nodes: null, preferred: false },
    devices: {},
    reusable: { cpus: CpuSet.EMPTY, memory: [], devices: {} },
    unknown: {},
  };
}

/** An empty placeholder. `pool`: the pool of the CPUs that it will keep. */
export function placeholder(uid: string, owner: OwnerRecord, pool: CpuPool, now: string): PodAssignment {
  return {
    uid,
    name: uid,
    owner,
    admittedAt: now,
    booking: null,
    policy: 'none',
    scope: 'container',
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

/** The CPUs that a placeholder keeps. */
export const roomCpus = ({ containers }: PodAssignment): CpuSet => containers[0]!.cpus;

/** A placeholder that keeps `target` for a moving grant, and gives it `cpus`. */
export const withTarget = (pod: PodAssignment, target: readonly MemoryBlock[], cpus = CpuSet.EMPTY) =>
  withContainers(pod, roomCpus(pod).difference(cpus), memoryIn(pod, ROOM), target);

/** A placeholder after a move: the memory kept for the target becomes room, and so do `cpus`. */
export const withRoom = (pod: PodAssignment, cpus: CpuSet) =>
  withContainers(pod, roomCpus(pod).union(cpus), [...memoryIn(pod, ROOM), ...memoryIn(pod, TARGET)], []);

/** A placeholder that keeps nothing for a moving grant any more. */
export const withoutTarget = (pod: PodAssignment) =>
  withContainers(pod, roomCpus(pod), memoryIn(pod, ROOM), []);

/** True if a placeholder keeps nothing. */
export const isEmpty = (pod: PodAssignment): boolean =>
  pod.containers.every(({ cpus, memory }) => cpus.isEmpty && memory.length === 0);
