// Watch: the objects of a resource and each change, even if connections fail in between.
import { reported } from '../base/reported.js';
import { ApiError, statusError } from './api-error.js';
import { newBackoff, pause } from './backoff.js';
import type { Connection } from './connection.js';
import { jsonLines } from './json-lines.js';
import { isObject, listOf, selectorOf } from './object-list.js';
import { type KubernetesObject, pathOf, queryOf, type Resource } from './resource.js';

/** `LISTED`: all objects now, at first and after a gap. The others: changes since then. */
export type WatchEvent =
  | { readonly type: 'LISTED'; readonly objects: readonly KubernetesObject[] }
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: KubernetesObject };

export interface WatchOptions {
  /** Watch only the object with this name. */
  readonly name?: string;
  /** Watch only the objects that it selects, such as `spec.nodeName=worker-1`. */
  readonly fieldSelector?: string;
  readonly signal?: AbortSignal;
  /** Called for each failure, with the pause before the watch continues. */
  readonly failed?: (error: ApiError, pauseMs: number) => void;
  /**
   * The seconds after which the server ends a watch, which then continues. Default: 1,500 to 2,100.
   */
  readonly seconds?: number;
  /** A server that ends a watch this many milliseconds too late counts as hung. Default: 30,000. */
  readonly graceMs?: number;
}

// A shorter watch counts as a failure, whatever arrived.
const SHORT_MS = 1_000;

/** The position of a watch. */
interface Place {
  /** Undefined: everything must be listed. */
  version: string | undefined;
}

/** Never throws; ends when the signal is aborted. */
export async function* watch(
  connection: Connection,
  resource: Resource,
  options: WatchOptions & { readonly signal: AbortSignal },
): AsyncGenerator<WatchEvent, void, undefined> {
  const { signal } = options;
  const failed = options.failed && reported(options.failed);
  const backoff = newBackoff();
  const place: Place = { version: undefined };
  while (!signal.aborted) {
    const begin = performance.now();
    let error: ApiError | undefined;
    try {
      if (place.version === undefined) yield await list(connection, resource, options, place);
      yield* changes(connection, resource, options, place);
    } catch (cause) {
      if (!(cause instanceof ApiError)) throw cause;
      error = cause;
    }
    if (signal.aborted) return;
    const isShort = performance.now() - begin < SHORT_MS;
    if (!isShort) backoff.reset();
    // An unreadable event may have hidden a change.
    if (error && !error.isPassing) place.version = undefined;
    if (!error && !isShort) continue;
    const ms = backoff.next(error?.retryAfterMs);
    if (error && error.code !== 'ERR_API_GONE') failed?.(error, ms);
    await pause(ms, signal);
  }
}

async function list(
  connection: Connection,
  resource: Resource,
  options: WatchOptions & { readonly signal: AbortSignal },
  place: Place,
): Promise<WatchEvent> {
  const { signal } = options;
  const { path, read } = listOf(resource, selectorOf(options));
  const { objects, version } = read(await connection.ask({ method: 'GET', path, signal }));
  place.version = version;
  return { type: 'LISTED', objects };
}

async function* changes(
  connection: Connection,
  resource: Resource,
  options: WatchOptions & { readonly signal: AbortSignal },
  place: Place,
): AsyncGenerator<WatchEvent, void, undefined> {
  // Random, so that not all nodes of a cluster call at once.
  const seconds = options.seconds ?? 1_500 + Math.round(600 * Math.random());
  const query = queryOf({
    watch: 'true',
    allowWatchBookmarks: 'true',
    fieldSelector: selectorOf(options),
    resourceVersion: place.version,
    timeoutSeconds: String(seconds),
  });
  const request = { method: 'GET', path: pathOf(resource) + query, signal: options.signal } as const;
  const stream = connection.stream(request, seconds * 1000 + (options.graceMs ?? 30_000));
  for await (const line of jsonLines(stream)) {
    const { type, object } = (line ?? {}) as { type?: unknown; object?: unknown };
    if (type === 'ERROR') {
      const { code } = (object ?? {}) as { code?: unknown };
      throw statusError(`watch of ${resource.plural}`, typeof code === 'number' ? code : 0, object);
    }
    if (!isObject(object) || typeof object.metadata.resourceVersion !== 'string')
      throw new ApiError('ERR_API_ANSWER', `watch of ${resource.plural}: an event without an object`);
    place.version = object.metadata.resourceVersion;
    if (type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED') yield { type, object };
    else if (type !== 'BOOKMARK')
      throw new ApiError('ERR_API_ANSWER', `watch of ${resource.plural}: an event of type ${String(type)}`, {
        value: type,
        valid: ['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR'],
      });
  }
}
