// needs: process
// The values of registerMetrics, read like OpenTelemetry's SDK reads them.
import { readFileSync } from 'node:fs';
import { createNoopMeter, metrics } from '@opentelemetry/api';
import { AggregationTemporality, MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import type { ManagerView } from 'numalign';
import { describe, expect, it, onTestFinished } from 'vitest';
import { collect, MACHINE, openReal } from '../../../test/support/collected.js';
import { thrownBy } from '../../../test/support/error-of.js';
import { simulate } from '../../../test/support/simulated.js';
import { type MeterOptions, registerMetrics } from '../lib/opentelemetry.js';
import { instrumentOf } from '../lib/sinks/meter-sink.js';

class Reader extends MetricReader {
  protected async onForceFlush() {}
  protected async onShutdown() {}
}

interface Point {
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly value: unknown;
}

/** An SDK with the metrics of this manager. `temporality`: how it reads changes. */
function read(
  manager: ManagerView,
  options: MeterOptions = {},
  temporality = AggregationTemporality.CUMULATIVE,
) {
  const reader = new Reader({ aggregationTemporalitySelector: () => temporality });
  const provider = new MeterProvider({ readers: [reader] });
  onTestFinished(() => provider.shutdown());
  const registration = registerMetrics(manager, { meter: provider.getMeter('test'), ...options });
  onTestFinished(() => registration.stop());
  const read = async () => {
    const { resourceMetrics, errors } = await reader.collect();
    expect(errors).toEqual([]);
    const metrics = resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics);
    return new Map(
      metrics.map(({ descriptor, dataPoints }) => [
        descriptor.name,
        { unit: descriptor.unit, points: dataPoints as readonly Point[] },
      ]),
    );
  };
  return { registration, read };
}

type Read = Awaited<ReturnType<ReturnType<typeof read>['read']>>;

const pointOf = (metrics: Read, name: string, attributes: Record<string, string> = {}) =>
  metrics
    .get(name)
    ?.points.find((point) =>
      Object.entries(attributes).every(([key, value]) => point.attributes[key] === value),
    )?.value;

