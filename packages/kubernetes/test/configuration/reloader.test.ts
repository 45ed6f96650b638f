import { mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ManagerOptions, openManager } from 'numalign';
import { discover } from 'numalign/topology';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readConfiguration } from '../../lib/configuration/configuration.js';
import { firstLive } from '../../lib/configuration/live.js';
import { openConfigured } from '../../lib/configuration/open-configured.js';
import { Reloader } from '../../lib/configuration/reloader.js';
import type { NodeEvent } from '../../lib/events/event.js';
import type { Metrics } from '../../lib/metrics/metrics.js';

const HEAD = 'kind: NodeConfiguration\n';
// Two NUMA nodes of four cores.
const MACHINE = 'numa:2(memory=8GB) core:4 pu:1';

/** The values of what was registered, by name and label. */
function countedMetrics(): Metrics & { readonly of: (name: string, label: string) => number } {
  const counts = new Map<string, number>();
  const gauges = new Map<string, () => Iterable<readonly [Readonly<Record<string, string>>, number]>>();
  return {
    counter: (name) => ({
      add: (labels = {}, count = 1) => {
        const key = `${name} ${Object.values(labels)}`;
        counts.set(key, (counts.get(key) ?? 0) + count);
      },
    }),
    histogram: () => ({ observe: () => {} }),
    gauge: (name, _help, _labels, values) => void gauges.set(name, values),
    of: (name, label) =>
      counts.get(`${name} ${label}`) ??
      [...(gauges.get(name)?.() ?? [])].find(([labels]) => Object.values(labels)[0] === label)?.[1] ??
      Number.NaN,
  };
}

