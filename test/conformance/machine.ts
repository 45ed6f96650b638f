// What recorded machines are like, counted from their rows: the conditions of divergences hang on
// it.
import type { MachineJson } from '../../lib/entries/topology.js';

/** The CPUs of every core, socket, L3 or NUMA node, by its id. */
export function groupsOf({ columns, cpus }: MachineJson, column: string): Map<number, number[]> {
  const [cpu, group] = [columns.indexOf('cpu'), columns.indexOf(column)];
  const groups = new Map<number, number[]>();
  for (const row of cpus) groups.set(row[group]!, [...(groups.get(row[group]!) ?? []), row[cpu]!]);
  return groups;
}

/** A1: some core, socket or L3 differs in size from the machine's average as upstream rounds it. */
export function isIrregular(machine: MachineJson): boolean {
  const differs = (column: string, groups: number) =>
    [...groupsOf(machine, column).values()].some(
      (cpus) => cpus.length !== Math.floor(machine.numCpus / groups),
    );
  return (
    differs('core', machine.numCores) ||
    differs('socket', machine.numSockets) ||
    differs('uncoreCache', machine.numUncoreCaches)
  );
}

/** What the cores that are wholly among these CPUs add up to. */
export function coreSumsOf(machine: MachineJson, cpus: ReadonlySet<number>): ReadonlySet<number> {
  let sums = new Set([0]);
  for (const core of groupsOf(machine, 'core').values())
    if (core.every((cpu) => cpus.has(cpu)))
      sums = new Set([...sums, ...[...sums].map((sum) => sum + core.length)]);
  return sums;
}

/** How many L3 groups these CPUs are in. */
export function countL3Groups(machine: MachineJson, cpus: ReadonlySet<number>): number {
  return [...groupsOf(machine, 'uncoreCache').values()].filter((group) => group.some((cpu) => cpus.has(cpu)))
    .length;
}

/** Of these CPUs, those of cores that are wholly among them. */
export function wholeCoresOf(machine: MachineJson, cpus: ReadonlySet<number>): Set<number> {
  const cores = [...groupsOf(machine, 'core').values()];
  return new Set(cores.filter((core) => core.every((cpu) => cpus.has(cpu))).flat());
}

/** A4: some core is only in part among these CPUs. */
export function hasHalfCores(machine: MachineJson, cpus: ReadonlySet<number>): boolean {
  return [...groupsOf(machine, 'core').values()].some(
    (core) => core.some((cpu) => cpus.has(cpu)) && !core.every((cpu) => cpus.has(cpu)),
  );
}

/** True if an L3 cache has CPUs of several sockets. */
export function hasSharedL3(machine: MachineJson): boolean {
  const sockets = [...groupsOf(machine, 'socket').values()];
  return [...groupsOf(machine, 'uncoreCache').values()].some(
    (cpus) => sockets.filter((socket) => socket.some((cpu) => cpus.includes(cpu))).length > 1,
  );
}
