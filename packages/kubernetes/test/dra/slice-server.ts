// An API server that stores ResourceSlices and Nodes, like Kubernetes'.
import type { ServerResponse } from 'node:http';
import { FakeServer, json, type Pki, refuse, type Seen } from '../api-server/fake-server.js';

export type Stored = { metadata: Record<string, any>; [field: string]: any };

export class SliceServer {
  readonly objects = new Map<string, Stored>();
  readonly writes: string[] = [];
  readonly server: FakeServer;
  node: Stored | undefined = { metadata: { name: 'worker-1', uid: 'u-1' } };
  /** The version of the API that it has. */
  version = 'v1';
  /** What the server makes of an object that it is given: it leaves empty lists out. */
  kept: (object: Stored) => Stored = (object) =>
    JSON.parse(
      JSON.stringify(object, (_, value) => (Array.isArray(value) && value.length === 0 ? undefined : value)),
    );
  refusal: ((seen: Seen) => [number, string] | undefined) | undefined;
  #next = 1;
  // Each has the version that is one more than its index.
  readonly #events: string[] = [];
  #watches: ServerResponse[] = [];

  private constructor(server: FakeServer) {
    this.server = server;
  }

  static async open(pki: Pki): Promise<SliceServer> {
    const server = await FakeServer.open(pki, (seen, answer) => slices.#handle(seen, answer));
    const slices = new SliceServer(server);
    return slices;
  }

  /** Writes an object, or deletes it, and tells the watches. */
  write(name: string, object: Stored | undefined): Stored {
    const before = this.objects.get(name);
    const type = object === undefined ? 'DELETED' : before ? 'MODIFIED' : 'ADDED';
    const written = this.kept(structuredClone(object ?? before!));
    const uid = before?.metadata.uid ?? `slice-${this.#next}`;
    Object.assign(written.metadata, { resourceVersion: String(this.#next++), uid });
    if (object) this.objects.set(name, written);
    else this.objects.delete(name);
    const line = `${JSON.stringify({ type, object: written })}\n`;
    this.#events.push(line);
    for (const watch of this.#watches) watch.write(line);
    return written;
  }

  get slices(): Stored[] {
    return [...this.objects.values()].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  }

  #handle(seen: Seen, answer: ServerResponse): unknown {
    const { method, path, query, body } = seen;
    const refused = this.refusal?.(seen);
    if (refused) return refuse(answer, ...refused);
    if (path.startsWith('/api/v1/nodes/'))
      return this.node ? json(answer, this.node) : refuse(answer, 404, 'nodes not found');
    const base = `/apis/resource.k8s.io/${this.version}/resourceslices`;
    if (!path.startsWith(base))
      return refuse(answer, 404, 'the server could not find the requested resource');
    const name = decodeURIComponent(path.slice(base.length + 1));
    const existing = this.objects.get(name);
    if (method === 'GET' && name !== '')
      return existing ? json(answer, existing) : refuse(answer, 404, 'none');
    if (method === 'GET') return this.#list(query, answer);
    if (method === 'DELETE') {
      if (!existing) return refuse(answer, 404, 'none');
      this.write(name, undefined);
      return json(answer, { kind: 'Status', status: 'Success' });
    }
    const object = JSON.parse(body) as Stored;
    if (method === 'POST' && this.objects.has(object.metadata.name)) return refuse(answer, 409, 'it exists');
    if (method === 'PUT' && !existing) return refuse(answer, 404, 'none');
    if (method === 'PUT' && existing!.metadata.resourceVersion !== object.metadata.resourceVersion)
      return refuse(answer, 409, 'it was changed');
    this.writes.push(`${method} ${object.metadata.name} ${object.spec.pool.generation}`);
    return json(answer, this.write(object.metadata.name, object));
  }

  #list(query: URLSearchParams, answer: ServerResponse): unknown {
    if (query.get('fieldSelector') !== 'spec.driver=numalign.io,spec.nodeName=worker-1')
      return refuse(answer, 400, 'another selection');
    if (query.get('watch') !== 'true')
      return json(answer, { items: this.slices, metadata: { resourceVersion: String(this.#next) } });
    answer.writeHead(200).flushHeaders();
    for (const line of this.#events.slice(Number(query.get('resourceVersion')) - 1)) answer.write(line);
    this.#watches.push(answer);
    return answer;
  }
}
