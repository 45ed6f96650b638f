// The booked memory after a container got its own. Pure.
import { type BookedMemory, bookMemory, type MemoryBlock } from '../../account/booked-memory.js';
import type { ContainerRequest } from '../../input/pods/resource-amounts.js';
import type { Draft } from '../draft/draft.js';
import { bookedIn, type MemoryDraft } from '../draft/memory-draft.js';
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

/** The memory left after a container got its allocation. */
export function memoryLeft(
  draft: Draft,
  { name, kind }: ContainerRequest,
  blocks: readonly MemoryBlock[],
): MemoryDraft {
  if (blocks.length === 0) return draft.memory;
  const before = draft.memory;
  let { reusable, containers } = before;
  for (const block of blocks) {
    const reused = amountIn(before.reusable, block);
    // An init container leaves all of its memory to later ones. Other containers use up what was
    // left.
    const left = kind === 'init' ? Math.max(reused, block.bytes) : Math.max(0, reused - block.bytes);
    if (left !== reused) reusable = replaceAmount(reusable, block, left);
    containers = afterHandOver(containers, block);
  }
  const placed = { name, kind, blocks };
  containers = containers.length === 0 ? [placed] : [...containers, placed];
  // Computed on demand: for the last container, only a caller that keeps the state needs it.
  let total: BookedMemory | undefined;
  const booked = () => {
    total ??= blocks
      .map((block) => ({ ...block, bytes: Math.max(0, block.bytes - amountIn(before.reusable, block)) }))
      .reduce((sum, block) => bookOn(draft, sum, block), bookedIn(draft.state, before));
    return total;
  };
  return { booked, containers, groups: groupsWith(groupsOf(draft), blocks), reusable };
}

// A container's blocks have different types, so they do not affect each other.
function bookOn(draft: Draft, booked: BookedMemory, block: MemoryBlock): BookedMemory {
  const { free } = memoryRow(draft, block.type);
  // The block of a resized container may be on a missing node.
  return bookMemory(booked, block, (id) => free[draft.topology.numaNodes.indexOf(id)] ?? 0);
}

// Memory taken over from init containers counts once, with the container that has it now.
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
