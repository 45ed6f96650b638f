// MetricSet: metrics by their names, with what forgets those of grants that have ended.
import { createRequire } from 'node:module';
import { invalidOption } from 'numalign/tools';
import type { Metric, Registry } from 'prom-client';
import { KUBELET_PREFIX, type MetricSink, type Values } from './metric-sink.js';
import { loadOptional } from './optional-package.js';

type Module = typeof import('prom-client');
type PromClient = Pick<Module, 'Counter' | 'Gauge' | 'Histogram' | 'register'>;

/**
 * What metrics are made of: all of prom-client would load TLS and profilers, too, which take 3 MB.
 * @throws ERR_OPTIONAL_DEPENDENCY
 */
export function loadPromClient(): PromClient {
  const require = createRequire(import.meta.url);
  try {
    return {
      Counter: require('prom-client/lib/counter') as Module['Counter'],
      Gauge: require('prom-client/lib/gauge') as Module['Gauge'],
      Histogram: require('prom-client/lib/histogram') as Module['Histogram'],
      register: (require('prom-client/lib/registry') as { globalRegistry: Registry }).globalRegistry,
    };
  } catch {
    // Another version may have its files elsewhere, and they may be no part of its API.
    return loadOptional(
      'prom-client',
      'metrics need the package prom-client beside @numalign/metrics: npm install prom-client',
    );
  }
}

// ---- making and registering

// The kubelet has some names without its prefix: with another one they are told apart all the same.
const KUBELETS_WITHOUT_PREFIX = /^resource_manager_/;

/** What names begin with. */
interface Prefixes {
  readonly prefix: string;
  readonly kubeletPrefix: string;
}

export class MetricSet implements MetricSink {
  readonly #client: PromClient;
  readonly #prefixes: Prefixes;
  readonly #metrics: Metric[] = [];
  readonly #names: string[] = [];

  constructor(client: PromClient, prefixes: Prefixes) {
    this.#client = client;
    this.#prefixes = prefixes;
  }

  #common(name: string, help: string, labelNames: readonly string[]) {
    const { prefix, kubeletPrefix } = this.#prefixes;
    const full = KUBELETS_WITHOUT_PREFIX.test(name)
      ? (kubeletPrefix === KUBELET_PREFIX ? '' : kubeletPrefix) + name
      : name.startsWith(KUBELET_PREFIX)
        ? kubeletPrefix + name.slice(KUBELET_PREFIX.length)
        : prefix + name;
    this.#names.push(full);
    return { name: full, help, labelNames: [...labelNames], registers: [] };
  }

  #add<M extends Metric>(metric: M): M {
    this.#metrics.push(metric);
    return metric;
  }

  /** With `values`, every scrape reads them, and leaves out what has none. */
  counter(name: string, help: string, labelNames: readonly string[] = [], values?: () => Values) {
    const collect =
      values &&
      (() => {
        counter.reset();
        for (const [labels, value] of values() ?? []) counter.inc(labels, value);
      });
    const counter = this.#add(
      new this.#client.Counter({ ...this.#common(name, help, labelNames), ...(collect && { collect }) }),
    );
    return counter;
  }

  histogram(name: string, help: string, buckets: number[], labelNames: readonly string[] = []) {
    return this.#add(new this.#client.Histogram({ ...this.#common(name, help, labelNames), buckets }));
  }

  /** With `values`, every scrape reads them. */
  gauge(name: string, help: string, labelNames: readonly string[] = [], values?: () => Values) {
    const collect =
      values &&
      (() => {
        gauge.reset();
        const now = values();
        // Without labels it would show 0.
        if (now === undefined && labelNames.length === 0) gauge.remove();
        for (const [labels, value] of now ?? []) gauge.set(labels, value);
      });
    const gauge = this.#add(
      new this.#client.Gauge({ ...this.#common(name, help, labelNames), ...(collect && { collect }) }),
    );
    return gauge;
  }

  /** @throws ERR_INVALID_OPTION where the registry has one of the names */
  checkNew(register: Registry): void {
    const duplicate = this.#names.find((name) => register.getSingleMetric(name));
    if (duplicate !== undefined)
      invalidOption('register', duplicate, `a registry that has no ${duplicate} yet, or another prefix`);
  }

  register(register: Registry): void {
    for (const metric of this.#metrics) register.registerMetric(metric);
  }

  unregister(register: Registry): void {
    for (const [i, name] of this.#names.entries()) {
      // The program may have cleared the registry, and others come in under the name.
      if (register.getSingleMetric(name) === this.#metrics[i]) register.removeSingleMetric(name);
    }
  }
}
