// What an operator sees of each decision: a line of the log, metrics and an Event.
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openManager } from 'numalign';
import { discover } from 'numalign/topology';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { LogFields } from '../../lib/base/log.js';
import { CpusetFiles } from '../../lib/cgroups/cpuset-files.js';
import { ContainerHandlers } from '../../lib/containers/container-handlers.js';
import { Reports } from '../../lib/containers/reports.js';
import type { NodeEvent } from '../../lib/events/event.js';
import { PrometheusMetrics } from '../../lib/metrics/prometheus.js';
import { CallsInProgress, observedHandlers } from '../../lib/observation/observed-handlers.js';
import { containerOf, podOf } from '../support/nri-objects.js';
import { MACHINE, simulatedNode } from '../support/simulated-node.js';

interface Line extends LogFields {
  readonly level: string;
  readonly message: string;
}

/** Handlers of a simulated machine, and what they report. */
async function observed() {
  const manager = await openManager({ topology: await discover({ synthetic: MACHINE }) });
  const folder = mkdtempSync(join(tmpdir(), 'numalign-reports-'));
  const metrics = await PrometheusMetrics.open();
  const [lines, events]: [Line[], NodeEvent[]] = [[], []];
  const log = (level: string, message: string, fields?: LogFields) =>
    void lines.push({ level, message, ...fields });
  const recordEvent = (event: NodeEvent) => void events.push(event);
  const reports = new Reports({ prefix: 'numalign', log, metrics, recordEvent });
  const handlers = new ContainerHandlers({
    ...{ manager, prefix: 'numalign', cpusets: new CpusetFiles(folder), log, reports },
    tell: async () => {},
  });
  onTestFinished(() => {
    handlers.close();
    manager.close();
    rmSync(folder, { recursive: true });
  });
  const calls = new CallsInProgress();
  return {
    handlers: observedHandlers(handlers, calls, { reports, metrics, log }),
    decisions: () => lines.filter(({ decision }) => decision !== undefined),
    ...{ calls, events, lines, manager },
    scrape: () => metrics.register.metrics(),
  };
}

const CALL = { timeout: undefined, signal: new AbortController().signal };
const POD = podOf();
const EXCLUSIVE = containerOf({ id: 'own', cpus: 2, memory: 2 ** 20 });
const TOO_LARGE = containerOf({ id: 'large', cpus: 100, memory: 2 ** 20 });

describe('An admission', () => {
  it('with CPUs of its own has a line with the pod, the container and the time, and an Event', async () => {
    const { handlers, decisions, events } = await observed();
    await handlers.createContainer(POD, EXCLUSIVE, CALL);
    expect(decisions()).toEqual([
      {
        ...{ level: 'info', message: 'numalign:default/web/main has CPUs 0-1, memory of NUMA nodes 0' },
        ...{ pod: 'default/web', container: 'main', id: 'own', decision: 'admit' },
        ...{ kind: 'exclusive', cpus: '0-1', mems: '0', ms: expect.any(Number) },
      },
    ]);
    expect(events).toMatchObject([
      { type: 'Normal', reason: 'CPUsAssigned', about: { name: 'web', container: 'main' } },
    ]);
  });

  it('to the shared pool has a line, and no Event', async () => {
    const { handlers, decisions, events, scrape } = await observed();
    await handlers.createContainer(POD, containerOf(), CALL);
    expect(decisions()).toMatchObject([{ decision: 'admit', kind: 'shared', cpus: '0-7' }]);
    expect(events).toEqual([]);
    const text = await scrape();
    expect(text).toContain('numalign_node_admissions_total{result="shared",reason=""} 1');
    expect(text).toContain('numalign_node_admissions_total{result="exclusive",reason=""} 0');
    expect(text).toMatch(/call_duration_seconds_count\{call="createContainer"\} 1/);
  });
});

