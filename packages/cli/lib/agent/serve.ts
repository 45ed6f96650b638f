// Serves the page, metrics and health until a signal ends it.

import { collectMetrics, type GrantMetricsOptions } from '@numalign/metrics';
import { machinePage, readPageToken } from '@numalign/page';
import {
  type Answer,
  addressText,
  end,
  handlerOf,
  type ListenAddress,
  listen,
  PLAIN_TEXT,
} from '@numalign/page/listening';
import type { Manager } from 'numalign';
import { print } from '../terminal/output.js';
import { jsonLine, printable } from '../terminal/text.js';
import { ailments } from './agent-health.js';
import { type AgentFlags, tellOnce, withManager } from './agent-manager.js';
import { Rounds } from './agent-rounds.js';

export interface ServeFlags extends AgentFlags {
  maxGrants?: number;
  memoryElsewhere?: boolean;
  pageTokenFile?: string;
}

/** Returns when a signal ends the agent. */
export function serve(flags: ServeFlags, listenAt: ListenAddress): Promise<void> {
  const { pageTokenFile, memoryElsewhere: memory } = flags;
  const token = pageTokenFile === undefined ? undefined : readPageToken(pageTokenFile);
  // The agent's own rounds reconcile, so that /healthz can report the last one.
  return withManager(flags, { cpuManagerReconcilePeriod: 0 }, async (manager, untilEnded) => {
    const page = machinePage(manager, { ...(token !== undefined && { token }), ...(memory && { memory }) });
    const rounds = new Rounds(manager);
    try {
      const metrics = metricsOf(manager, grantMetrics(flags));
      // With this listener the manager takes back the grants of dead owners.
      manager.on('change', () => rounds.run());
      rounds.run();
      const answers = { '/metrics': metrics, '/healthz': () => healthOf(manager, rounds.lastFailure) };
      const handler = handlerOf({ answers, page });
      const { server, address } = await listen(listenAt, handler, ({ message }) => tellOnce(message));
      print(readyText(manager, address, flags.output));
      await untilEnded();
      page.close();
      await end(server);
    } finally {
      rounds.stop();
      page.close();
    }
  });
}

function readyText(
  { stateDir, scope }: Manager,
  address: ListenAddress,
  output: ServeFlags['output'],
): string {
  const url = `http://${addressText(address)}`;
  if (output === 'json') return jsonLine({ url, ...address, pid: process.pid, stateDir, scope });
  return `listening on ${url}: a page at /, /metrics and /healthz of ${printable(stateDir)} (${scope})\n`;
}

function grantMetrics({ maxGrants, memoryElsewhere }: ServeFlags): GrantMetricsOptions {
  return {
    ...(maxGrants !== undefined && { max: maxGrants }),
    ...(memoryElsewhere !== undefined && { memory: memoryElsewhere }),
  };
}

function metricsOf(manager: Manager, grants: GrantMetricsOptions): () => Promise<Answer> {
  const { register } = collectMetrics(manager, { watch: true, audit: true, requests: false, grants });
  return async () => ({ status: 200, type: register.contentType, text: await register.metrics() });
}

function healthOf(manager: Manager, lastFailure: unknown): Answer {
  const lines = ailments(manager, lastFailure);
  const text = lines.length === 0 ? 'ok\n' : `${lines.map(printable).join('\n')}\n`;
  return { status: lines.length === 0 ? 200 : 503, type: PLAIN_TEXT, text };
}
