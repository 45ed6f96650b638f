// How the kubelet takes CPUs, packed or spread, in plain sets. With its averages this is the
// recorded answer; with the own sizes of elements it is the intended one where nothing is aligned by
// L3 (A1).
import type { KubeletVersion } from '../../lib/base/kubelet-features.js';
import type { MachineJson } from '../../lib/entries/topology.js';
import { groupsOf } from './machine.js';

interface Options {
  readonly strategy?: 'packed' | 'spread';
  readonly preferAlignByUncoreCache?: boolean;
  /** What cores, sockets and L3 groups are compared with. */
  readonly sizes?: 'average' | 'own';
  readonly version?: KubeletVersion;
  /** F1: a core that is used in part gives a single CPU before another is split for it. */
  readonly sparesCores?: boolean;
}

type Elements = ReadonlyMap<number, readonly number[]>;

/** Some of these CPUs may not have been free: that is a mistake of the kubelet's. */
export function kubeletTake(
  machine: MachineJson,
  available: ReadonlySet<number>,
  count: number,
  {
    strategy = 'packed',
    preferAlignByUncoreCache = false,
    sizes = 'average',
    version = 'v1.32',
    sparesCores = false,
  }: Options,
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
  /** F1: the part with a CPU of a core that is used in part, if the core without `left` is split for one. */
  const insteadOf = (left: number, part: readonly number[], group: readonly number[]) => {
    const split = [...cores.values()].find((cpus) => cpus.includes(left))!;
    const [single, ...more] = split.filter((cpu) => part.includes(cpu));
    if (more.length > 0 || freeOf(split).length < split.length) return undefined;
    const groups = part.length === 1 ? [group, ...l3Order()] : [group];
    const half = groups
      .flatMap((each) => [...cores.values()].filter((cpus) => each.includes(cpus[0]!)))
      .find((cpus) => freeOf(cpus).length > 0 && freeOf(cpus).length < cpus.length && cpus !== split);
    const others = part.filter((cpu) => cpu !== single);
    return half && ![...others].some((cpu) => half.includes(cpu))
      ? [...others, freeOf(half).sort((a, b) => a - b)[0]!]
      : undefined;
  };
  const takeNodes = () => takeWhole(isNumaFirst ? outerOrder() : innerOrder(), ownSize);
  const takeSockets = () => takeWhole(socketOrder(), sizeAmong(sockets));

  for (const step of isNumaFirst ? [takeNodes, takeSockets] : [takeSockets, takeNodes]) step();
  for (const group of preferAlignByUncoreCache ? l3Order() : []) {
    if (needed() <= 0) break;
    if (needed() >= average(l3Groups)) takeWhole(l3Order(), ownSize);
    const threads = average(cores);
    const wanted = version === 'v1.32' ? Math.floor(needed() / threads) : Math.ceil(needed() / threads);
    const lowest = [...cores.values()]
      .filter((cpus) => cpus.some((cpu) => free.has(cpu) && group.includes(cpu)))
      .sort((a, b) => a[0]! - b[0]!)
      .slice(0, wanted);
    const all = lowest.flatMap(freeOf).sort((a, b) => a - b);
    const isOdd = version !== 'v1.32' && needed() % 2 === 1 && threads > 1 && all.length > needed();
    const part = isOdd ? all.slice(0, -1) : all;
    const spared = isOdd && sparesCores ? insteadOf(all.at(-1)!, part, group) : undefined;
    if (part.length === needed()) take(spared ?? part);
  }
  if (strategy === 'packed' && needed() > 0) takeWhole(coreOrder(), sizeAmong(cores));
  const rest = (strategy === 'packed' ? coreOrder() : socketOrder()).flatMap((cpus) =>
    freeOf(cpus).sort((a, b) => a - b),
  );
  for (const cpu of rest) if (needed() > 0) take([cpu]);
  return taken;
}
