// PrometheusMetrics: the registry as Prometheus reads it, by prom-client.
import type { Registry } from 'prom-client';
import { NodeError } from '../base/errors.js';
import { promClient } from '../base/late-packages.js';
import type { Counter, Histogram, Labels, Metrics, Values } from './metrics.js';
import { addProcessMetrics } from './process-metrics.js';

type PromClient = ReturnType<typeof promClient>;

export const PREFIX = 'numalign_node_';

export class PrometheusMetrics implements Metrics {
  readonly #client: PromClient;
  readonly register: Registry;

  private constructor(client: PromClient) {
    this.#client = client;
    this.register = new client.Registry();
    addProcessMetrics(client, this.register);
  }

  /** Loads prom-client, which only a node that is scraped needs. @throws ERR_OPTIONAL_DEPENDENCY */
  static async open(): Promise<PrometheusMetrics> {
    try {
      return new PrometheusMetrics(promClient());
    } catch (cause) {
      throw new NodeError(
        'ERR_OPTIONAL_DEPENDENCY',
        'metrics need the package prom-client: npm install prom-client',
        { value: 'prom-client', valid: 'prom-client 15', cause },
      );
    }
  }

  counter(name: string, help: string, labelNames: readonly string[] = []): Counter {
    const counter = new this.#client.Counter(this.#common(name, help, labelNames));
    return { add: (labels: Labels = {}, count = 1) => counter.inc(labels, count) };
  }

  histogram(
    name: string,
    help: string,
    buckets: readonly number[],
    labelNames: readonly string[] = [],
  ): Histogram {
    const options = { ...this.#common(name, help, labelNames), buckets: [...buckets] };
    const histogram = new this.#client.Histogram(options);
    return { observe: (value: number, labels: Labels = {}) => histogram.observe(labels, value) };
  }

  gauge(name: string, help: string, labelNames: readonly string[], values: () => Values): void {
    new this.#client.Gauge({
      ...this.#common(name, help, labelNames),
      collect() {
        this.reset();
        // Without labels it would show 0.
        if (labelNames.length === 0) this.remove();
        for (const [labels, value] of values()) this.set(labels, value);
      },
    });
  }

  #common(name: string, help: string, labelNames: readonly string[]) {
    return { name: `${PREFIX}${name}`, help, labelNames: [...labelNames], registers: [this.register] };
  }
}
