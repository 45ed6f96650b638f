// How the kubelet 1.32 takes CPUs, packed or spread, in plain sets. With its averages this is the
// recorded answer; with the own sizes of elements it is the intended one where nothing is aligned by
// L3 (A1).
import type { MachineJson } from '../../lib/entries/topology.js';
import { groupsOf } from './machine.js';

interface Options {
  readonly strategy?: 'packed' | 'spread';
  readonly preferAlignByUncoreCache?: boolean;
  /** What cores, sockets and L3 groups are compared with. */
  readonly sizes?: 'average' | 'own';
}

type Elements = ReadonlyMap<number, readonly number[]>;

/** Some of these CPUs may not have been free: that is a mistake of the kubelet's. */
export function kubeletTake(
  machine: MachineJson,
  available: ReadonlySet<number>,
  count: number,
  { strategy = 'packed', preferAlignByUncoreCache = false, sizes = 'average' }: Options,
): Set<number> {
  const [free, taken] = [new Set(available), new Set<number>()];
  const needed = () => count - taken.size;
  const [cores, sockets] = [groupsOf(machine, 'core'), groupsOf(machine, 'socket')];
  const [l3Groups, nodes] = [groupsOf(machine, 'uncoreCache'), groupsOf(machine, 'numa')];
  const average = (elements: Elements) => Math.floor(machine.cpus.length / elements.size);
  const everything = machine.cpus.map((row) => row[machine.columns.indexOf('cpu')]!);

  const freeOf = (cpus: readonly number[]) => cpus.filter((cpu) => free.has(cpu));
  const take = (cpus: readonly number[]) => {
    for (const cpu of cpus) {
      taken.add(cpu);
      free.delete(cpu);
    }
  };
  /** The elements with free CPUs inside each of the outer ones, the fewest free CPUs first. */
  const inside = (outer: readonly (readonly number[])[], elements: Elements) =>
    outer.flatMap((around) => {
      const surrounding = new Set(freeOf(around));
      return [...elements]
        .filter(([, cpus]) => cpus.some((cpu) => surrounding.has(cpu)))
        .sort(([a, ofA], [b, ofB]) => freeOf(ofA).length - freeOf(ofB).length || a - b)
        .map(([, cpus]) => cpus);
    });
  const isNumaFirst = sockets.size >= nodes.size;
  const [outer, inner] = isNumaFirst ? [nodes, sockets] : [sockets, nodes];
  const outerOrder = () => inside([everything], outer);
  const innerOrder = () => inside(outerOrder(), inner);
  const socketOrder = () => (isNumaFirst ? innerOrder() : outerOrder());
  const l3Order = () => inside(isNumaFirst ? outerOrder() : innerOrder(), l3Groups);
  const coreOrder = () => inside(innerOrder(), cores);

  const takeWhole = (order: readonly (readonly number[])[], size: (cpus: readonly number[]) => number) => {
    const whole = order.filter((cpus) => freeOf(cpus).length === size(cpus));
    for (const cpus of whole) if (cpus.length <= needed()) take(cpus);
  };
  const ownSize = (cpus: readonly number[]) => cpus.length;
  const sizeAmong = (elements: Elements) => (sizes === 'own' ? ownSize : () => average(elements));
  const takeNodes = () => takeWhole(isNumaFirst ? outerOrder() : innerOrder(), ownSize);
  const takeSockets = () => takeWhole(socketOrder(), sizeAmong(sockets));

  for (const step of isNumaFirst ? [takeNodes, takeSockets] : [takeSockets, takeNodes]) step();
  for (const group of preferAlignByUncoreCache ? l3Order() : []) {
    if (needed() <= 0) break;
    if (needed() >= average(l3Groups)) takeWhole(l3Order(), ownSize);
    const wanted = Math.floor(needed() / average(cores));
    const lowest = [...cores.values()]
      .filter((cpus) => cpus.some((cpu) => free.has(cpu) && group.includes(cpu)))
      .sort((a, b) => a[0]! - b[0]!)
      .slice(0, wanted);
    const part = lowest.flatMap(freeOf);
    if (part.length === needed()) take(part);
  }
  if (strategy === 'packed' && needed() > 0) takeWhole(coreOrder(), sizeAmong(cores));
  const rest = (strategy === 'packed' ? coreOrder() : socketOrder()).flatMap((cpus) =>
    freeOf(cpus).sort((a, b) => a - b),
  );
  for (const cpu of rest) if (needed() > 0) take([cpu]);
  return taken;
}
