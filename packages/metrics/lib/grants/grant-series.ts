// GrantSeries: figures of grants, of which so many have a series of their own and all others share
// one. Pure.

/** Of a grant at a scrape. null: not known. */
export interface GrantFigures<Counter extends string, Gauge extends string> {
  readonly uid: string;
  readonly label: string;
  /** They grow from scrape to scrape, as long as the grant lives. */
  readonly counters: Readonly<Partial<Record<Counter, number | null>>>;
  readonly gauges: Readonly<Partial<Record<Gauge, number | null>>>;
}

/** What is shown under one label. */
export interface Series<Counter extends string, Gauge extends string> {
  readonly label: string;
  readonly counters: ReadonlyMap<Counter, number>;
  readonly gauges: ReadonlyMap<Gauge, number>;
}

/** The label of the grants that have no series of their own. */
export const OTHER = 'other';

/** Labels whose counters are kept while no grant has them: the last that ended. */
const KEPT = 1000;

/**
 * Counters of a series never fall: they are sums of what each grant has done from scrape to scrape,
 * so that nothing is lost or counted twice where grants of the same label end, or a grant moves from
 * the common series to its own. A label that comes again goes on with its sums: those that read
 * them may show the series all the time (OpenTelemetry's SDK does).
 */
export class GrantSeries<Counter extends string, Gauge extends string> {
  readonly #max: number;
  readonly #labels = new Map<string, string>();
  #before: ReadonlyMap<string, ReadonlyMap<Counter, number>> = new Map();
  readonly #sums = new Map<string, Map<Counter, number>>();
  readonly #endedTotals = new Map<string, Map<Counter, number>>();

  /** `max`: grants that have series of their own. */
  constructor(max: number) {
    this.#max = max;
  }

  /** Of a grant that had a series of its own at the last scrape; else undefined. */
  labelOf(uid: string): string | undefined {
    return this.#labels.get(uid);
  }

  /**
   * The series of a scrape. A grant keeps its series until it ends; the first ones that have none
   * come next. Series without grants are not shown, but for the common one.
   */
  next(grants: readonly GrantFigures<Counter, Gauge>[]): Series<Counter, Gauge>[] {
    this.#name(grants);
    const labelOf = ({ uid }: { readonly uid: string }) => this.#labels.get(uid) ?? OTHER;
    const present = new Set(grants.map(labelOf));
    for (const [label, sums] of this.#sums)
      if (label !== OTHER && !present.has(label)) this.#end(label, sums);
    for (const label of present) this.#resume(label);
    const gauges = new Map<string, Map<Gauge, number>>();
    const before = new Map<string, ReadonlyMap<Counter, number>>();
    for (const grant of grants) {
      before.set(grant.uid, this.#add(grant, entryOf(this.#sums, labelOf(grant))));
      addAll(entryOf(gauges, labelOf(grant)), knownOf(grant.gauges));
    }
    this.#before = before;
    return [...this.#sums].map(([label, counters]) => ({
      label,
      counters: new Map(counters),
      gauges: gauges.get(label) ?? new Map<Gauge, number>(),
    }));
  }

  #end(label: string, sums: Map<Counter, number>): void {
    this.#sums.delete(label);
    this.#endedTotals.set(label, sums);
    const [oldest] = this.#endedTotals.keys();
    if (this.#endedTotals.size > KEPT) this.#endedTotals.delete(oldest!);
  }

  #resume(label: string): void {
    const sums = this.#endedTotals.get(label);
    if (sums === undefined) return;
    this.#endedTotals.delete(label);
    this.#sums.set(label, sums);
  }

  #name(grants: readonly GrantFigures<Counter, Gauge>[]): void {
    const living = new Set(grants.map(({ uid }) => uid));
    for (const uid of this.#labels.keys()) if (!living.has(uid)) this.#labels.delete(uid);
    for (const { uid, label } of grants) {
      if (this.#labels.size >= this.#max) return;
      if (!this.#labels.has(uid)) this.#labels.set(uid, label === OTHER ? uid : label);
    }
  }

  /** Answers what the grant's next figures are compared with. */
  #add({ uid, counters }: GrantFigures<Counter, Gauge>, sums: Map<Counter, number>) {
    const before = this.#before.get(uid);
    const now = knownOf(counters);
    const growth = new Map(
      [...now].map(([name, value]) => [name, Math.max(value - (before?.get(name) ?? 0), 0)]),
    );
    addAll(sums, growth);
    return new Map([...(before ?? []), ...now]);
  }
}

function entryOf<Name extends string>(all: Map<string, Map<Name, number>>, label: string): Map<Name, number> {
  const entry = all.get(label) ?? new Map<Name, number>();
  all.set(label, entry);
  return entry;
}

function knownOf<Name extends string>(
  figures: Readonly<Partial<Record<Name, number | null>>>,
): Map<Name, number> {
  const entries = Object.entries(figures) as [Name, number | null][];
  return new Map(entries.filter((entry): entry is [Name, number] => entry[1] !== null));
}

function addAll<Name extends string>(sums: Map<Name, number>, amounts: ReadonlyMap<Name, number>): void {
  for (const [name, amount] of amounts) sums.set(name, (sums.get(name) ?? 0) + amount);
}