/** A reloader of a file on a simulated machine, whose state outlives it. */
async function reloaderOf(fields: string, before?: (options: ManagerOptions) => Promise<void>) {
  const folder = mkdtempSync(join(tmpdir(), 'numalign-reload-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'node.yaml');
  const write = (text: string, kind = HEAD) => writeFileSync(file, kind + text);
  write(fields);
  const options = { topology: await discover({ synthetic: MACHINE }), stateDir: join(folder, 'state') };
  await before?.(options);
  const sources = { file, flags: {} };
  const configuration = readConfiguration(sources);
  const { manager, waiting } = await openConfigured(configuration, options);
  onTestFinished(() => manager.close());
  const lines: string[] = [];
  const events: NodeEvent[] = [];
  const metrics = countedMetrics();
  let changes = 0;
  const reloader = new Reloader({
    ...{ manager, sources, configuration, waiting, metrics },
    live: firstLive(configuration, manager),
    log: (level, message) => lines.push(`${level}: ${message}`),
    recordEvent: (event) => events.push(event),
    changed: () => changes++,
  });
  onTestFinished(() => reloader.close());
  await reloader.start();
  return { folder, file, write, manager, reloader, lines, events, metrics, changes: () => changes };
}

const POD = (uid: string, cpu: number) => ({
  uid,
  qosClass: 'Guaranteed' as const,
  containers: [{ name: 'main', limits: { cpu, memory: 2 ** 20 } }],
});

describe('A changed configuration', () => {
  it('applies to the next request: options of placement', async () => {
    const { write, reloader, manager, lines, events, metrics, changes } = await reloaderOf('policy: none\n');
    expect(reloader.live.placement).toEqual({});
    write('policy: single-numa-node\nprefer: spread\n');
    await reloader.reload();
    expect(reloader.live.placement).toEqual({ policy: 'single-numa-node', prefer: 'spread' });
    expect(reloader.live.effective.policy).toBe('single-numa-node');
    const { placement } = reloader.live;
    await expect(manager.admit(POD('wide', 5), { ...placement, owner: 'persistent' })).rejects.toMatchObject({
      code: 'ERR_TOPOLOGY_AFFINITY',
    });
    expect(lines).toContain(
      'info: the configuration has changed; policy: none -> single-numa-node; prefer: packed -> spread',
    );
    expect(events).toMatchObject([
      { about: { kind: 'Node' }, type: 'Normal', reason: 'ConfigurationApplied' },
    ]);
    expect([metrics.of('configuration_changes_total', 'applied'), changes()]).toEqual([1, 1]);
    write('policy: none\n');
    await reloader.reload();
    expect(reloader.live.placement).toEqual({});
  });

  it('changes settings of the machine, and says which grants keep CPUs that are reserved now', async () => {
    const { write, reloader, manager, lines } = await reloaderOf('reservedSystemCPUs: 0\n');
    await manager.admit(POD('early', 2), { owner: 'persistent' });
    write('reservedSystemCPUs: 0-1\n');
    await reloader.reload();
    expect(String(manager.settings().reservedSystemCPUs)).toBe('0-1');
    expect(lines).toContain('info: the settings of the machine have changed; reservedSystemCPUs: 0 -> 0-1');
    expect(lines.filter((line) => /keeps CPUs 1 until it ends/.test(line))).toHaveLength(1);
    write('');
    await reloader.reload();
    expect(String(manager.settings().reservedSystemCPUs)).toBe('');
  });

  it('waits while grants stand against it, and is applied when they end', async () => {
    const { write, reloader, manager, lines, events, metrics } = await reloaderOf('');
    await manager.admit(POD('a', 4), { owner: 'persistent' });
    await manager.admit(POD('b', 3), { owner: 'persistent' });
    // One CPU is left to share.
    write('reservedSystemCPUs: 7\nstrictCPUReservation: true\n');
    await reloader.reload();
    expect(String(manager.settings().reservedSystemCPUs)).toBe('');
    expect(lines.at(-1)).toMatch(/^warn: the settings of the machine stay as they are until grants end/);
    expect(events.at(-1)).toMatchObject({ type: 'Warning', reason: 'ConfigurationWaits' });
    expect(metrics.of('configuration_state', 'waiting')).toBe(1);
    const told = lines.length;
    await reloader.reload();
    expect(lines.slice(told)).toEqual(['info: the configuration is unchanged']);
    await manager.release('b');
    await expect.poll(() => String(manager.settings().reservedSystemCPUs)).toBe('7');
    await expect.poll(() => metrics.of('configuration_state', 'waiting')).toBe(0);
    expect(events.at(-1)).toMatchObject({ type: 'Normal', reason: 'ConfigurationApplied' });
  });

  it('changes nothing if it is invalid, and is told once until it is right', async () => {
    const { write, reloader, lines, events, metrics } = await reloaderOf('policy: restricted\n');
    for (const text of ['policy: nil\n', 'policy: nil\n', 'reservedSystemCPUs: 99\npolicy: none\n']) {
      write(text);
      await reloader.reload();
      expect(reloader.live.effective.policy).toBe('restricted');
    }
    expect(lines).toHaveLength(2);
    expect(lines[0]).toMatch(/^error: the configuration stays as it is: .*node\.yaml: policy must be/);
    expect(lines[1]).toMatch(/99/);
    expect(events).toMatchObject([{ reason: 'InvalidConfiguration' }, { reason: 'InvalidConfiguration' }]);
    expect(metrics.of('configuration_state', 'invalid')).toBe(1);
    write('policy: restricted\n');
    await reloader.reload();
    expect(metrics.of('configuration_state', 'invalid')).toBe(0);
  });

  it('says which fields have an effect at the next start', async () => {
    const { write, reloader, manager, lines, events, metrics } = await reloaderOf('');
    write('memoryManagerPolicy: None\ncpuManagerPolicy: none\nindex: "10"\npolicy: restricted\n');
    await reloader.reload();
    const message =
      'these fields have an effect at the next start: cpuManagerPolicy, memoryManagerPolicy, index';
    expect(lines).toContain(`warn: ${message}`);
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'Warning', reason: 'ConfigurationNeedsRestart', message }),
    );
    expect(reloader.live.effective).toMatchObject({ policy: 'restricted', memoryManagerPolicy: 'Static' });
    expect(manager.placement.memoryManagerPolicy).toBe('Static');
    expect(metrics.of('configuration_state', 'restart')).toBe(1);
    write('');
    await reloader.reload();
    expect(metrics.of('configuration_state', 'restart')).toBe(0);
  });

  it.each([
    ['is written', (file: string, text: string) => writeFileSync(file, text)],
    [
      'is replaced',
      (file: string, text: string) => {
        writeFileSync(`${file}.new`, text);
        renameSync(`${file}.new`, file);
      },
    ],
  ])('is read by itself when the file %s', async (_, replace) => {
    const { file, reloader } = await reloaderOf('policy: none\n');
    replace(file, `${HEAD}policy: restricted\n`);
    await expect.poll(() => reloader.live.effective.policy).toBe('restricted');
  });

  it('is read by itself when a kubelet replaces the files of a ConfigMap', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'numalign-configmap-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const publish = (version: string, policy: string) => {
      const data = mkdtempSync(join(folder, `..${version}`));
      writeFileSync(join(data, 'node.yaml'), `${HEAD}policy: ${policy}\n`);
      symlinkSync(data, join(folder, '..data_tmp'));
      renameSync(join(folder, '..data_tmp'), join(folder, '..data'));
    };
    publish('1', 'none');
    const file = join(folder, 'node.yaml');
    symlinkSync('..data/node.yaml', file);
    const sources = { file, flags: {} };
    const configuration = readConfiguration(sources);
    const topology = await discover({ synthetic: MACHINE });
    const { manager } = await openConfigured(configuration, { topology });
    onTestFinished(() => manager.close());
    const reloader = new Reloader({
      ...{ manager, sources, configuration, waiting: undefined },
      ...{ live: firstLive(configuration, manager), metrics: countedMetrics() },
      ...{ log: () => {}, recordEvent: () => {}, changed: () => {} },
    });
    onTestFinished(() => reloader.close());
    await reloader.start();
    publish('2', 'restricted');
    await expect.poll(() => reloader.live.effective.policy).toBe('restricted');
  });
});

