// The node of a simulation that rearranges its grants at will, by amounts alone: what any number of
// moves can admit. Grants with GPUs stay.
import { canArrange, less } from './arrangement.mjs';
import { capacities, hasRoom } from './machines.mjs';

const NOTHING = { cpu: 0, memory: 0, gpu: 0 };
const sum = (requests) =>
  requests.reduce(
    (total, { cpu, memory, gpu }) => less(total, { cpu: -cpu, memory: -memory, gpu: -gpu }),
    NOTHING,
  );

/** A node for {@link simulate}. */
export class ArrangedNode {
  #capacities;
  #total;
  /** By uid, requests without GPUs, and those with GPUs beside their NUMA nodes. */
  #movable = new Map();
  #fixed = new Map();

  constructor(machine) {
    this.#capacities = capacities(machine);
    this.#total = sum(this.#capacities);
  }

  /** The number of moves is unknown. Cases that take too long to decide are admitted. */
  admit(request, uid) {
    const isFragmented = hasRoom(less(this.#total, sum(this.#requests)), request);
    if (!isFragmented || !this.#place(request, uid))
      return { admitted: false, isFragmented, isAvoidable: false };
    return { admitted: true, moves: Number.NaN, distance: 10 };
  }

  release(uid) {
    this.#movable.delete(uid);
    this.#fixed.delete(uid);
  }

  get cpusInUse() {
    return sum(this.#requests).cpu;
  }

  get grants() {
    return this.#movable.size + this.#fixed.size;
  }

  get #requests() {
    return [...this.#movable.values(), ...[...this.#fixed.values()].map(({ request }) => request)];
  }

  #place(request, uid) {
    const free = [...this.#capacities];
    for (const { node, request } of this.#fixed.values()) free[node] = less(free[node], request);
    const movable = [...this.#movable.values()];
    if (request.gpu === 0) {
      if (canArrange(free, [...movable, request]) === false) return false;
      this.#movable.set(uid, request);
      return true;
    }
    // The node with the least room beside grants with GPUs, if the others can be arranged around it.
    const nodes = [...free.keys()].filter((node) => hasRoom(free[node], request));
    const node = nodes
      .sort((a, b) => free[a].cpu - free[b].cpu)
      .find((at) => canArrange(free.with(at, less(free[at], request)), movable) !== false);
    if (node === undefined) return false;
    this.#fixed.set(uid, { node, request });
    return true;
  }
}
