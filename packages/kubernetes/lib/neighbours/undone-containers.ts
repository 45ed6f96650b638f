// UndoneContainers: containers that the runtime did not create after numalign had placed them. A
// plugin is not told why. If another one may have set their CPUs, too, the log names it.
import type { Log } from '../base/log.js';
import { findNeighbours, type Neighbour, type NeighbourPlaces } from './neighbours.js';

// A kubelet tries again and again.
const LEAST_MS = 60_000;

export class UndoneContainers {
  readonly #find: () => Promise<readonly Neighbour[]>;
  readonly #log: Log;
  #earliest = 0;

  constructor(places: NeighbourPlaces, log: Log, find = () => findNeighbours(places)) {
    this.#find = find;
    this.#log = log;
  }

  /** Never waits, and never throws. */
  report(title: string): void {
    if (performance.now() < this.#earliest) return;
    this.#earliest = performance.now() + LEAST_MS;
    this.#find().then((neighbours) => this.#name(title, neighbours));
  }

  #name(title: string, neighbours: readonly Neighbour[]): void {
    if (neighbours.length === 0) return;
    const others = neighbours.map(({ name, at }) => `${name} (${at})`).join(', ');
    const isKnown = neighbours.some(({ isPlacing }) => isPlacing);
    const text = isKnown ? 'places CPUs, too: end the one or the other' : 'may set its CPUs, too';
    this.#log('warn', `the runtime did not create ${title} after it was placed: ${others} ${text}`);
  }
}
