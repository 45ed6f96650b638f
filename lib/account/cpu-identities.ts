// CPU identities: the location of CPUs when they were granted, and now. Pure.
//
// Ids of cores and packages are only names: a core has the id of its lowest online CPU, and gets
// another id when that goes offline. A group counts as renamed, not moved, if all its CPUs share
// one other id now and no other CPU has that id. Only CPUs known both then and now count. In all
// other cases ids decide, which reports too many moves rather than too few. The id of a NUMA node
// also locates memory: for a pod with memory, a CPU with another node id has moved away from it.
import { oncePer } from '../base/collections/once-per.js';
import type { Topology } from '../machine/topology.js';
import type { Assignments } from './assignments.js';
import type { CpuIdentity, PodAssignment } from './pod-assignment.js';
import { cpusOf, memoryOf } from './pod-holdings.js';

/** The machine's CPUs now. */
export const identitiesOf = oncePer(({ locations }: Pick<Topology, 'locations'>): readonly CpuIdentity[] =>
  locations.map((at) => [at.cpu, at.core, at.package, at.node]),
);

type Rows = ReadonlyMap<number, CpuIdentity>;

// Many grants ask for the same table.
const identityByCpu = oncePer(
  (identities: readonly CpuIdentity[]): Rows => new Map(identities.map((row) => [row[0], row])),
);

type Column = 1 | 2 | 3;

// Maps an id on record to the group's id now; to itself if that is ambiguous.
function namesNow(before: Rows, now: Rows, column: Column): (id: number) => number {
  const [forth, back] = [new Map<number, Set<number>>(), new Map<number, Set<number>>()];
  const add = (sets: Map<number, Set<number>>, from: number, to: number) =>
    sets.set(from, (sets.get(from) ?? new Set()).add(to));
  for (const [cpu, row] of before) {
    const other = now.get(cpu);
    if (!other) continue;
    add(forth, row[column], other[column]);
    add(back, other[column], row[column]);
  }
  return (id) => {
    const [name, ...others] = forth.get(id) ?? [];
    return name !== undefined && others.length === 0 && back.get(name)!.size === 1 ? name : id;
  };
}

// Translates rows on record to current ids.
function translation(before: Rows, now: Rows) {
  const [core, socket, node] = ([1, 2, 3] as const).map((column) => namesNow(before, now, column));
  return (row: CpuIdentity, pod: PodAssignment): CpuIdentity => [
    row[0],
    core!(row[1]),
    socket!(row[2]),
    memoryOf(pod).length > 0 ? row[3] : node!(row[3]),
  ];
}

const isSame = (a: CpuIdentity | undefined, b: CpuIdentity) =>
  a !== undefined && a[0] === b[0] && a[1] === b[1] && a[2] === b[2] && a[3] === b[3];

// Caches the equal list of current CPUs for a list on record.
const sameRows = new WeakMap<readonly CpuIdentity[], readonly CpuIdentity[]>();

function areSame(recorded: readonly CpuIdentity[], now: readonly CpuIdentity[]): boolean {
  if (recorded === now || sameRows.get(recorded) === now) return true;
  const isEqual = recorded.length === now.length && now.every((row, i) => isSame(recorded[i], row));
  if (isEqual) sameRows.set(recorded, now);
  return isEqual;
}

/**
 * Adds the current CPUs of the machine to the next state. A CPU that the same grant held before
 * keeps its old row, even while offline. Returns the recorded list if nothing has changed.
 */
export function withIdentities(next: Assignments, recorded: Assignments, topology: Topology): Assignments {
  const identities = identitiesOf(topology);
  const cpus = areSame(recorded.cpus, identities)
    ? recorded.cpus
    : mergedIdentities(next, recorded, identities);
  return next.cpus === cpus ? next : { ...next, cpus };
}

function mergedIdentities(
  next: Assignments,
  recorded: Assignments,
  identities: readonly CpuIdentity[],
): readonly CpuIdentity[] {
  const before = identityByCpu(recorded.cpus);
  const rows = new Map(identityByCpu(identities));
  const translate = translation(before, identityByCpu(identities));
  const earlier = new Map(recorded.pods.map((pod) => [pod.uid, pod]));
  for (const pod of next.pods) {
    const was = earlier.get(pod.uid);
    // Another pod may have the same uid now.
    if (was?.admittedAt !== pod.admittedAt) continue;
    for (const cpu of cpusOf(pod).intersection(cpusOf(was))) {
      const row = before.get(cpu);
      if (row) rows.set(cpu, translate(row, pod));
    }
  }
  const merged = [...rows.values()].sort(([a], [b]) => a - b);
  return areSame(recorded.cpus, merged) ? recorded.cpus : merged;
}

/** True if all CPUs are where they were when the state was written. */
export const areInPlace = ({ cpus }: Pick<Assignments, 'cpus'>, topology: Topology): boolean =>
  areSame(cpus, identitiesOf(topology));

/** A CPU whose location has changed since it was granted. */
export interface CpuMove {
  /** Logical CPU id, as Linux numbers CPUs. */
  readonly cpu: number;
  /**
   * Where the CPU was when it was granted: the ids of its core (lowest CPU id), package and NUMA
   * node.
   */
  readonly before: { readonly core: number; readonly package: number; readonly node: number };
  /** Where it is now, by the same ids. */
  readonly now: { readonly core: number; readonly package: number; readonly node: number };
}

const place = ([, core, socket, node]: CpuIdentity) => Object.freeze({ core, package: socket, node });

/** The online CPUs of a pod on record whose location has changed. */
export function movedCpus(
  pod: PodAssignment,
  { cpus }: Pick<Assignments, 'cpus'>,
  topology: Topology,
): CpuMove[] {
  const [before, now] = [identityByCpu(cpus), identityByCpu(identitiesOf(topology))];
  const held = [...cpusOf(pod)].filter((cpu) => {
    const row = now.get(cpu);
    return row && before.has(cpu) && !isSame(before.get(cpu), row);
  });
  if (held.length === 0) return [];
  const translate = translation(before, now);
  return held
    .filter((cpu) => !isSame(translate(before.get(cpu)!, pod), now.get(cpu)!))
    .map((cpu) => Object.freeze({ cpu, before: place(before.get(cpu)!), now: place(now.get(cpu)!) }));
}
