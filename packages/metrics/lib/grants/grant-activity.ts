// Metrics of each grant: how it stands, and what happens on its CPUs.
import { ENFORCEMENT_LEVELS } from 'numalign/tools';
import type { MetricSink, Values } from '../sinks/metric-sink.js';
import { GRANT_COUNTERS, GRANT_GAUGES, type GrantCounter, type GrantGauge } from './grant-figures.js';
import { flagCodeOf, type GrantLook, type GrantSnapshot } from './grant-look.js';

const LABEL = ['grant'];

type Series = GrantSnapshot['series'][number];

/** @param look at the grants, once for all metrics of a scrape */
export function grantActivity(metrics: MetricSink, { snapshot, memory }: GrantLook): void {
  metrics.gauge(
    'grant_info',
    '1 for a grant of a living owner, with its uid, CPUs, NUMA nodes and enforcement level, to join.',
    [...LABEL, 'uid', 'cpus', 'numa_nodes', 'enforcement'],
    () =>
      snapshot()?.infos.map(({ label, grant: { uid, cpus, numaNodes, enforcement } }) => {
        return [{ grant: label, uid, cpus: `${cpus}`, numa_nodes: `${numaNodes}`, enforcement }, 1];
      }),
  );
  metrics.gauge(
    'grant_enforcement',
    '1 at the enforcement level of the grant, 0 at others. Of grants that share a series, how many are at the level.',
    [...LABEL, 'level'],
    () =>
      snapshot()?.series.flatMap(({ label, gauges }) =>
        ENFORCEMENT_LEVELS.map((level) => [{ grant: label, level }, gauges.get(level) ?? 0] as const),
      ),
  );
  metrics.gauge(
    'grant_flags',
    'Flags of the grant by code. Without flags there is no series.',
    [...LABEL, 'code'],
    () =>
      snapshot()?.series.flatMap(({ label, gauges }) =>
        [...gauges].flatMap(([name, count]) => {
          const code = flagCodeOf(name);
          return code === undefined ? [] : [[{ grant: label, code }, count] as const];
        }),
      ),
  );
  const ofEach = (amountOf: (series: Series) => number | undefined) => (): Values =>
    snapshot()?.series.flatMap((series) => {
      const value = amountOf(series);
      return value === undefined ? [] : [[{ grant: series.label }, value] as const];
    });
  for (const [name, { help }] of entriesOf(GRANT_GAUGES)) {
    if (name === 'grant_memory_elsewhere_bytes' && !memory) continue;
    metrics.gauge(
      name,
      help,
      LABEL,
      ofEach(({ gauges }) => gauges.get(name)),
    );
  }
  for (const [name, { help }] of entriesOf(GRANT_COUNTERS))
    metrics.counter(
      name,
      help,
      LABEL,
      ofEach(({ counters }) => counters.get(name)),
    );
}

const entriesOf = <Name extends GrantCounter | GrantGauge, T>(definitions: Readonly<Record<Name, T>>) =>
  Object.entries(definitions) as [Name, T][];
