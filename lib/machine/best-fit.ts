// Best fit: chooses CPUs of a machine among the available ones.
import { inspect } from 'node:util';
import { checkOptions } from '../base/check-options.js';
import { NumalignError } from '../base/errors.js';
import { DEFAULT_VERSION, KUBELET_VERSIONS } from '../base/kubelet-features.js';
import { native } from '../base/native.js';
import { shapes } from '../base/shapes.js';
import type { TopologyHandle } from '../base/words.js';
import { CpuSet, NodeSet } from './cpu-set.js';
import { sizeOfBoth } from './id-set.js';
import type { BestFitOptions, NumaNode } from './machine-description.js';

/** The parts of a machine that the choice needs. */
interface Machine {
  readonly handle: TopologyHandle;
  readonly cpus: CpuSet;
  readonly nodes: readonly NumaNode[];
}

/** Takes `count` by best fit. `within`: only CPUs that are in this set too. */
type Take = (from: CpuSet, count: number, within?: CpuSet) => CpuSet;

const OPTIONS = [
  'strategy',
  'distributeAcrossNuma',
  'cpuGroupSize',
  'preferAlignByUncoreCache',
  'wholeCores',
  'kubeletVersion',
  'mustInclude',
  'nodes',
] as const satisfies readonly (keyof BestFitOptions)[];

/** See {@link Topology.bestFit}. */
export function bestFit(
  { handle, cpus, nodes: machineNodes }: Machine,
  available: CpuSet,
  count: number,
  options: BestFitOptions,
): CpuSet {
  const {
    strategy = 'packed',
    distributeAcrossNuma = false,
    cpuGroupSize = 1,
    preferAlignByUncoreCache = false,
    wholeCores = false,
    kubeletVersion = DEFAULT_VERSION,
    mustInclude = CpuSet.EMPTY,
    nodes = null,
  } = checkOptions(options, OPTIONS, 'bestFit') as BestFitOptions;
  argument.oneOf(strategy, 'strategy', ['packed', 'spread']);
  if (!Number.isInteger(count) || count < 0 || count > CpuSet.MAX_ID)
    invalid('count', count, 'a whole number of CPUs');
  if (!Number.isInteger(cpuGroupSize) || cpuGroupSize < 1 || cpuGroupSize > CpuSet.MAX_ID) {
    invalid('cpuGroupSize', cpuGroupSize, 'a whole number of at least 1');
  }
  argument.flag(distributeAcrossNuma, 'distributeAcrossNuma');
  argument.flag(preferAlignByUncoreCache, 'preferAlignByUncoreCache');
  argument.flag(wholeCores, 'wholeCores');
  if (!KUBELET_VERSIONS.includes(kubeletVersion))
    invalid('kubeletVersion', kubeletVersion, KUBELET_VERSIONS.join(' or '));
  if (nodes !== null && !(nodes instanceof NodeSet)) invalid('nodes', nodes, 'a NodeSet, or null');
  const take: Take = (from, size, within) =>
    new CpuSet(
      native.bestFit({
        topology: handle,
        available: from.words,
        within: within?.words,
        count: size,
        spread: strategy === 'spread',
        alignByL3: preferAlignByUncoreCache,
        distributeAcrossNuma,
        cpuGroupSize,
        wholeCores,
        anyRestInL3: kubeletVersion !== 'v1.32',
        later: [],
      }),
    );
  const required = CpuSet.coerce(mustInclude);
  const present = available.intersection(cpus);
  if (!required.isSubsetOf(present))
    invalid('mustInclude', String(required), `among the available CPUs, ${present}`);
  if (required.size > count)
    invalid('count', count, `at least ${required.size}, the CPUs that must be included`);
  const isNear = (node: NumaNode) => (nodes === null ? node.cpus.intersects(required) : nodes.has(node.id));
  const near = machineNodes.reduce((all, node) => (isNear(node) ? all.union(node.cpus) : all), CpuSet.EMPTY);
  if (near.isEmpty || count > present.size) return take(available, count);
  const from = available.difference(required);
  const left = count - required.size;
  const takeNear = (nearby: number) => {
    const first = take(from, nearby, near);
    return first.union(take(from.difference(first), left - nearby));
  };
  const most = Math.min(sizeOfBoth(from, near), left);
  return required.union(wholeCores ? (nearFirst(takeNear, most) ?? takeNear(0)) : takeNear(most));
}

/**
 * Takes as many near CPUs as possible: `most` of them, or fewer, with which cores of different sizes
 * may add up. Undefined if they add up nowhere.
 */
export function nearFirst(take: (nearby: number) => CpuSet, most: number): CpuSet | undefined {
  const whole = ifEnough(() => take(most));
  if (whole) return whole;
  // If they add up nowhere, fewer near CPUs do not help.
  const anywhere = ifEnough(() => take(0));
  for (let nearby = most - 1; anywhere && nearby > 0; nearby--) {
    const some = ifEnough(() => take(nearby));
    if (some) return some;
  }
  return anywhere;
}

/** What `take` returns; undefined if it throws ERR_INSUFFICIENT_CPUS. */
export function ifEnough(take: () => CpuSet): CpuSet | undefined {
  try {
    return take();
  } catch (error) {
    if (error instanceof NumalignError && error.code === 'ERR_INSUFFICIENT_CPUS') return undefined;
    throw error;
  }
}

/** @throws ERR_INVALID_ARGUMENT */
export function invalid(name: string, value: unknown, valid: string): never {
  throw new NumalignError('ERR_INVALID_ARGUMENT', `${name} must be ${valid}, not ${inspect(value)}`, {
    value,
    valid,
  });
}

const argument = shapes(invalid);
