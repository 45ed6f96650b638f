// Serves the page, metrics and health until a signal ends it.

import { collectMetrics, type GrantMetricsOptions } from '@numalign/metrics';
import { machinePage, readPageToken } from '@numalign/page';
import { addressText, end, type ListenAddress, listen } from '@numalign/page/listening';
import { type Manager, openManager } from 'numalign';
import { type DeviceFlags, devicesOf } from '../arguments/devices.js';
import { managerOptions, type OpeningFlags } from '../arguments/placement-flags.js';
import type { StateFlags } from '../arguments/state-dir.js';
import { openingLines } from '../pages/pod-text.js';
import { print, tell } from '../terminal/output.js';
import { abortAtEnd } from '../terminal/signals.js';
import { jsonLine, printable } from '../terminal/text.js';
import { ailments } from './agent-health.js';
import { Rounds } from './agent-rounds.js';
import { type Answer, handlerOf, PLAIN_TEXT } from './agent-server.js';

export interface ServeFlags extends OpeningFlags, DeviceFlags, StateFlags {
  maxGrants?: number;
  memoryElsewhere?: boolean;
  besideKubelet?: boolean;
  pageTokenFile?: string;
}

/** Returns when a signal ends the agent (SIGINT, SIGTERM, SIGHUP, SIGQUIT). */
export async function serve(flags: ServeFlags, listenAt: ListenAddress): Promise<void> {
  const { stateDir, besideKubelet, output, pageTokenFile, memoryElsewhere: memory } = flags;
  const token = pageTokenFile === undefined ? undefined : readPageToken(pageTokenFile);
  const manager = await openManager({
    ...(await managerOptions(flags)),
    // The agent's own rounds reconcile, so that /healthz can report the last one.
    cpuManagerReconcilePeriod: 0,
    devices: await devicesOf(flags),
    ...(stateDir !== undefined && { stateDir }),
    ...(besideKubelet !== undefined && { besideKubelet }),
  });
  openingLines(manager.warnings).forEach(tell);
  const page = machinePage(manager, { ...(token !== undefined && { token }), ...(memory && { memory }) });
  const { signal, stop } = abortAtEnd();
  const rounds = new Rounds(manager);
  try {
    const fail = onceEach(tell);
    manager.on('error', fail);
    const metrics = metricsOf(manager, grantMetrics(flags));
    // With this listener the manager takes back the grants of dead owners.
    manager.on('change', () => rounds.run());
    rounds.run();
    const answers = { '/metrics': metrics, '/healthz': () => healthOf(manager, rounds.lastFailure) };
    const { server, address } = await listen(listenAt, handlerOf({ answers, page }), fail);
    print(readyText(manager, address, output));
    if (!signal.aborted)
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    page.close();
    await end(server);
  } finally {
    rounds.stop();
    page.close();
    manager.close();
    stop();
  }
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

// The manager repeats an error at each look: tell only changes.
function onceEach(tell: (text: string) => void): (error: Error) => void {
  let last: string | undefined;
  return ({ message }) => {
    if (message !== last) tell(message);
    last = message;
  };
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
