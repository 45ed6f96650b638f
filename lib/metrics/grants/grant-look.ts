// GrantLook: how the grants of a state stand and what happens on their CPUs, from scrape to scrape.
import { ENFORCEMENT_LEVELS, type EnforcementLevel } from '../../account/levels.js';
import type { PodAssignment } from '../../account/pod-assignment.js';
import type { GrantAudit } from '../../audit/account.js';
import { WatchedGrants } from '../../audit/watched-grants.js';
import { unlessRefused } from '../../base/errors.js';
import type { GrantInfo } from '../../decision/grant-info.js';
import { livingPods, type ManagerView } from '../../managers/manager-view.js';
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
  readonly #manager: ManagerView;
  readonly #state: GrantsNow;
  readonly #watchedGrants = new WatchedGrants('first look');
  readonly #series: GrantSeries<GrantCounter, Gauge>;

  constructor(manager: ManagerView, state: GrantsNow, { max, memory }: GrantLookOptions) {
    this.#manager = manager;
    this.#state = state;
    this.#series = new GrantSeries(max);
    this.memory = memory;
    this.snapshot = oncePerScrape(() => unlessRefused(() => this.#look()));
  }

  #look(): GrantSnapshot | undefined {
    const grants = this.#state()?.grants.filter(({ alive }) => alive);
    if (grants === undefined) return undefined;
    const pods = livingPods(this.#manager);
    const labels = new Map(pods.map((pod) => [pod.uid, labelOf(pod)]));
    const audits = this.#audits(pods, grants);
    const series = this.#series.next(
      grants.map((grant) => {
        const { uid, name, owner } = grant;
        const audit = audits.get(uid);
        const gauges = { ...figuresOf(GRANT_GAUGES, audit, owner), ...factsOf(grant) };
        const counters = figuresOf(GRANT_COUNTERS, audit, owner);
        return { uid, label: labels.get(uid) ?? name, counters, gauges };
      }),
    );
    const infos = grants.flatMap((grant) => {
      const label = this.#series.labelOf(grant.uid);
      return label === undefined ? [] : [{ label, grant }];
    });
    return { infos, series };
  }

  /** By grant: of those with CPUs of their own, on a machine that is there. */
  #audits(pods: readonly PodAssignment[], grants: readonly GrantInfo[]): ReadonlyMap<string, GrantAudit> {
    const { topology } = this.#manager;
    if (topology.isSimulated) return new Map();
    const withCpus = new Set(grants.filter(({ cpus }) => !cpus.isEmpty).map(({ uid }) => uid));
    const podsWithCpus = pods.filter(({ uid }) => withCpus.has(uid));
    const audits = this.#watchedGrants.look(topology, podsWithCpus, this.memory);
    return new Map(audits.map((audit) => [audit.grant, audit]));
  }
}

/** A pod's name is one of its namespace. */
function labelOf({ uid, name, namespace }: PodAssignment): string {
  return namespace === undefined || name === uid ? name : `${namespace}/${name}`;
}

function factsOf({ enforcement, flags }: GrantInfo): Partial<Record<Gauge, number>> {
  const facts: Partial<Record<Gauge, number>> = {};
  for (const level of ENFORCEMENT_LEVELS) facts[level] = level === enforcement ? 1 : 0;
  for (const { code } of flags) facts[`${FLAG}${code}`] = (facts[`${FLAG}${code}`] ?? 0) + 1;
  return facts;
}
