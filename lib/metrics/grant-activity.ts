// Metrics of what happens on the CPUs of grants.
import { presentCpus } from '../account/pod-holdings.js';
import type { AuditTotals } from '../audit/account.js';
import { WatchedGrants } from '../audit/watched-grants.js';
import { livingPods, type ManagerView } from '../managers/manager-view.js';
import type { MetricSet } from './metric-set.js';
import { oncePerScrape } from './state.js';

// ---- what happens to the grants

const OF_GRANT = ['grant', 'name'];

export function grantActivity(metrics: MetricSet, manager: ManagerView): void {
  const watched = new WatchedGrants('first look');
  const look = oncePerScrape(() => {
    const { topology } = manager;
    const pods = livingPods(manager);
    const audits = watched.look(topology, pods);
    return pods.map((pod, i) => {
      const cpus = presentCpus(pod);
      const numaNodes = topology.nodesOf(cpus);
      return { pod, cpus, numaNodes, totals: audits[i]!.totals, throttling: audits[i]!.throttling };
    });
  });
  type Seen = NonNullable<ReturnType<typeof look>>[number];
  const labelsOf = ({ pod }: Seen) => ({ grant: pod.uid, name: pod.name });
  metrics.gauge(
    'grant_info',
    'A grant of a living owner: 1, and its CPUs, their NUMA nodes, and how strongly others are kept off.',
    [...OF_GRANT, 'cpus', 'numa_nodes', 'enforcement'],
    () =>
      look()?.map((seen) => {
        const { pod, cpus, numaNodes } = seen;
        const more = { cpus: `${cpus}`, numa_nodes: `${numaNodes}`, enforcement: pod.enforcement.level };
        return [{ ...labelsOf(seen), ...more }, 1] as const;
      }),
  );
  const counter = (name: string, help: string, amountOf: (seen: Seen) => number | null) =>
    metrics.counter(name, help, OF_GRANT, () =>
      look()?.flatMap((seen) => {
        const value = amountOf(seen);
        return value === null ? [] : [[labelsOf(seen), value] as const];
      }),
    );
  const seconds = (ns: number | null) => ns && ns / 1e9;
  // Nobody knows who runs on a persistent grant.
  const ofThreads = ({ pod, totals }: Seen, name: keyof AuditTotals) =>
    pod.owner.kind === 'persistent' ? null : totals[name];

  counter('grant_run_seconds_total', 'How long threads of the grant have run on its CPUs.', (seen) =>
    seconds(ofThreads(seen, 'runTimeNs')),
  );
  counter(
    'grant_run_delay_seconds_total',
    'How long threads of the grant could have run and had to wait.',
    (seen) => seconds(ofThreads(seen, 'runDelayNs')),
  );
  counter(
    'grant_involuntary_switches_total',
    'How many times a thread of the grant had to leave its CPU to another.',
    (seen) => ofThreads(seen, 'involuntarySwitches'),
  );
  counter(
    'grant_foreign_tasks_total',
    'How many times a task of another process was found on CPUs of the grant that was not there at the scrape before.',
    ({ totals }) => totals.foreignTasks,
  );
  counter('grant_interrupts_total', 'Interrupts on CPUs of the grant.', ({ totals }) => totals.interrupts);
  counter(
    'grant_steal_seconds_total',
    'How long the hypervisor ran somebody else on CPUs of the grant.',
    ({ totals }) => seconds(totals.stealNs),
  );
  counter(
    'grant_throttled_seconds_total',
    'How long a quota has stopped the cgroups of the grant’s processes.',
    ({ throttling }) => seconds(throttling?.throttledNs ?? null),
  );
}
