// needs: process
// The metrics of each grant in collectMetrics.
import { spawnSync } from 'node:child_process';
import { openManager } from 'numalign';
import { discover } from 'numalign/topology';
import { describe, expect, it, onTestFinished } from 'vitest';
import { collect, MACHINE, openReal } from '../../../test/support/collected.js';
import { spinningOrphan } from '../../../test/support/orphan.js';
import type { Scrape } from '../../../test/support/scrape.js';
import { guaranteed, simulate } from '../../../test/support/simulated.js';
import { makeStateDir } from '../../../test/support/state-dir.js';
import { until } from '../../cli/test/numalign.js';

const COUNTERS = [
  'run_seconds',
  'run_delay_seconds',
  'involuntary_switches',
  'foreign_tasks',
  'interrupts',
  'device_interrupts',
  'migrations',
];

const countersOf = (page: Scrape, grant: string) =>
  COUNTERS.map((name) => page.value(`numalign_grant_${name}_total`, { grant }));

/** Uses the CPU for this long. */
function work(microseconds: number): void {
  const before = process.cpuUsage();
  while (process.cpuUsage(before).user < microseconds);
}

describe('metrics of each grant', () => {
  it('count the events on its CPUs, and end with it', async () => {
    const manager = await openReal();
    const { scrape } = collect(manager, { audit: true });
    const grant = await manager.acquire({ cpu: 1, name: 'gateway' });
    const recent = (page: Scrape) => page.value('numalign_grant_recent_foreign_tasks', { grant: 'gateway' });
    grant.pin();
    const info = {
      grant: 'gateway',
      uid: grant.uid,
      cpus: `${grant.cpus}`,
      numa_nodes: `${grant.numaNodes}`,
      enforcement: grant.enforcement,
    };
    const first = await scrape();
    expect(first.value('numalign_grant_info', info)).toBe(1);
    expect(countersOf(first, 'gateway')).toEqual([0, 0, 0, 0, 0, 0, 0]);

    spinningOrphan(grant.cpus);
    let second: (number | undefined)[] = [];
    // The orphan may not have come to its CPU at the first look.
    await until(async () => {
      work(50_000);
      const page = await scrape();
      second = countersOf(page, 'gateway');
      return second.slice(0, 5).every((value) => value! > 0) && recent(page)! > 0;
    }, 'a competitor on the grant’s CPU in each counter');
    expect(second[0]).toBeGreaterThan(0.04);
    work(20_000);
    const page = await scrape();
    // It stays.
    expect(recent(page)).toBeGreaterThan(0);
    const third = countersOf(page, 'gateway');
    for (const [i, value] of third.entries()) expect(value).toBeGreaterThanOrEqual(second[i]!);
    expect(third[0]! - second[0]!).toBeGreaterThan(0.015);

    await grant.release();
    const after = await scrape();
    expect([...countersOf(after, 'gateway'), recent(after)]).toEqual(Array(8).fill(undefined));
    expect(after.value('numalign_grant_info', info)).toBeUndefined();
    expect(
      after.value('numalign_grant_enforcement', { grant: 'gateway', level: 'recorded' }),
    ).toBeUndefined();
  });

  it('leave out the unknown threads and foreign tasks of a persistent grant', async () => {
    const manager = await openReal();
    const { scrape } = collect(manager, { audit: true, grants: { memory: true } });
    const { uid } = await manager.admit(
      { name: 'db', containers: [guaranteed('a', { cpu: 1 })] },
      { owner: 'persistent' },
    );
    const page = await scrape();
    const value = (name: string) => page.value(`numalign_grant_${name}`, { grant: 'default/db' });
    expect(value('interrupts_total')).toBe(0);
    const ofThreads = ['run_seconds', 'run_delay_seconds', 'involuntary_switches', 'migrations'];
    const totals = [...ofThreads, 'foreign_tasks'].map((name) => `${name}_total`);
    expect([...totals, 'memory_elsewhere_bytes', 'recent_foreign_tasks'].map(value)).toEqual(
      Array(7).fill(undefined),
    );
    await manager.release(uid);
  });

  it('cover grants with living owners, by their names, else by their ids', async () => {
    const stateDir = makeStateDir();
    const manager = await simulate(MACHINE, { stateDir });
    const { scrape } = collect(manager, { audit: true });
    const unnamed = await manager.acquire({ cpu: 1 });
    await manager.admit({ uid: 'pod-7', containers: [{ name: 'main' }] });
    await manager.admit({ uid: 'pod-8', name: 'web', containers: [{ name: 'main' }] });
    const code = `
      import { discover } from ${JSON.stringify(new URL('../../../dist/entries/topology.js', import.meta.url))};
      import { openManager } from ${JSON.stringify(new URL('../../../dist/index.js', import.meta.url))};
      const topology = await discover({ synthetic: ${JSON.stringify(MACHINE)} });
      const manager = await openManager({ topology, stateDir: ${JSON.stringify(stateDir)} });
      await manager.acquire({ cpu: 1, name: 'dead' });
      process.kill(process.pid, 'SIGKILL');`;
    const { signal } = spawnSync(process.execPath, ['--input-type=module', '-e', code]);
    expect(signal).toBe('SIGKILL');
    const page = await scrape();
    expect(page.value('numalign_dead_grants')).toBe(1);
    const levels = [unnamed.uid, 'pod-7', 'default/web', 'dead'].map((grant) =>
      page.value('numalign_grant_enforcement', { grant, level: 'recorded' }),
    );
    expect(levels).toEqual([1, 1, 1, undefined]);
    expect(page.count('numalign_grant_info')).toBe(3);
  });

  it('have memory elsewhere only on request', async () => {
    const manager = await openReal();
    const pages = [
      collect(manager, { audit: true }),
      collect(manager, { audit: true, grants: { memory: true } }),
    ];
    (await manager.acquire({ cpu: 1, name: 'gateway' })).pin();
    const values = await Promise.all(
      pages.map(async ({ scrape }) =>
        (await scrape()).value('numalign_grant_memory_elsewhere_bytes', { grant: 'gateway' }),
      ),
    );
    const { offNodeBytes } = manager.audit(manager.grants()[0]!.uid, { memory: true });
    expect(values).toEqual([undefined, offNodeBytes ?? undefined]);
  });

  it('show its level of enforcement as one of all, and its flags', async () => {
    const stateDir = makeStateDir();
    const manager = await simulate(MACHINE, { stateDir });
    const { scrape } = collect(manager, { audit: true });
    await manager.acquire({ cpu: 2, name: 'gateway' });
    const levels = async () => {
      const page = await scrape();
      return ['recorded', 'members', 'cpuset', 'partition', 'isolated'].map((level) =>
        page.value('numalign_grant_enforcement', { grant: 'gateway', level }),
      );
    };
    expect(await levels()).toEqual([1, 0, 0, 0, 0]);
    const flag = { grant: 'gateway', code: 'CPU_UNMANAGED' };
    expect((await scrape()).value('numalign_grant_flags', flag)).toBeUndefined();
    const { cpus } = manager.grants()[0]!;
    await manager.recordKubelet([
      { namespace: 'default', name: 'web', containers: [{ name: 'main', cpus: `${cpus}` }] },
    ]);
    expect((await scrape()).value('numalign_grant_flags', { ...flag, code: 'CPU_TAKEN' })).toBe(1);
    await manager.recordKubelet(null);
    expect((await scrape()).value('numalign_grant_flags', { ...flag, code: 'CPU_TAKEN' })).toBeUndefined();
  });

  it('cover a limited number of grants, and sum the others', async () => {
    // In memory, which takes a tenth of the time.
    const manager = await openManager({ topology: await discover({ synthetic: MACHINE }) });
    onTestFinished(() => manager.close());
    const { scrape } = collect(manager, { audit: true, grants: { max: 10 } });
    for (let i = 0; i < 300; i++) await manager.admit({ name: `pod-${i}`, containers: [{ name: 'main' }] });
    const page = await scrape();
    const own = Array.from({ length: 300 }, (_, i) =>
      page.value('numalign_grant_enforcement', { grant: `default/pod-${i}`, level: 'recorded' }),
    );
    expect(own.filter((value) => value !== undefined)).toEqual(Array(10).fill(1));
    expect(page.value('numalign_grant_enforcement', { grant: 'other', level: 'recorded' })).toBe(290);
    expect(page.count('numalign_grant_info')).toBe(10);
    expect(page.count('numalign_grant_enforcement')).toBe(11 * 5);
  });

  it('are limited to 100 grants by default, on a real machine too', async () => {
    const manager = await openReal();
    const { scrape } = collect(manager, { audit: true });
    const grant = await manager.acquire({ cpu: 1, name: 'gateway' });
    for (let i = 0; i < 120; i++) await manager.admit({ name: `pod-${i}`, containers: [{ name: 'main' }] });
    const page = await scrape();
    expect(page.count('numalign_grant_info')).toBe(100);
    // Pods of the shared pool have no CPUs where anything could be counted.
    expect(page.count('numalign_grant_interrupts_total')).toBe(1);
    await grant.release();
  });

  it('read no process without audits', async () => {
    const manager = await openReal();
    const { scrape } = collect(manager);
    await manager.acquire({ cpu: 1 });
    const names = Object.keys((await scrape()).types);
    expect(names.filter((name) => name.startsWith('numalign_grant_'))).toEqual([]);
  });

  it('read the machine once per scrape, and not in between', async () => {
    const manager = await openManager({ stateDir: makeStateDir(), readOnly: true });
    onTestFinished(() => manager.close());
    const looks: number[] = [];
    const { register } = collect(manager, { audit: true });
    const grants = manager.grants.bind(manager);
    manager.grants = () => {
      looks.push(performance.now());
      return grants();
    };
    await register.metrics();
    expect(looks).toHaveLength(1);
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(looks).toHaveLength(1);
  });
});
