// CpuViews: the ways in which requests count CPUs, by pool and by whole cores or single CPUs. Pure.
import { kubeletCpus } from '../../account/kubelet-record.js';
import type { CpuPool } from '../../account/pod-holdings.js';
import { freeCpus, grantableCpus } from '../../account/pools.js';
import type { Placement } from '../../input/placement.js';
import type { CpuSet } from '../../machine/cpu-set.js';
import { sizeOfBoth } from '../../machine/id-set.js';
import type { Topology } from '../../machine/topology.js';
import { mustBeWhole } from '../cpus/cpu-limits.js';
import type { Question } from '../question.js';

export interface CpuView {
  readonly pool: CpuPool;
  /** What counts: each CPU, each CPU of a whole core, or each whole core. */
  readonly counts: 'cpus' | 'cpus-of-cores' | 'cores';
  /** All CPUs of the view, free or not. */
  readonly universe: CpuSet;
  readonly free: CpuSet;
}

interface CpuPositions {
  /** The positions of a CPU's node and core. */
  readonly node: ReadonlyMap<number, number>;
  readonly core: ReadonlyMap<number, number>;
  /** The position of a core's node. */
  readonly nodeOfCore: readonly number[];
  /** The number of CPUs of the smallest core. */
  readonly smallestCore: number;
}

const positionsOf = new WeakMap<Topology, CpuPositions>();

export function cpuPositions(topology: Topology): CpuPositions {
  let places = positionsOf.get(topology);
  if (!places) {
    const node = new Map(topology.nodes.flatMap(({ cpus }, i) => [...cpus].map((cpu) => [cpu, i] as const)));
    const core = new Map(topology.cores.flatMap(({ cpus }, i) => [...cpus].map((cpu) => [cpu, i] as const)));
    const nodeOfCore = topology.cores.map(({ cpus }) => node.get(cpus.first!)!);
    const smallestCore = topology.cores.reduce((least, { cpus }) => Math.min(least, cpus.size), Infinity);
    places = { node, core, nodeOfCore, smallestCore };
    positionsOf.set(topology, places);
  }
  return places;
}

/** The views that requests use, without duplicates. */
export class CpuViews {
  readonly list: CpuView[] = [];

  constructor(private readonly question: Question) {}

  /** The position of a view, which is added if it is new. */
  indexOf(pool: CpuPool, placement: Placement, allowed: CpuSet): number {
    const { state, present } = this.question;
    const counts = placement.holdSiblings ? 'cores' : mustBeWhole(placement) ? 'cpus-of-cores' : 'cpus';
    const grantable = grantableCpus(state.settings, present, pool).intersection(allowed);
    const universe = grantable.difference(kubeletCpus(state.kubelet));
    const at = this.list.findIndex(
      (view) => view.pool === pool && view.counts === counts && view.universe.equals(universe),
    );
    if (at >= 0) return at;
    const free = freeCpus(state, present, pool).intersection(allowed);
    return this.list.push({ pool, counts, universe, free }) - 1;
  }

  /** A row per view: [the fewest CPUs of a unit, free CPUs by node...]. */
  rows(): number[] {
    const { topology } = this.question;
    return this.list.flatMap(({ counts, free }) => [
      counts === 'cores' ? cpuPositions(topology).smallestCore : 1,
      ...topology.nodes.map(({ cpus }) => sizeOfBoth(cpus, free)),
    ]);
  }

  /** A row per core: [view, node, CPUs, free CPUs, units], in views that count whole cores only. */
  coreRows(): number[] {
    const { topology } = this.question;
    const { nodeOfCore } = cpuPositions(topology);
    return this.list.flatMap(({ counts, free }, view) =>
      counts === 'cpus'
        ? []
        : topology.cores.flatMap(({ cpus }, core) => {
            const units = counts === 'cores' ? 1 : cpus.size;
            return [view, nodeOfCore[core]!, cpus.size, sizeOfBoth(cpus, free), units];
          }),
    );
  }

  /** By view: the least number of its CPUs that are taken by `units` units of the view at `of`. */
  cpusFor(of: number, units: number): number[] {
    const taker = this.list[of]!;
    const { smallestCore } = cpuPositions(this.question.topology);
    const cpus = units > 0 && taker.counts === 'cores' ? units * smallestCore : units;
    // If the units may be CPUs outside a view, they perhaps take none of its CPUs.
    return this.list.map(({ universe }) => (taker.universe.isSubsetOf(universe) ? cpus : 0));
  }
}
