// Booking: allocates all CPUs and memory of a pod at once, then deals parts to its containers.
// Follows the kubelet's pod-level resource managers (v1.36), except that devices are allocated here
// too. Pure, except for custom hint providers.
import type { MemoryBlock } from '../account/booked-memory.js';
import { withLast } from '../base/collections/lists.js';
import { CpuSet } from '../machine/cpu-set.js';
import type { TopologyHint } from '../machine/hints.js';
import type { Aligned, Wanted } from './alignment.js';
import { checkCpusLeft, checkMemoryLeft, memoryClaims } from './claims.js';
import { claimsAfter, cpuClaims, siblings } from './cpus/cpu-choices.js';
import { UnevenCores } from './cpus/cpu-limits.js';
import {
  allocateCpus,
  type CpuAllocation,
  type CpuFit,
  cpusLeft,
  fitOf,
  mustAddUp,
  podClaims,
  type TakenCpus,
  takeOf,
} from './cpus/cpu-manager.js';
import { allocateDevices } from './devices/device-allocation.js';
import { deviceRequests, devicesLeft, ownDevices } from './devices/device-draft.js';
import { type Draft, nextDraft } from './draft/draft.js';
import type { ContainerMemory, MemoryDraft } from './draft/memory-draft.js';
import { type Claim, partitionOf, sharesOf } from './draft/partition.js';
import { askToAllocate } from './hints/hint-provider.js';
import { allocateMemory } from './memory/memory-allocation.js';
import { memoryLeft } from './memory/memory-booking.js';
import type { Progress } from './progress.js';
import { hintRequest } from './question.js';

/** The pod as one container that asks for everything. */
const WHOLE = { name: '', kind: 'app', requests: {} } as const;

/**
 * Allocates near the pod's hint, and deals out the parts.
 * @throws ERR_POD_POOL_EMPTY, ERR_SMT_ALIGNMENT, ERR_INSUFFICIENT_CPUS, ERR_INSUFFICIENT_MEMORY,
 *   ERR_INSUFFICIENT_DEVICES, ERR_PREFERRED_ALLOCATION
 */
export function bookPod(progress: Progress, wanted: Wanted, near: Aligned): void {
  const { draft } = progress;
  const { hint } = near;
  checkCpusLeft(draft);
  const cpus = bookedCpus(draft, wanted.fit, near);
  checkMemoryLeft(draft, wanted.memory);
  const blocks = allocateMemory(draft, wanted.memory, hint, near.memory);
  const parts = dealCpus(draft, cpus);
  const memory = { ...memoryLeft(draft, WHOLE, blocks), containers: dealMemory(draft, blocks) };
  const isNothing = cpus.cpus.isEmpty && blocks.length === 0;
  progress.booking = isNothing ? null : { cpus: cpus.cpus, held: cpus.held, memory: blocks };
  progress.draft = nextDraft(draft, cpusLeft(draft, WHOLE, cpus), draft, memory);
  giveParts(progress, parts, memory, hint);
}

/** All CPUs of the pod. Whole cores of different sizes must add up to each container's part, too. */
function bookedCpus(draft: Draft, fit: CpuFit | undefined, taken: TakenCpus): CpuAllocation {
  const whole = allocateCpus(draft, fit, taken);
  if (whole.cpus.isEmpty || !mustAddUp(draft.topology, draft.placement)) return whole;
  try {
    dealCpus(draft, whole);
    return whole;
  } catch (error) {
    if (!(error instanceof UnevenCores)) throw error;
  }
  // Init containers use CPUs of the others.
  const kept = podClaims(draft).filter((claim) => claim % 2 === 0);
  const { nodes } = taken;
  const cpus = kept.reduce((before, claim, i) => {
    const left = { ...draft, free: draft.free.difference(before) };
    return before.union(allocateCpus(left, fitOf(left, claim / 2, kept.slice(i + 1)), { nodes }).cpus);
  }, CpuSet.EMPTY);
  return { cpus, held: whole.held };
}

/** The CPUs of each container, and the siblings it holds; nothing if nothing is booked. */
function dealCpus(draft: Draft, { cpus, held }: CpuAllocation): readonly CpuAllocation[] {
  const { pod, topology } = draft;
  if (cpus.isEmpty) return pod.containers.map(() => ({ cpus, held }));
  const claims = cpuClaims(draft);
  const { parts } = partitionOf(cpus, claims, (from, count, at) =>
    takeOf(draft, from, count, claimsAfter(claims, at)),
  );
  return parts.map((part) => ({
    cpus: part,
    held: held.isEmpty ? CpuSet.EMPTY : siblings(topology, part).intersection(held),
  }));
}

/** Each container's share of the pod's memory. Containers that share count the same bytes. */
function dealMemory(draft: Draft, blocks: readonly MemoryBlock[]): ContainerMemory[] {
  const dealt = [...new Set(blocks.map(({ type }) => type))].map((type) =>
    dealType(
      blocks.filter((block) => block.type === type),
      memoryClaims(draft, type),
    ),
  );
  return draft.pod.containers.map(({ name, kind }, i) => ({
    name,
    kind,
    blocks: dealt.flatMap((parts) => parts[i]!).filter(({ bytes }) => bytes > 0),
  }));
}

// By claim. Memory of several tiers is dealt in their order; the last part is for those that share.
function dealType(blocks: readonly MemoryBlock[], claims: readonly Claim[]): MemoryBlock[][] {
  const total = blocks.reduce((sum, { bytes }) => sum + bytes, 0);
  let next = 0;
  return sharesOf(total, claims).map((share, i) => {
    const { kind, amount } = claims[i]!;
    const isOwn = amount !== null && kind !== 'init';
    let [skipped, left] = [isOwn ? next : kind === 'init' ? 0 : total - share, share];
    if (isOwn) next += share;
    return blocks.map((block) => {
      const before = Math.min(skipped, block.bytes);
      const bytes = Math.min(left, block.bytes - before);
      skipped -= before;
      left -= bytes;
      return { ...block, bytes };
    });
  });
}

// Devices are allocated now. The kubelet promises them now, and allocates when a container starts.
function giveParts(
  progress: Progress,
  parts: readonly CpuAllocation[],
  memory: MemoryDraft,
  hint: TopologyHint,
): void {
  const claims = cpuClaims(progress.draft);
  for (const [i, container] of progress.draft.pod.containers.entries()) {
    progress.container = container;
    const { draft } = progress;
    const requests = ownDevices(draft, container, deviceRequests(draft, container));
    const devices = allocateDevices(draft, container, requests, hint);
    for (const provider of progress.question.providers) askToAllocate(provider, hintRequest(progress), hint);
    progress.draft = nextDraft(draft, draft, devicesLeft(draft, container, devices), memory);
    const placed = {
      container,
      hint,
      cpus: parts[i]!,
      devices,
      memory,
      isShared: claims[i]!.amount === null,
    };
    progress.allocations = withLast(progress.allocations, placed);
  }
  progress.container = undefined;
}
