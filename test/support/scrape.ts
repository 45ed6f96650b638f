// What Prometheus would read from a page of metrics.
import parse from 'parse-prometheus-text-format';

export class Scrape {
  readonly types: Readonly<Record<string, string>>;
  readonly #values = new Map<string, number>();
  readonly #buckets = new Map<string, number[]>();

  /** @throws where the text is not in Prometheus' format */
  constructor(text: string) {
    const families = parse(text);
    this.types = Object.fromEntries(families.map(({ name, type }) => [name, type]));
    for (const { name, metrics } of families) {
      for (const { labels, value, count, buckets } of metrics) {
        this.#values.set(keyOf(name, labels), Number(value ?? count));
        if (buckets) this.#buckets.set(keyOf(name, labels), Object.keys(buckets).map(Number));
      }
    }
  }

  /** A counter or gauge, or how often a histogram was observed; undefined where it is not on the page. */
  value(name: string, labels?: Record<string, string>): number | undefined {
    return this.#values.get(keyOf(name, labels));
  }

  /** The upper bounds of a histogram's buckets. */
  buckets(name: string): number[] | undefined {
    return this.#buckets.get(keyOf(name));
  }
}

function keyOf(name: string, labels: Record<string, string> = {}): string {
  // An empty label is none.
  const given = Object.entries(labels).filter(([, value]) => value !== '');
  return `${name} ${JSON.stringify(given.sort())}`;
}
