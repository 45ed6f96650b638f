// GrantLook: how the grants of a state stand and what happens on their CPUs, from scrape to scrape.
import type { EnforcementLevel, GrantInfo, ManagerView } from 'numalign';
import { ENFORCEMENT_LEVELS, type GrantWatch, unlessRefused, watchGrants } from 'numalign/tools';
import { oncePerScrape } from '../sinks/metric-sink.js';
import {
  figuresOf,
  GRANT_COUNTERS,
  GRANT_GAUGES,
  type GrantCounter,
  type GrantGauge,
} from './grant-figures.js';
import { GrantSeries, type Series } from './grant-series.js';

const FLAG = 'flag ';

/** What has a second label is a gauge for each of its values. */
type Gauge = GrantGauge | EnforcementLevel | `${typeof FLAG}${GrantInfo['flags'][number]['code']}`;

/** Of a gauge that counts flags. */
export function flagCodeOf(gauge: string): string | undefined {
  return gauge.startsWith(FLAG) ? gauge.slice(FLAG.length) : undefined;
}

export interface GrantSnapshot {
  /** Of grants with a series of their own. */
  readonly infos: readonly { readonly label: string; readonly grant: GrantInfo }[];
  readonly series: readonly Series<GrantCounter, Gauge>[];
}

/** The state's grants; undefined where it cannot be read. */
type GrantsNow = () => { readonly grants: readonly GrantInfo[] } | undefined;

interface GrantLookOptions {
  /** Grants that have series of their own. */
  readonly max: number;
  /** Also where their memory is. */
  readonly memory: boolean;
}

export class GrantLook {
  /** Once for all metrics of a scrape; undefined where the state cannot be read. */
  readonly snapshot: () => GrantSnapshot | undefined;
  readonly memory: boolean;
  readonly #state: GrantsNow;
  readonly #watch: GrantWatch;
  readonly #series: GrantSeries<GrantCounter, Gauge>;

  constructor(manager: ManagerView, state: GrantsNow, { max, memory }: GrantLookOptions) {
    this.#state = state;
    this.#watch = watchGrants(manager);
    this.#series = new GrantSeries(max);
    this.memory = memory;
    this.snapshot = oncePerScrape(() => unlessRefused(() => this.#look()));
  }

  #look(): GrantSnapshot | undefined {
    const grants = this.#state()?.grants.filter(({ alive }) => alive);
    if (grants === undefined) return undefined;
    const living = new Set(grants.map(({ uid }) => uid));
    const watched = new Map(this.#watch.look(this.memory, living).map((each) => [each.uid, each]));
    const series = this.#series.next(
      grants.map((grant) => {
        const { uid, name, owner } = grant;
        const { label = name, audit } = watched.get(uid) ?? {};
        const gauges = { ...figuresOf(GRANT_GAUGES, audit, owner), ...factsOf(grant) };
        const counters = figuresOf(GRANT_COUNTERS, audit, owner);
        return { uid, label, counters, gauges };
      }),
    );
    const infos = grants.flatMap((grant) => {
      const label = this.#series.labelOf(grant.uid);
      return label === undefined ? [] : [{ label, grant }];
    });
    return { infos, series };
  }
}

function factsOf({ enforcement, flags }: GrantInfo): Partial<Record<Gauge, number>> {
  const facts: Partial<Record<Gauge, number>> = {};
  for (const level of ENFORCEMENT_LEVELS) facts[level] = level === enforcement ? 1 : 0;
  for (const { code } of flags) facts[`${FLAG}${code}`] = (facts[`${FLAG}${code}`] ?? 0) + 1;
  return facts;
}
