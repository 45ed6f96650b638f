// ApiServer: a client of Kubernetes' API for objects of any kind, with HTTPS and JSON.
//
// Why not @kubernetes/client-node: 2.0.1 needs Node 22.19 (undici 8), and is 68 packages of 83 MB.
// Loaded, it takes 82 to 89 MB of memory over a bare process, after 600 to 970 ms (1.4.0 on Node 20:
// 67 MB, 500 to 730 ms); this client takes 15 to 21 MB, after 60 to 130 ms, and the whole agent is to
// take 25. It repeats no request (429, 5xx, Retry-After), reads the token again after a minute but not
// after a 401, and makes a connection for each request. What it has beyond this client (models of all kinds,
// exec, port-forward, logins of clouds) an agent does not need; if it once does, decide again.
import { anySignal } from 'numalign/tools';
import { NodeError } from '../base/errors.js';
import { ApiError } from './api-error.js';
import { newBackoff, pause } from './backoff.js';
import { Connection, type HttpRequest } from './connection.js';
import { type AccessOptions, accessOf } from './find-access.js';
import { listOf } from './object-list.js';
import { type KubernetesObject, pathOf, type Resource } from './resource.js';
import { type WatchEvent, type WatchOptions, watch } from './watch.js';

export interface ApiServerOptions extends AccessOptions {
  /** How long an answer may take, in milliseconds. Default: 10,000. */
  readonly deadlineMs?: number;
  /**
   * How long to repeat a request while the server is away or busy, in milliseconds; 0: never.
   * Default: 5,000.
   */
  readonly patienceMs?: number;
}

export interface CallOptions {
  readonly signal?: AbortSignal;
}

const MOST_MS = 2 ** 31 - 1;

/**
 * A client of the API server. It reads the token and the CA again when their files change, and the
 * token also when the server rejects it (401). Requests that fail because the server is away or
 * busy (no connection, no answer in time, 429, 500 and above) are repeated, with growing and random
 * pauses, but not before `Retry-After`. All errors are {@link ApiError}s.
 */
export class ApiServer {
  readonly #connection: Connection;
  readonly #patienceMs: number;
  readonly #end = new AbortController();

  /**
   * Without kubeconfig, url and files, it uses those that the kubelet gives a process in a pod.
   * @throws ERR_NOT_IN_CLUSTER, ERR_KUBECONFIG, ERR_INVALID_OPTION
   */
  constructor(options: ApiServerOptions = {}) {
    this.#connection = new Connection(
      accessOf(options),
      milliseconds('deadlineMs', options.deadlineMs ?? 10_000, 1),
    );
    this.#patienceMs = milliseconds('patienceMs', options.patienceMs ?? 5_000, 0);
  }

  /** @throws ApiError: ERR_API_NOT_FOUND */
  get(resource: Resource, name: string, options: CallOptions = {}): Promise<KubernetesObject> {
    return this.#object({ method: 'GET', path: pathOf(resource, name) }, options);
  }

  /**
   * All objects of a resource.
   * @throws ApiError: ERR_API_NOT_FOUND if there is no such resource
   */
  async list(resource: Resource, options: CallOptions = {}): Promise<readonly KubernetesObject[]> {
    const { path, read } = listOf(resource);
    return read(await this.#call({ method: 'GET', path }, options)).objects;
  }

  /**
   * Creates an object, or a subresource of the object with its name.
   * @throws ApiError: ERR_API_CONFLICT if the name exists
   */
  create(resource: Resource, object: KubernetesObject, options: CallOptions = {}): Promise<KubernetesObject> {
    const path = pathOf(resource, resource.subresource === undefined ? undefined : object.metadata.name);
    return this.#object({ method: 'POST', path, body: object }, options);
  }

  /**
   * With `metadata.resourceVersion`, replaces only that version.
   * @throws ApiError: ERR_API_CONFLICT, ERR_API_NOT_FOUND
   */
  replace(
    resource: Resource,
    object: KubernetesObject,
    options: CallOptions = {},
  ): Promise<KubernetesObject> {
    const path = pathOf(resource, object.metadata.name);
    return this.#object({ method: 'PUT', path, body: object }, options);
  }

  /**
   * Applies a JSON merge patch (RFC 7396): members and whole lists are replaced, and null removes a
   * member. A strategic one, which only Kubernetes' own kinds have, merges lists by their keys.
   * @throws ApiError: ERR_API_NOT_FOUND
   */
  patch(
    resource: Resource,
    name: string,
    change: object,
    options: CallOptions & { readonly isStrategic?: boolean } = {},
  ): Promise<KubernetesObject> {
    const contentType = `application/${options.isStrategic ? 'strategic-' : ''}merge-patch+json`;
    return this.#object(
      { method: 'PATCH', path: pathOf(resource, name), body: change, contentType },
      options,
    );
  }

  /** @throws ApiError: ERR_API_NOT_FOUND */
  async delete(resource: Resource, name: string, options: CallOptions = {}): Promise<void> {
    await this.#call({ method: 'DELETE', path: pathOf(resource, name) }, options);
  }

  /**
   * The objects of a resource and each change, until `signal` is aborted or this client is closed.
   * After a failure it continues from where it was, or from a new list if the server no longer
   * knows that version.
   */
  watch(resource: Resource, options: WatchOptions = {}): AsyncGenerator<WatchEvent, void, undefined> {
    return watch(this.#connection, resource, { ...options, signal: this.#signal(options) });
  }

  /** Ends running requests and watches. */
  close(): void {
    this.#end.abort();
    this.#connection.close();
  }

  #signal({ signal }: CallOptions): AbortSignal {
    return signal ? anySignal(signal, this.#end.signal) : this.#end.signal;
  }

  async #object(request: HttpRequest, options: CallOptions): Promise<KubernetesObject> {
    const answer = await this.#call(request, options);
    const { metadata } = answer as { metadata?: unknown };
    if (typeof metadata === 'object' && metadata !== null) return answer as KubernetesObject;
    throw new ApiError('ERR_API_ANSWER', `${request.method} ${request.path}: the answer has no metadata`);
  }

  async #call(request: HttpRequest, options: CallOptions): Promise<object> {
    const signal = this.#signal(options);
    const backoff = newBackoff();
    const begin = performance.now();
    for (;;) {
      try {
        return await this.#connection.ask({ ...request, signal });
      } catch (error) {
        if (!(error instanceof ApiError) || !error.isPassing || signal.aborted) throw error;
        const ms = backoff.next(error.retryAfterMs);
        if (performance.now() - begin + ms > this.#patienceMs) throw error;
        await pause(ms, signal);
      }
    }
  }
}

function milliseconds(name: string, value: number, least: number): number {
  if (value >= least && value <= MOST_MS) return value;
  throw new NodeError('ERR_INVALID_OPTION', `${name} is ${value}`, {
    value,
    valid: `milliseconds from ${least} to ${MOST_MS}`,
  });
}
