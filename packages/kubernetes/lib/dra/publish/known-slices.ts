// KnownSlices: the slices of a node's pool, as the API server has them.
import { isDeepStrictEqual } from 'node:util';
import type { KubernetesObject } from '../../api-server/resource.js';
import type { WatchEvent } from '../../api-server/watch.js';
import type { SliceSpec } from './resource-slices.js';

interface Written {
  readonly spec: SliceSpec;
  /** What the server has made of it: it adds times, and leaves out what its gates do not allow. */
  readonly essence: unknown;
}

interface Pool {
  readonly name: string;
  readonly generation: number;
}

const specOf = ({ spec }: KubernetesObject) =>
  spec as { readonly driver: string; readonly nodeName?: string; readonly pool: Pool };

export class KnownSlices {
  readonly #driver: string;
  readonly #nodeName: string;
  readonly #objects = new Map<string, KubernetesObject>();
  readonly #written = new Map<string, Written>();
  // A watch may show a change before the request for it is answered.
  readonly #pending = new Set<string>();
  readonly #ever = new Set<string>();
  // The versions that are known, also of what was deleted.
  readonly #latest = new Map<string, bigint>();
  #isListed = false;

  constructor(driver: string, nodeName: string) {
    this.#driver = driver;
    this.#nodeName = nodeName;
  }

  /** A spec without its generation, the times of its taints, and empty lists, which a server leaves out. */
  static essence({ spec }: KubernetesObject): unknown {
    return KnownSlices.essenceOf(spec as SliceSpec);
  }

  static essenceOf(spec: SliceSpec): unknown {
    const left = new Set(['generation', 'timeAdded']);
    const isLeft = (key: string, value: unknown) =>
      left.has(key) || (Array.isArray(value) && value.length === 0);
    return JSON.parse(JSON.stringify(spec, (key, value) => (isLeft(key, value) ? undefined : value)));
  }

  /** Whether the server has said which there are. */
  get isListed(): boolean {
    return this.#isListed;
  }

  get size(): number {
    return this.#objects.size;
  }

  get names(): readonly string[] {
    return [...this.#objects.keys()];
  }

  /** With those that may have been written. */
  get everWritten(): ReadonlySet<string> {
    return new Set([...this.names, ...this.#ever]);
  }

  get(name: string): KubernetesObject | undefined {
    return this.#objects.get(name);
  }

  /** The greatest; 0 without slices. */
  get generation(): number {
    return Math.max(0, ...[...this.#objects.values()].map((object) => specOf(object).pool.generation));
  }

  /** Whether these are the slices that there are, of one generation. */
  isAsWanted(target: ReadonlyMap<string, SliceSpec>): boolean {
    const generations = new Set([...this.#objects.values()].map((object) => specOf(object).pool.generation));
    return (
      target.size === this.#objects.size &&
      generations.size === 1 &&
      [...target].every(([name, spec]) => this.#isAs(name, spec))
    );
  }

  #isAs(name: string, spec: SliceSpec): boolean {
    const object = this.#objects.get(name);
    if (!object) return false;
    const essence = KnownSlices.essence(object);
    const written = this.#written.get(name);
    const isWritten = written && isDeepStrictEqual(written.spec, spec);
    return isDeepStrictEqual(essence, isWritten ? written.essence : KnownSlices.essenceOf(spec));
  }

  /** Writes a slice, which is known then. */
  async write(
    name: string,
    spec: SliceSpec,
    write: () => Promise<KubernetesObject>,
  ): Promise<KubernetesObject> {
    this.#ever.add(name);
    const answer = await this.during(name, write);
    this.put(answer);
    this.#written.set(name, { spec, essence: KnownSlices.essence(answer) });
    return answer;
  }

  /** Changes of this slice meanwhile are not by others. */
  async during<T>(name: string, change: () => Promise<T>): Promise<T> {
    this.#pending.add(name);
    try {
      return await change();
    } finally {
      this.#pending.delete(name);
    }
  }

  /** Unless something newer is known of it: an answer may come after what the watch shows. */
  put(object: KubernetesObject): void {
    if (this.#isNews(object)) this.#objects.set(object.metadata.name, object);
  }

  #isNews({ metadata: { name, resourceVersion = '' } }: KubernetesObject): boolean {
    // Versions are numbers that grow, in all servers that are known.
    if (!/^\d+$/.test(resourceVersion)) return true;
    const version = BigInt(resourceVersion);
    const isNews = version > (this.#latest.get(name) ?? -1n);
    if (isNews) this.#latest.set(name, version);
    return isNews;
  }

  remove(name: string): void {
    this.#objects.delete(name);
    this.#written.delete(name);
  }

  /** Follows a change; true if others have made it. */
  follow(event: WatchEvent): boolean {
    if (event.type === 'LISTED') {
      this.#isListed = true;
      this.#objects.clear();
      this.#latest.clear();
      for (const object of event.objects) if (this.#isOwn(object)) this.put(object);
      return false;
    }
    const { object } = event;
    const { name } = object.metadata;
    if (!this.#isOwn(object) || !this.#isNews(object)) return false;
    const written = this.#written.get(name);
    if (event.type === 'DELETED') this.remove(name);
    else this.#objects.set(name, object);
    if (!written || this.#pending.has(name)) return false;
    return event.type === 'DELETED' || !isDeepStrictEqual(written.essence, KnownSlices.essence(object));
  }

  // A server without field selectors shows those of others, too.
  #isOwn(object: KubernetesObject): boolean {
    const { driver, nodeName } = specOf(object);
    return driver === this.#driver && nodeName === this.#nodeName;
  }
}
