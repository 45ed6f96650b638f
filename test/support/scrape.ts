// What Prometheus would read from a page of metrics.
import parse from 'parse-prometheus-text-format';

export class Scrape {
  readonly types: Readonly<Record<string, string>>;
  readonly #values = new Map<string, number>();

  /** @throws where the text is not in Prometheus' format */
  constructor(text: string) {
    this.types = Object.fromEntries(parse(text).map(({ name, type }) => [name, type]));
    // The parser folds histograms up and loses their labels: untyped, they are the samples that
    // they are for Prometheus.
    for (const { name, metrics } of parse(text.replace(/^# TYPE \S+ histogram$/gm, ''))) {
      for (const { labels, value } of metrics) this.#values.set(keyOf(name, labels), Number(value));
    }
  }

  /** Of a sample; undefined where it is not on the page. */
  value(name: string, labels?: Record<string, string>): number | undefined {
    return this.#values.get(keyOf(name, labels));
  }

  /** How many samples a name has. */
  count(name: string): number {
    return [...this.#values.keys()].filter((key) => key.startsWith(`${name} `)).length;
  }
}

function keyOf(name: string, labels: Record<string, string> = {}): string {
  // An empty label is none.
  const given = Object.entries(labels).filter(([, value]) => value !== '');
  return `${name} ${JSON.stringify(given.sort())}`;
}
