// Best fit: chooses CPUs of a machine among the available ones.
import { inspect } from 'node:util';
import { checkOptions } from '../base/check-options.js';
import { NumalignError } from '../base/errors.js';
import { DEFAULT_VERSION, isSince, KUBELET_VERSIONS } from '../base/kubelet-features.js';
import { native } from '../base/native.js';
import { FIT } from '../base/native-hints.js';
import { shapes } from '../base/shapes.js';
import type { TopologyHandle } from '../base/words.js';
import { CpuSet, NodeSet } from './cpu-set.js';
import type { BestFitOptions, NumaNode } from './machine-description.js';

/** The parts of a machine that the choice needs. */
interface Machine {
  readonly handle: TopologyHandle;
  readonly cpus: CpuSet;
  readonly nodes: readonly NumaNode[];
}

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
  const required = CpuSet.coerce(mustInclude);
  const present = available.intersection(cpus);
  if (!required.isSubsetOf(present))
    invalid('mustInclude', String(required), `among the available CPUs, ${present}`);
  if (required.size > count)
    invalid('count', count, `at least ${required.size}, the CPUs that must be included`);
  const isNear = (node: NumaNode) => (nodes === null ? node.cpus.intersects(required) : nodes.has(node.id));
  const near = machineNodes.reduce((all, node) => (isNear(node) ? all.union(node.cpus) : all), CpuSet.EMPTY);
  const isAnywhere = near.isEmpty || count > present.size;
  const taken = native.bestFit({
    topology: handle,
    available: (isAnywhere ? available : available.difference(required)).words,
    count: isAnywhere ? count : count - required.size,
    near: (isAnywhere ? CpuSet.EMPTY : near).words,
    nearNodes: nodes?.size ?? 0,
    cpuGroupSize,
    flags:
      (isSince(kubeletVersion, 'v1.37') ? FIT.keepsNodes : 0) |
      (strategy === 'spread' ? FIT.spread : 0) |
      (preferAlignByUncoreCache ? FIT.alignByL3 : 0) |
      (distributeAcrossNuma ? FIT.distributeAcrossNuma : 0) |
      (wholeCores ? FIT.wholeCores : 0) |
      (kubeletVersion === 'v1.32' ? 0 : FIT.anyRestInL3),
    later: [],
  });
  return isAnywhere ? new CpuSet(taken) : required.union(new CpuSet(taken));
}

/** @throws ERR_INVALID_ARGUMENT */
export function invalid(name: string, value: unknown, valid: string): never {
  throw new NumalignError('ERR_INVALID_ARGUMENT', `${name} must be ${valid}, not ${inspect(value)}`, {
    value,
    valid,
  });
}

const argument = shapes(invalid);
