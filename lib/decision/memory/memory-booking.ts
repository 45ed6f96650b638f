// What is booked of memory once a container has been given its own. Pure.
import { type BookedMemory, bookMemory, type MemoryBlock } from '../../account/booked-memory.js';
import type { ContainerRequest } from '../../input/pods/resource-amounts.js';
import type { MemoryDraft, MemoryGround } from './memory-draft.js';
import { groupsOf, groupsWith, isSame } from './memory-groups.js';
import { memoryRow } from './memory-tables.js';

function amountIn(blocks: readonly MemoryBlock[], { nodes, type }: MemoryBlock): number {
  if (blocks.length === 0) return 0;
  return blocks.find((block) => block.type === type && isSame(block.nodes, nodes))?.bytes ?? 0;
}

function replaceAmount(
  blocks: readonly MemoryBlock[],
  block: MemoryBlock,
  bytes: number,
): readonly MemoryBlock[] {
  const others = blocks.filter((each) => each.type !== block.type || !isSame(each.nodes, block.nodes));
  return bytes > 0 ? [...others, { ...block, bytes }] : others;
}

/** What is left once a container has been given its memory. */
export function memoryLeft(
  draft: MemoryGround,
  { name, kind }: ContainerRequest,
  given: readonly MemoryBlock[],
): MemoryDraft {
  if (given.length === 0) return draft.memory;
  const before = draft.memory;
  let { reusable, containers } = before;
  for (const block of given) {
    const reused = amountIn(before.reusable, block);
    // An init container leaves all of its own to those that come later; of what others have left,
    // these take.
    const left = kind === 'init' ? Math.max(reused, block.bytes) : Math.max(0, reused - block.bytes);
    if (left !== reused) reusable = replaceAmount(reusable, block, left);
    containers = afterHandOver(containers, block);
  }
  const own = { name, kind, blocks: given };
  containers = containers.length === 0 ? [own] : [...containers, own];
  // Of a last container only who keeps the state wants to know.
  let known: BookedMemory | undefined;
  const booked = () => {
    known ??= given
      .map((block) => ({ ...block, bytes: Math.max(0, block.bytes - amountIn(before.reusable, block)) }))
      .reduce((sum, block) => bookOn(draft, sum, block), before.booked());
    return known;
  };
  return { booked, containers, groups: groupsWith(groupsOf(draft), given), reusable };
}

// Blocks of one container are of different types, and do not take from each other.
function bookOn(draft: MemoryGround, booked: BookedMemory, block: MemoryBlock): BookedMemory {
  const { free } = memoryRow(draft, block.type);
  // A resized container's may be on a node that is gone.
  return bookMemory(booked, block, (id) => free[draft.topology.numaNodes.indexOf(id)] ?? 0);
}

// What is taken over from init containers counts once, and with the container that has it now.
function afterHandOver(containers: MemoryDraft['containers'], taken: MemoryBlock): MemoryDraft['containers'] {
  if (containers.length === 0 || !containers.some(({ kind }) => kind === 'init')) return containers;
  let left = taken.bytes;
  return containers.map((container) => {
    if (container.kind !== 'init') return container;
    const blocks = container.blocks.map((block) => {
      if (block.type !== taken.type || !isSame(block.nodes, taken.nodes)) return block;
      const over = Math.min(left, block.bytes);
      left -= over;
      return { ...block, bytes: block.bytes - over };
    });
    return { ...container, blocks };
  });
}