describe('At the start', () => {
  const recordFirst = (settings: object, pods: number[]) => async (options: ManagerOptions) => {
    const manager = await openManager({ ...options, ...settings });
    for (const [i, cpu] of pods.entries()) await manager.admit(POD(`p${i}`, cpu), { owner: 'persistent' });
    manager.close();
  };

  it('settings on record that differ are changed', async () => {
    const { manager, lines } = await reloaderOf(
      'reservedSystemCPUs: 1\n',
      recordFirst({ reservedSystemCPUs: '0' }, []),
    );
    expect(String(manager.settings().reservedSystemCPUs)).toBe('1');
    expect(lines).toEqual(['info: the settings of the machine have changed; reservedSystemCPUs: 0 -> 1']);
  });

  it('settings that grants stand against stay, and are changed when these end', async () => {
    const { manager, events } = await reloaderOf(
      'reservedSystemCPUs: 7\nstrictCPUReservation: true\n',
      recordFirst({}, [4, 3]),
    );
    expect(String(manager.settings().reservedSystemCPUs)).toBe('');
    expect(events).toMatchObject([{ reason: 'ConfigurationWaits' }]);
    await manager.release('p1');
    await expect.poll(() => String(manager.settings().reservedSystemCPUs)).toBe('7');
  });

  it('CPUs that the machine does not have are told, and the settings on record stay', async () => {
    const { manager, events } = await reloaderOf('reservedSystemCPUs: 99\n', recordFirst({}, [1]));
    expect(String(manager.settings().reservedSystemCPUs)).toBe('');
    expect(events).toMatchObject([{ reason: 'InvalidConfiguration' }]);
  });
});
