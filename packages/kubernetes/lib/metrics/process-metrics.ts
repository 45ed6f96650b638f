// ProcessMetrics: what the agent itself takes, under the names that all exporters have for it.
import type { Registry } from 'prom-client';
import type { promClient } from '../base/late-packages.js';

// prom-client's own measure the event loop all the time; these are read at a scrape.
export function addProcessMetrics(client: ReturnType<typeof promClient>, register: Registry): void {
  const common = { labelNames: [], registers: [register] };
  new client.Counter({
    ...common,
    name: 'process_cpu_seconds_total',
    help: 'CPU time of the agent, of user and system.',
    collect() {
      const { user, system } = process.cpuUsage();
      this.reset();
      this.inc((user + system) / 1e6);
    },
  });
  new client.Gauge({
    ...common,
    name: 'process_resident_memory_bytes',
    help: 'Resident memory of the agent.',
    collect() {
      this.set(process.memoryUsage.rss());
    },
  });
  new client.Gauge({
    ...common,
    name: 'process_start_time_seconds',
    help: 'When the agent was started, since the epoch.',
  }).set(Math.round(performance.timeOrigin / 1000));
}
