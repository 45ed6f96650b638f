// Serving: metrics and health on one address, and the page on another or the same.
import type { MachinePage } from '@numalign/page';
import { addressText, end, handlerOf, type ListenAddress, listen } from '@numalign/page/listening';
import type { Manager } from 'numalign';
import type { Log } from '../base/log.js';
import { PrometheusMetrics } from '../metrics/prometheus.js';
import { healthOf, type Probed, readinessOf } from './health.js';

export interface ServingOptions {
  readonly manager: Manager;
  readonly log: Log;
  readonly probed: Probed;
  /** Where metrics and health are served; undefined: nowhere. */
  readonly listen: ListenAddress | undefined;
  readonly metrics: PrometheusMetrics | undefined;
  /** Where the page is served; undefined: nowhere. */
  readonly page: ListenAddress | undefined;
  readonly pageToken: string | undefined;
}

/** The node's registry, with the metrics of the manager and of `maxGrants` grants. */
export async function openMetrics(
  manager: Manager,
  { maxGrants, version }: { readonly maxGrants: number; readonly version: string },
): Promise<PrometheusMetrics> {
  const metrics = await PrometheusMetrics.open();
  // Most of its memory is prom-client's, which a node without metrics does not load either.
  const { collectMetrics } = await import('@numalign/metrics');
  metrics.gauge('info', 'The version of numalign-node.', ['version'], () => [[{ version }, 1]]);
  const grants = { audit: maxGrants > 0, grants: { max: maxGrants } };
  collectMetrics(manager, { register: metrics.register, watch: true, ...grants });
  return metrics;
}

/** Serves until it is closed. @throws ERR_SYSCALL if it cannot listen */
export async function serve(options: ServingOptions): Promise<{ close(): Promise<void> }> {
  const { manager, log, listen: listenAt, page: pageAt, pageToken } = options;
  const page =
    pageAt &&
    (await import('@numalign/page')).machinePage(
      manager,
      pageToken === undefined ? {} : { token: pageToken },
    );
  const closes: (() => Promise<void>)[] = [];
  const open = async (at: ListenAddress, what: string, handler: MachinePage['handler']) => {
    const fail = ({ message }: Error) => log('error', `${what}: ${message}`);
    const { server, address } = await listen(at, handler, fail);
    closes.push(() => end(server));
    log('info', `${what} at http://${addressText(address)}`);
  };
  const close = async () => {
    page?.close();
    for (const each of closes) await each();
  };
  const isShared = listenAt && pageAt && addressText(listenAt) === addressText(pageAt);
  try {
    const own = { answers: answersOf(options), page: isShared ? page : undefined };
    if (listenAt)
      await open(listenAt, `metrics and health${isShared ? ', and the page,' : ''} are`, handlerOf(own));
    if (pageAt && page && !isShared) await open(pageAt, 'the page is', page.handler);
  } catch (error) {
    await close();
    throw error;
  }
  return { close };
}

const answersOf = ({ metrics, probed }: ServingOptions) => ({
  ...(metrics && {
    '/metrics': async () => {
      const { register } = metrics;
      return { status: 200, type: register.contentType, text: await register.metrics() } as const;
    },
  }),
  '/healthz': () => healthOf(probed),
  '/readyz': () => readinessOf(probed),
});