describe('A refusal', () => {
  it('has a line with the code, is counted by it, and has an Event of its pod', async () => {
    const { handlers, decisions, events, scrape } = await observed();
    await expect(handlers.createContainer(POD, TOO_LARGE, CALL)).rejects.toThrow();
    const code = 'ERR_INSUFFICIENT_CPUS';
    expect(decisions()).toMatchObject([{ level: 'warn', decision: 'refuse', pod: 'default/web', code }]);
    expect(decisions()[0]!.message).toMatch(/^numalign:default\/web\/main is refused: /);
    const text = await scrape();
    expect(text).toContain(`numalign_node_admissions_total{result="refused",reason="${code}"} 1`);
    expect(text).toContain(`numalign_node_refusals_total{call="createContainer",reason="${code}"} 1`);
    expect(events).toMatchObject([{ type: 'Warning', reason: 'PlacementRefused', about: { uid: POD.uid } }]);
  });

  it('of a container that runs is an error, and an Event', async () => {
    const { handlers, decisions, events } = await observed();
    await handlers.synchronize([POD], [TOO_LARGE], CALL);
    expect(decisions()).toMatchObject([{ level: 'error', decision: 'refuse', call: 'synchronize' }]);
    expect(events).toMatchObject([{ reason: 'NotPlaced' }]);
  });
});

describe('The end of a grant', () => {
  it('has a line with the CPUs that are free again, and is counted', async () => {
    const { handlers, manager, decisions, scrape } = await observed();
    const isKnown = once(manager, 'change');
    await handlers.createContainer(POD, EXCLUSIVE, CALL);
    await isKnown;
    await handlers.stopContainer(POD, EXCLUSIVE, CALL);
    const isReleased = () => decisions().find(({ decision }) => decision === 'release');
    await expect.poll(isReleased).toMatchObject({ pod: 'default/web', container: 'main', cpus: '0-1' });
    expect(await scrape()).toContain('numalign_node_releases_total 1');
  });
});

describe('A grant that does not hold any more', () => {
  it('is logged with its flag', async () => {
    const { handlers, manager, lines } = await observed();
    const isKnown = once(manager, 'change');
    await handlers.createContainer(POD, EXCLUSIVE, CALL);
    await isKnown;
    await manager.configure({ reservedSystemCPUs: '0' });
    const facts = { level: 'warn', pod: 'default/web', container: 'main', code: 'CPU_RESERVED' };
    await expect.poll(() => lines).toContainEqual(expect.objectContaining(facts));
  });
});

describe('A repair', () => {
  it('has an Event of its container', async () => {
    const node = await simulatedNode();
    await node.handlers.createContainer(POD, EXCLUSIVE);
    const path = EXCLUSIVE.linux!.cgroups_path;
    node.makeCgroup(path, '0-1');
    await node.handlers.startContainer(POD, EXCLUSIVE);
    writeFileSync(join(node.cgroups, path, 'cpuset.cpus'), '0-7');
    await expect.poll(() => node.events.map(({ reason }) => reason)).toEqual(['CPUsRestored']);
    expect(node.events[0]!.message).toBe(
      'another program has put container main on CPUs 0-7: it is back on 0-1',
    );
  });
});

describe('Calls of the runtime', () => {
  it('are known until they are answered, and logged for those who debug', async () => {
    const { handlers, calls, lines } = await observed();
    const created = handlers.createContainer(POD, EXCLUSIVE, CALL);
    expect(calls.oldest).toMatchObject({ name: 'createContainer' });
    await created;
    expect(calls.oldest).toBeUndefined();
    expect(lines).toContainEqual(expect.objectContaining({ level: 'debug', call: 'createContainer' }));
  });

  it('are those that the handlers have', () => {
    const reports = {} as Reports;
    const metrics = { histogram: () => ({ observe: () => {} }) } as never;
    const handlers = { synchronize: async () => [], removePodSandbox: () => {} } as never;
    const names = Object.keys(
      observedHandlers(handlers, new CallsInProgress(), { reports, metrics, log: () => {} }),
    );
    expect(names).toEqual(['synchronize', 'removePodSandbox']);
  });
});
