// An API server that stores NodeResourceTopologies and Nodes, like Kubernetes'.
import type { ServerResponse } from 'node:http';
import { FakeServer, json, type Pki, refuse, type Seen } from '../api-server/fake-server.js';

const PATH = '/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies';

export type Stored = { metadata: Record<string, unknown>; [field: string]: any };

// As in a merge patch; undefined if nothing is left.
function withoutNulls(members: object): object | undefined {
  const left = Object.entries(members).filter(([, value]) => value !== null);
  return left.length === 0 ? undefined : Object.fromEntries(left);
}

/** Each written version of the object, and the watchers. */
export class Topologies {
  readonly versions: Stored[] = [];
  /** Milliseconds of `performance.now` by version. */
  readonly times: number[] = [];
  readonly server: FakeServer;
  object: Stored | undefined;
  node: Stored | undefined;
  refusal: ((seen: Seen) => [number, string] | undefined) | undefined;
  /** The pods that are listed; a watch of them never reports anything but {@link putPod}. */
  readonly pods = new Map<string, Stored>();
  #version = 0;
  #podWatches: ServerResponse[] = [];
  #watches: ServerResponse[] = [];
  #waiting: (() => void)[] = [];

  private constructor(server: FakeServer) {
    this.server = server;
  }

  static async open(pki: Pki): Promise<Topologies> {
    const server = await FakeServer.open(pki, (seen, answer) => topologies.#answer(seen, answer));
    const topologies = new Topologies(server);
    return topologies;
  }

  /** A write by another client than the publisher. */
  write(object: Stored | undefined): void {
    const type = object === undefined ? 'DELETED' : this.object ? 'MODIFIED' : 'ADDED';
    const written = object ?? this.object!;
    this.object = object;
    written.metadata.resourceVersion = String(++this.#version);
    for (const watch of this.#watches) watch.write(`${JSON.stringify({ type, object: written })}\n`);
  }

  /** A pod of the node, as another client changes it; undefined: it is deleted. */
  putPod(key: string, pod: Stored | undefined): void {
    const object = pod ?? this.pods.get(key)!;
    const [namespace, name] = key.split('/');
    Object.assign(object.metadata, { namespace, name, resourceVersion: String(++this.#version) });
    const type = pod === undefined ? 'DELETED' : this.pods.has(key) ? 'MODIFIED' : 'ADDED';
    if (pod) this.pods.set(key, pod);
    else this.pods.delete(key);
    for (const watch of this.#podWatches) watch.write(`${JSON.stringify({ type, object })}\n`);
  }

  get watches(): number {
    return this.#watches.length;
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  #answer(seen: Seen, answer: ServerResponse): void {
    this.#handle(seen, answer);
    for (const wake of this.#waiting.splice(0)) wake();
  }

  #handle(seen: Seen, answer: ServerResponse): unknown {
    const { method, path, query, body } = seen;
    const refused = this.refusal?.(seen);
    if (refused) return refuse(answer, ...refused);
    if (path.startsWith('/api/v1/nodes/')) {
      return this.node ? json(answer, this.node) : refuse(answer, 404, 'nodes not found');
    }
    if (path === '/api/v1/pods') return this.#handlePods(query, answer);
    if (path === PATH && query.get('watch') === 'true') {
      answer.writeHead(200).flushHeaders();
      this.#watches.push(answer);
      answer.on('close', () => {
        this.#watches = this.#watches.filter((each) => each !== answer);
      });
      return answer;
    }
    if (path === PATH && method === 'GET') {
      const items = this.object ? [this.object] : [];
      return json(answer, { items, metadata: { resourceVersion: String(this.#version) } });
    }
    if (method === 'POST' && this.object) return refuse(answer, 409, 'it exists');
    if (method !== 'POST' && !this.object) return refuse(answer, 404, 'topology not found');
    if (method === 'DELETE') {
      this.write(undefined);
      return json(answer, { kind: 'Status', status: 'Success' });
    }
    const { metadata, ...given } = JSON.parse(body);
    const annotations = withoutNulls({
      ...(this.object?.metadata.annotations as object),
      ...metadata.annotations,
    });
    const merged = { ...this.object?.metadata, ...metadata, annotations };
    const written = { ...this.object, ...given, metadata: merged };
    this.versions.push(structuredClone(written));
    this.times.push(performance.now());
    this.write(written);
    return json(answer, written);
  }

  #handlePods(query: URLSearchParams, answer: ServerResponse): unknown {
    if (query.get('fieldSelector') !== 'spec.nodeName=worker-1') return refuse(answer, 400, 'another node');
    if (query.get('watch') !== 'true') {
      const items = [...this.pods.values()];
      return json(answer, { items, metadata: { resourceVersion: String(this.#version) } });
    }
    answer.writeHead(200).flushHeaders();
    this.#podWatches.push(answer);
    return answer;
  }
}
