// MetricSink: where figures that every scrape reads go.

export type Labels = Readonly<Record<string, string>>;

/** Values by labels; undefined: nothing at present. */
export type Values = Iterable<readonly [labels: Labels, value: number]> | undefined;

/**
 * Takes figures by the names that Prometheus has for them, without numalign's prefix. What has no
 * value at a scrape is left out of it.
 */
export interface MetricSink {
  counter(name: string, help: string, labelNames: readonly string[], values: () => Values): void;
  gauge(name: string, help: string, labelNames: readonly string[], values: () => Values): void;
}

/**
 * Reads once for all figures of a scrape, which come one after the other. The value holds
 * until the next turn of the event loop's microtasks.
 */
export function oncePerScrape<T>(read: () => T): () => T {
  let cache: { readonly value: T } | undefined;
  return () => {
    if (cache === undefined) {
      cache = { value: read() };
      queueMicrotask(() => {
        cache = undefined;
      });
    }
    return cache.value;
  };
}

export const KUBELET_PREFIX = 'kubelet_';

/** Names that the kubelet has too. */
export const KUBELET_NAMES = /^(kubelet|resource_manager)_/;
