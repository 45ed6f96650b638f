// ProblemTables: the input of the core's search for moves, as rows of numbers. Pure.
import { bookedOn, memoryBookings } from '../../account/booked-memory.js';
import type { RepackingTables } from '../../base/native-tables.js';
import { podTotal } from '../../input/pods/pod-request.js';
import { maskOf } from '../../machine/hint-masks.js';
import { exclusiveCount } from '../cpus/cpu-choices.js';
import type { Draft } from '../draft/draft.js';
import { allocatableOn, takenByKubelet } from '../memory/memory-tables.js';
import type { Question } from '../question.js';
import { CpuViews, cpuPositions } from './cpu-views.js';
import { type MovableGrant, usableCpus } from './movable-grant.js';
import type { RequestPart } from './request-parts.js';

/** `parts`: the request. `grants`: the grants that may move; their order decides between equals. */
export function problemTables(
  question: Question,
  draft: Draft,
  parts: readonly RequestPart[],
  grants: readonly MovableGrant[],
): RepackingTables {
  const { topology } = question;
  const views = new CpuViews(question);
  const viewOfRequest = views.indexOf(draft.pool, draft.placement, draft.allowed);
  const viewOfGrant = grants.map(({ pool, placement, request }) =>
    views.indexOf(pool, placement, usableCpus(question, request)),
  );
  const types = [
    ...new Set([
      ...parts.flatMap(({ memory }) => memory.map(({ type }) => type)),
      ...grants.flatMap(({ memory }) => memory.map(({ type }) => type)),
    ]),
  ];
  const demand = (view: number, units: number, isOneBlock: boolean, blocks: readonly Bytes[]) => [
    view,
    units,
    isOneBlock ? 1 : 0,
    ...views.cpusFor(view, units),
    ...types.map((type) => blocks.reduce((sum, block) => sum + (block.type === type ? block.bytes : 0), 0)),
  ];
  return {
    nodes: topology.nodes.length,
    views: Float64Array.from(views.rows()),
    cores: Float64Array.from(views.coreRows()),
    memory: Float64Array.from(types.flatMap((type) => memoryCells(question, type))),
    groups: Float64Array.from(groupRows(question)),
    demands: Float64Array.from([
      ...parts.flatMap(({ count, memory }) => demand(viewOfRequest, count, true, memory)),
      ...grants.flatMap((grant, i) =>
        demand(viewOfGrant[i]!, unitsOf(grant), grant.pod.containers.length === 1, grant.memory),
      ),
    ]),
    stays: Float64Array.from(parts, ({ stays }) => (stays ? 1 : 0)),
    places: Float64Array.from(
      parts.flatMap(({ places }, i) => places.flatMap(({ cpus, memory }) => [i, ...cpus, ...memory])),
    ),
    costs: Float64Array.from(grants.flatMap(({ bytes, cpus }) => [bytes, cpus.size])),
    targets: Float64Array.from(
      grants.flatMap(({ targets }, i) =>
        targets.flatMap(({ to, keepsMemory }) => [i, ...to.mask, keepsMemory ? 1 : 0]),
      ),
    ),
    ...holdingTables(question, views, grants, types),
  };
}

interface Bytes {
  readonly type: string;
  readonly bytes: number;
}

const unitsOf = ({ request: { pod }, placement }: MovableGrant): number =>
  podTotal(pod, (container) => exclusiveCount(pod, container, placement));

// By node: bytes that are neither booked nor reserved, booked bytes, and the kernel's free bytes.
function memoryCells({ topology, state, hugepages, request }: Question, type: string): number[] {
  const taken = takenByKubelet(state.kubelet, topology);
  const kernel = hugepages?.get(type);
  const { memoryTiers } = request.placement;
  return topology.nodes.flatMap((node, i) => {
    const booked = bookedOn(state.memory, node.id, type);
    const spare = allocatableOn(node, type, state.settings) - booked - bookedOn(taken, node.id, type);
    // Whatever moves, nothing new is booked on other tiers.
    const isOffered = memoryTiers === 'any' || node.tier === 'dram';
    return [spare, booked, isOffered ? (kernel?.byNode[i] ?? Number.POSITIVE_INFINITY) : 0];
  });
}

// A row per group of nodes that share allocations: [mask, number of blocks].
function groupRows({ topology: { numaNodes }, state }: Question): number[] {
  const groups = new Map<string, { readonly mask: readonly number[]; blocks: number }>();
  for (const pod of state.pods) {
    for (const { memory } of memoryBookings(pod)) {
      for (const { nodes } of memory) {
        const key = nodes.join(',');
        const group = groups.get(key);
        const isThere = (node: number) => numaNodes.includes(node);
        if (group) group.blocks++;
        else groups.set(key, { mask: maskOf(nodes.filter(isThere), numaNodes), blocks: 1 });
      }
    }
  }
  return [...groups.values()].flatMap(({ mask, blocks }) => [...mask, blocks]);
}

function holdingTables(
  { topology }: Question,
  { list: views }: CpuViews,
  grants: readonly MovableGrant[],
  types: readonly string[],
): Pick<RepackingTables, 'cpus' | 'shares' | 'blocks'> {
  const { length } = topology.nodes;
  const places = cpuPositions(topology);
  const byNode = new Float64Array(grants.length * views.length * length);
  const shares: number[] = [];
  for (let i = 0; i < grants.length; i++) {
    const cpus = grants[i]!.cpus.toArray();
    for (let view = 0; view < views.length; view++) {
      const { universe, counts } = views[view]!;
      const ofCore = new Map<number, number>();
      for (const cpu of cpus) {
        if (!universe.has(cpu)) continue;
        byNode[(i * views.length + view) * length + places.node.get(cpu)!]!++;
        const core = places.core.get(cpu)!;
        ofCore.set(core, (ofCore.get(core) ?? 0) + 1);
      }
      if (counts !== 'cpus') for (const [core, count] of ofCore) shares.push(i, view, core, count);
    }
  }
  const blocks = grants.flatMap(({ memory }, i) =>
    memory.flatMap(({ nodes, type, bytes }) => [
      i,
      ...maskOf(nodes, topology.numaNodes),
      types.indexOf(type),
      bytes,
    ]),
  );
  return { cpus: byNode, shares: Float64Array.from(shares), blocks: Float64Array.from(blocks) };
}
