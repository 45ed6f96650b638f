// CpuViews: CPUs as requests count them: of which pool, and whether only whole cores count.
// Pure.
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
  /** All CPUs of it, free or not. */
  readonly universe: CpuSet;
  readonly free: CpuSet;
}

interface Places {
  /** By CPU, the positions of its node and its core. */
  readonly node: ReadonlyMap<number, number>;
  readonly core: ReadonlyMap<number, number>;
  /** By position of the core that of its node. */
  readonly nodeOfCore: readonly number[];
  /** How many CPUs the smallest core has. */
  readonly smallestCore: number;
}

const placesOf = new WeakMap<Topology, Places>();

export function cpuPlaces(topology: Topology): Places {
  let places = placesOf.get(topology);
  if (!places) {
    const node = new Map(topology.nodes.flatMap(({ cpus }, i) => [...cpus].map((cpu) => [cpu, i] as const)));
    const core = new Map(topology.cores.flatMap(({ cpus }, i) => [...cpus].map((cpu) => [cpu, i] as const)));
    const nodeOfCore = topology.cores.map(({ cpus }) => node.get(cpus.first!)!);
    const smallestCore = topology.cores.reduce((least, { cpus }) => Math.min(least, cpus.size), Infinity);
    places = { node, core, nodeOfCore, smallestCore };
    placesOf.set(topology, places);
  }
  return places;
}

/** The views that requests count by, each once. */
export class CpuViews {
  readonly list: CpuView[] = [];
  readonly #question: Question;

  constructor(question: Question) {
    this.#question = question;
  }

  /** The position of a view. */
  indexOf(pool: CpuPool, placement: Placement, allowed: CpuSet): number {
    const { state, present } = this.#question;
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

  /** [the fewest CPUs of a unit, free CPUs by node...] of each. */
  rows(): number[] {
    const { topology } = this.#question;
    return this.list.flatMap(({ counts, free }) => [
      counts === 'cores' ? cpuPlaces(topology).smallestCore : 1,
      ...topology.nodes.map(({ cpus }) => sizeOfBoth(cpus, free)),
    ]);
  }

  /** [view, node, CPUs, free CPUs, units] of each core, in views where only whole ones count. */
  coreRows(): number[] {
    const { topology } = this.#question;
    const { nodeOfCore } = cpuPlaces(topology);
    return this.list.flatMap(({ counts, free }, view) =>
      counts === 'cpus'
        ? []
        : topology.cores.flatMap(({ cpus }, core) => {
            const units = counts === 'cores' ? 1 : cpus.size;
            return [view, nodeOfCore[core]!, cpus.size, sizeOfBoth(cpus, free), units];
          }),
    );
  }

  /** By view, how many CPUs of it so many units of the view `of` take at least. */
  cpusFor(of: number, units: number): number[] {
    const own = this.list[of]!;
    const { smallestCore } = cpuPlaces(this.#question.topology);
    const cpus = units > 0 && own.counts === 'cores' ? units * smallestCore : units;
    // Where it may have others, it takes perhaps none.
    return this.list.map(({ universe }) => (own.universe.isSubsetOf(universe) ? cpus : 0));
  }
}
