// Metrics: the one registry of numalign-node, in which each part registers what it counts. Names are
// without the prefix `numalign_node_`.

export type Labels = Readonly<Record<string, string>>;

/** Values by labels, read at each scrape. */
export type Values = Iterable<readonly [labels: Labels, value: number]>;

export interface Counter {
  /** Default: 1. 0 shows the labels before they are counted. */
  add(labels?: Labels, count?: number): void;
}

export interface Histogram {
  observe(value: number, labels?: Labels): void;
}

/** A name is registered once. Nothing is measured between scrapes but what is counted. */
export interface Metrics {
  /** `name` ends with `_total`. */
  counter(name: string, help: string, labelNames?: readonly string[]): Counter;
  histogram(
    name: string,
    help: string,
    buckets: readonly number[],
    labelNames?: readonly string[],
  ): Histogram;
  /** Of what has no value, nothing is shown. */
  gauge(name: string, help: string, labelNames: readonly string[], values: () => Values): void;
}

/** Counts nothing: nobody scrapes. */
export const NO_METRICS: Metrics = {
  counter: () => ({ add: () => {} }),
  histogram: () => ({ observe: () => {} }),
  gauge: () => {},
};
