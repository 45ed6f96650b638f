// Kinds of cores: which of them a request takes its CPUs from. Pure.
import { oncePer } from '../../base/collections/once-per.js';
import type { CoreKindPolicy } from '../../input/policies.js';
import { CpuSet } from '../../machine/cpu-set.js';
import type { CoreKind } from '../../machine/machine-description.js';
import type { Topology } from '../../machine/topology.js';

/** The machine that a decision is made on, and the only CPUs of it to choose from; undefined: all. */
export interface MachineToTry {
  readonly topology: Topology;
  readonly within: CpuSet | undefined;
}

/** What restricts the choice of a kind. */
export interface KindRequest {
  readonly coreKind: CoreKindPolicy;
  /** The only CPUs to choose from; undefined: all. */
  readonly within: CpuSet | undefined;
  /** The CPUs of a grant that changes, which stays on its kind as long as that has room. */
  readonly present: CpuSet;
}

const cpusOf = (kinds: readonly CoreKind[]) =>
  kinds.reduce((cpus, kind) => cpus.union(kind.cpus), CpuSet.EMPTY);

// Each kind as a machine of its own: hints, whole cores and best fit then know no other CPUs.
const machines = oncePer(
  (topology: Topology) => new Map(topology.coreKinds.map((kind) => [kind, topology.withOnly(kind.cpus)])),
);
const slowerMachine = oncePer((topology: Topology) => topology.withOnly(cpusOf(topology.coreKinds.slice(1))));

/**
 * The machines to try, one after the other: each kind that the request may have, the fastest first,
 * and then all of them together.
 */
export function machinesToTry(topology: Topology, request: KindRequest): readonly MachineToTry[] {
  const { coreKind, within, present } = request;
  const [fastest, ...slower] = topology.coreKinds as [CoreKind, ...CoreKind[]];
  if (coreKind === 'efficiency' && slower.length === 0) return [{ topology, within: CpuSet.EMPTY }];
  if (coreKind === 'any' || slower.length === 0) return [{ topology, within }];
  const limited = (machine: Topology) => ({
    topology: machine,
    within: within?.intersection(machine.cpus) ?? machine.cpus,
  });
  const wanted = coreKind === 'best' ? topology.coreKinds : coreKind === 'performance' ? [fastest] : slower;
  const isOne = ({ cpus }: CoreKind) =>
    (within?.intersects(cpus) ?? true) && (present.isEmpty || present.intersects(cpus));
  const ones = wanted.filter(isOne);
  const all = coreKind === 'best' ? topology : slowerMachine(topology);
  // A grant on several kinds is on neither.
  if (ones.length > 1 && !present.isEmpty) return [limited(all)];
  const one = ones.map((kind) => limited(machines(topology).get(kind)!));
  const isAllOne = wanted.length === 1 || (within && ones.some(({ cpus }) => within.isSubsetOf(cpus)));
  if (isAllOne && one.length === 0) return [{ topology, within: CpuSet.EMPTY }];
  return isAllOne ? one : [...one, coreKind === 'best' ? { topology, within } : limited(all)];
}

/** The CPUs of the kinds that some CPUs are of; all if these are offline. */
export function cpusOfSameKinds({ coreKinds, cpus: all }: Topology, cpus: CpuSet): CpuSet {
  if (coreKinds.length === 1) return all;
  const same = cpusOf(coreKinds.filter((kind) => kind.cpus.intersects(cpus)));
  return same.isEmpty ? all : same;
}

/** All CPUs that a request may have by its choice of kinds; undefined: all. */
export function cpusOfChoice({ coreKinds }: Topology, coreKind: CoreKindPolicy): CpuSet | undefined {
  if (coreKind === 'best' || coreKind === 'any') return undefined;
  return cpusOf(coreKind === 'performance' ? coreKinds.slice(0, 1) : coreKinds.slice(1));
}

/**
 * The CPUs in `from` to take `count` from for the system: of the slowest kind with enough of them, or of
 * it and all slower ones; of any only if the fastest is needed too.
 */
export function slowestFor({ coreKinds }: Topology, from: CpuSet, count: number): CpuSet {
  const slower = coreKinds.slice(1);
  const rooms = slower.map((kind, i) => [kind.cpus, cpusOf(slower.slice(i))]).reverse();
  const found = rooms.flat().find((cpus) => cpus.intersection(from).size >= count);
  return found?.intersection(from) ?? from;
}

/** Kinds for people, such as `performance cores 0-15 (3 free), efficiency cores 16-27 (none free)`. */
export function kindsText({ coreKinds }: Topology, free: CpuSet): string {
  const kinds = coreKinds.map(({ name, cpus }) => {
    const { size } = cpus.intersection(free);
    return `${name} cores ${cpus} (${size === 0 ? 'none' : size} free)`;
  });
  return `this machine has ${kinds.join(', ')}${coreKinds.length === 1 ? ' and no others' : ''}`;
}