describe('registerMetrics', () => {
  it('takes the meter of the global provider, in a scope with name and version', async () => {
    const reader = new Reader();
    const provider = new MeterProvider({ readers: [reader] });
    metrics.setGlobalMeterProvider(provider);
    onTestFinished(async () => {
      metrics.disable();
      await provider.shutdown();
    });
    using _ = registerMetrics(await simulate(MACHINE));
    const { resourceMetrics } = await reader.collect();
    const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
    expect(resourceMetrics.scopeMetrics.map(({ scope }) => scope)).toMatchObject([
      { name: 'numalign', version },
    ]);
  });

  it('reports the state, without the kubelet’s own metrics', async () => {
    const manager = await simulate(MACHINE);
    await manager.acquire({ cpu: 4 });
    const metrics = await read(manager).read();
    expect(pointOf(metrics, 'numalign.free_cpus')).toBe(12);
    expect(pointOf(metrics, 'numalign.grants', { enforcement: 'recorded' })).toBe(1);
    expect(pointOf(metrics, 'numalign.state.usable')).toBe(1);
    expect([...metrics.keys()].filter((name) => !/^numalign\.[a-z0-9_.]+$/.test(name))).toEqual([]);
    expect([...metrics.keys()].filter((name) => name.startsWith('numalign.grant.'))).toEqual([]);
  });

  it('reports the audits of each grant, like the metrics for Prometheus', async () => {
    const manager = await openReal();
    const { scrape } = collect(manager, { audit: true });
    const { read: collectOnce } = read(manager, { audit: true, grants: { memory: true } });
    const grant = await manager.acquire({ cpu: 1, name: 'gateway' });
    grant.pin();
    await collectOnce();
    for (const begin = process.cpuUsage(); process.cpuUsage(begin).user < 20_000; );
    const metrics = await collectOnce();
    expect(pointOf(metrics, 'numalign.grant.run', { grant: 'gateway' })).toBeGreaterThan(0.01);
    expect(metrics.get('numalign.grant.run')?.unit).toBe('s');
    const { uid, cpus, numaNodes, enforcement } = grant;
    const info = { grant: 'gateway', uid, cpus: `${cpus}`, numa_nodes: `${numaNodes}`, enforcement };
    expect(pointOf(metrics, 'numalign.grant.info', info)).toBe(1);
    const prometheus = Object.keys((await scrape()).types).filter((name) => /^numalign_grant_/.test(name));
    const expected = prometheus.map((name) => instrumentOf(name.slice('numalign_'.length)).name);
    // Without flags there is nothing of them.
    const found = [...metrics.keys()].filter((name) => name.startsWith('numalign.grant.'));
    expect(found.sort()).toEqual(
      [...expected, 'numalign.grant.memory_elsewhere']
        .filter((name) => name !== 'numalign.grant.flags')
        .sort(),
    );
    await grant.release();
  });

  it.each([
    ['grant_run_delay_seconds_total', 'numalign.grant.run_delay', 's'],
    ['grant_involuntary_switches_total', 'numalign.grant.involuntary_switches', '{switch}'],
    ['grant_device_interrupts_total', 'numalign.grant.device_interrupts', '{interrupt}'],
    ['grant_recent_foreign_tasks', 'numalign.grant.recent_foreign_tasks', '{task}'],
    ['grant_memory_elsewhere_bytes', 'numalign.grant.memory_elsewhere', 'By'],
    ['grant_flags', 'numalign.grant.flags', '{flag}'],
    ['grants', 'numalign.grants', '{grant}'],
    ['memory_free_bytes', 'numalign.memory.free', 'By'],
    ['state_generation', 'numalign.state.generation', ''],
    ['free_cpus', 'numalign.free_cpus', '{cpu}'],
  ])('names %s by its conventions', (name, instrument, unit) => {
    expect(instrumentOf(name)).toEqual({ name: instrument, unit });
  });

  it.each([
    ['absent if the SDK reports differences', AggregationTemporality.DELTA, undefined],
    ['still 0 where it tells sums', AggregationTemporality.CUMULATIVE, 0],
  ])('reports gauges of an ended grant as 0 once; they are then %s', async (_, temporality, last) => {
    const manager = await simulate(MACHINE);
    const { read: collectOnce } = read(manager, { audit: true }, temporality);
    const grant = await manager.acquire({ cpu: 2, name: 'gateway' });
    const level = async () =>
      pointOf(await collectOnce(), 'numalign.grant.enforcement', { grant: 'gateway', level: 'recorded' });
    expect(await level()).toBe(1);
    await grant.release();
    expect(await level()).toBe(0);
    expect(await level()).toBe(last);
  });

  it('lets no counter fall if a grant ends and another with its name comes', async () => {
    const manager = await openReal();
    const { read: collectOnce } = read(manager, { audit: true });
    const runs: number[] = [];
    const look = async () =>
      runs.push(pointOf(await collectOnce(), 'numalign.grant.run', { grant: 'gateway' }) as number);
    for (let i = 0; i < 2; i++) {
      const grant = await manager.acquire({ cpu: 1, name: 'gateway' });
      grant.pin();
      await look();
      for (const begin = process.cpuUsage(); process.cpuUsage(begin).user < 10_000; );
      await look();
      await grant.release();
      await look();
    }
    const [begin, first, , , last] = runs;
    expect(first).toBeGreaterThan(begin!);
    expect(last).toBeGreaterThan(first!);
    expect(runs).toEqual([0, first, first, first, last, last]);
  });

  it('reports nothing without a query of the state, and nothing after its end', async () => {
    const manager = await simulate(MACHINE);
    const { registration, read: collectOnce } = read(manager);
    let looks = 0;
    const grants = manager.grants.bind(manager);
    manager.grants = () => {
      looks++;
      return grants();
    };
    await collectOnce();
    expect(looks).toBe(1);
    registration.stop();
    registration.stop();
    await collectOnce();
    expect(looks).toBe(1);
  });

  it('does nothing without an SDK', async () => {
    const manager = await simulate(MACHINE);
    manager.grants = () => {
      throw new Error('no queries expected');
    };
    registerMetrics(manager).stop();
    using _registration = registerMetrics(manager, { meter: createNoopMeter(), audit: true });
  });

  it.each([
    [{ meter: {} }, 'meter'],
    [{ audit: 1 }, 'audit'],
    [{ grants: { max: 0.5 } }, 'grants.max'],
    [{ register: 1 }, 'Valid are: meter, audit, grants'],
  ])('refuses %j', async (options, message) => {
    const manager = await simulate(MACHINE);
    const error = thrownBy(() => registerMetrics(manager, options as never));
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', message: expect.stringContaining(message) });
    expect(thrownBy(() => registerMetrics({} as never))).toMatchObject({ code: 'ERR_INVALID_OPTION' });
  });
});
