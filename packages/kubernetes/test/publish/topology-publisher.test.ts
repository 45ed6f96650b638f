// The publisher, with a server that stores its objects.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Manager, type ManagerOptions, openManager } from 'numalign';
import { discover, type MachineJson } from 'numalign/topology';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { soonest } from '../../../../test/support/soonest.js';
import type { ApiServer } from '../../lib/api-server/api-server.js';
import { NEEDED } from '../../lib/check/cluster-facts.js';
import { hashOfPod, podFingerprint } from '../../lib/publish/pod-fingerprint.js';
import { TopologyPublisher, type TopologyPublisherOptions } from '../../lib/publish/topology-publisher.js';
import { zonesOf } from '../../lib/publish/zones.js';
import { makePki, type Pki } from '../api-server/fake-server.js';
import { fingerprintIn, flawsForScheduler } from './scheduler-rules.js';
import { Topologies } from './topologies.js';

let pki: Pki;
beforeAll(() => {
  pki = makePki();
});
afterAll(() => rmSync(pki.folder, { recursive: true, force: true }));

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'numalign-publish-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, 'state');
}

async function simulate(stateDir: string, options: Omit<ManagerOptions, 'readOnly'> = {}): Promise<Manager> {
  const cpus = Array.from({ length: 32 }, (_, cpu) => [cpu, cpu - (cpu % 2), cpu >> 4, cpu >> 4]);
  const nodes = [0, 1].map((id) => ({ id, memory: 2 ** 33, distances: id === 0 ? [10, 21] : [21, 10] }));
  const json = { columns: ['cpu', 'core', 'socket', 'numa'], cpus, nodes } as unknown as MachineJson;
  const topology = await discover({ json });
  const manager = await openManager({ topology, stateDir, ...options });
  onTestFinished(() => manager.close());
  return manager;
}

// When each patch began, in milliseconds of `performance.now`.
function timesOfPatches(apiServer: ApiServer): readonly number[] {
  const times: number[] = [];
  const patch = apiServer.patch.bind(apiServer);
  apiServer.patch = (...request: Parameters<typeof patch>) => {
    times.push(performance.now());
    return patch(...request);
  };
  return times;
}

async function publish(options: Partial<TopologyPublisherOptions> = {}, topologies?: Topologies) {
  const kept = topologies ?? (await Topologies.open(pki));
  const stateDir = makeFolder();
  const manager = await simulate(stateDir, { policy: 'single-numa-node' });
  const apiServer = kept.server.client({ patienceMs: 0 });
  const patches = timesOfPatches(apiServer);
  const lines: string[] = [];
  const log = (level: string, message: string) => lines.push(`${level} ${message}`);
  const publisher = new TopologyPublisher({
    ...{ manager, apiServer, nodeName: 'worker-1', log },
    ...options,
  });
  onTestFinished(() => publisher.close());
  await publisher.start();
  return { topologies: kept, manager, publisher, lines, stateDir, patches };
}

const published = async ({ versions }: Topologies, count: number) =>
  expect.poll(() => versions.length, { interval: 5 }).toBe(count);

const gapsOf = (times: readonly number[]) => times.slice(1).map((time, i) => time - times[i]!);

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe('the object', () => {
  it('describes the machine, its policy and scope, and ends with the Node', async () => {
    const topologies = await Topologies.open(pki);
    topologies.node = { metadata: { name: 'worker-1', uid: 'u-1' } };
    topologies.putPod('default/a', { metadata: {}, status: { phase: 'Running' } });
    const { manager } = await publish({ scope: 'pod' }, topologies);
    await published(topologies, 1);
    const fingerprint = podFingerprint([hashOfPod('default', 'a')]);
    expect(topologies.object).toEqual({
      apiVersion: 'topology.node.k8s.io/v1alpha2',
      kind: 'NodeResourceTopology',
      metadata: {
        name: 'worker-1',
        resourceVersion: '2',
        annotations: { 'topology.node.k8s.io/fingerprint': fingerprint },
        ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'worker-1', uid: 'u-1' }],
      },
      topologyPolicies: ['SingleNUMANodePodLevel'],
      attributes: [
        { name: 'topologyManagerPolicy', value: 'single-numa-node' },
        { name: 'topologyManagerScope', value: 'pod' },
        { name: 'topologyManagerMaxNUMANodes', value: '8' },
        { name: 'nodeTopologyPodsFingerprint', value: fingerprint },
        { name: 'nodeTopologyPodsFingerprintMethod', value: 'all' },
      ],
      zones: zonesOf(manager),
    });
    expect(topologies.object!.zones[1]).toEqual({
      name: 'node-1',
      type: 'Node',
      costs: [
        { name: 'node-0', value: 21 },
        { name: 'node-1', value: 10 },
      ],
      resources: [
        { name: 'cpu', capacity: '16', allocatable: '16', available: '16' },
        { name: 'memory', capacity: '8589934592', allocatable: '8589934592', available: '8589934592' },
      ],
    });
  });

  it('has the fingerprint of the pods as they change', async () => {
    const topologies = await Topologies.open(pki);
    await publish({}, topologies);
    await published(topologies, 1);
    topologies.putPod('default/a', { metadata: {}, status: { phase: 'Running' } });
    await published(topologies, 2);
    topologies.putPod('default/a', undefined);
    await published(topologies, 3);
    const fingerprints = [[], [hashOfPod('default', 'a')], []].map(podFingerprint);
    expect(topologies.versions.map(fingerprintIn)).toEqual(fingerprints);
    expect(topologies.versions.map(flawsForScheduler)).toEqual([[], [], []]);
  });

  it('has no fingerprint if pods may not be listed', async () => {
    const topologies = await Topologies.open(pki);
    topologies.refusal = ({ path }) => (path === '/api/v1/pods' ? [403, 'no'] : undefined);
    const annotations = { 'topology.node.k8s.io/fingerprint': 'earlier', kept: 'yes' };
    topologies.write({ metadata: { name: 'worker-1', annotations }, zones: [] });
    const { lines } = await publish({}, topologies);
    await published(topologies, 1);
    expect(fingerprintIn(topologies.object!)).toBeUndefined();
    expect(topologies.object!.metadata.annotations).toEqual({ kept: 'yes' });
    expect(flawsForScheduler(topologies.object!)).toEqual(['without a fingerprint']);
    expect(lines).toContain('error the topology of worker-1 cannot be fingerprinted: GET /api/v1/pods: no');
  });

  it.each([
    [404, 'is not there'],
    [403, 'may not be read'],
  ])('has no owner if the Node (%i) %s', async (status) => {
    const topologies = await Topologies.open(pki);
    topologies.refusal = ({ path }) => (path.startsWith('/api/v1/nodes') ? [status, 'no'] : undefined);
    await publish({}, topologies);
    await published(topologies, 1);
    expect(topologies.object!.metadata.ownerReferences).toBeUndefined();
  });

  it('keeps labels of others', async () => {
    const topologies = await Topologies.open(pki);
    topologies.write({ metadata: { name: 'worker-1', labels: { kept: 'yes' } }, zones: [] });
    const { manager } = await publish({}, topologies);
    await published(topologies, 1);
    expect(topologies.object).toMatchObject({
      metadata: { labels: { kept: 'yes' } },
      zones: zonesOf(manager),
    });
  });
});

describe('a publication', () => {
  it('follows a commit of any process at once', async () => {
    const { topologies, stateDir, manager } = await publish();
    await published(topologies, 1);
    const other = await simulate(stateDir);
    const late = await soonest(100, async () => {
      const before = topologies.times.length;
      await pause(600);
      await other.acquire({ cpu: 4 });
      const committed = performance.now();
      await published(topologies, before + 1);
      expect(topologies.object!.zones).toEqual(zonesOf(manager));
      return topologies.times.at(-1)! - committed;
    });
    if (process.env.NUMALIGN_TEST_FIGURES) console.log(`published ${late.toFixed(1)} ms after the commit`);
    expect(late).toBeLessThan(100);
  });

  it('follows a round of the manager, which finds changes without a commit', async () => {
    const { topologies, manager } = await publish();
    await published(topologies, 1);
    manager.registerDevices('example.com/nic', [{ id: 'a', numaNodes: [1] }]);
    await manager.reconcile();
    await published(topologies, 2);
    expect(topologies.object!.zones[1].resources.at(-1)).toEqual({
      ...{ name: 'example.com/nic', capacity: '1', allocatable: '1', available: '1' },
    });
  });

  it('is made at most twice a second, and the last one is current', async () => {
    const { topologies, manager, patches } = await publish();
    await published(topologies, 1);
    // A state that is the same again by then is not published.
    for (let cpu = 2; topologies.times.length < 4; cpu = 6 - cpu) {
      const grant = await manager.acquire({ cpu });
      await pause(100);
      await grant.release();
    }
    await manager.acquire({ cpu: 6 });
    await expect.poll(() => topologies.object!.zones, { interval: 5 }).toEqual(zonesOf(manager));
    // The first one reads the Node between the beginning of its pause and its patch.
    for (const gap of gapsOf(patches).slice(1)) expect(gap).toBeGreaterThan(499);
  });

  it('is not made without a change of its content', async () => {
    const { topologies, manager } = await publish();
    await published(topologies, 1);
    await manager.admit({ containers: [{ name: 'shared', limits: { cpu: '500m' } }] });
    const grant = await manager.acquire({ cpu: 2 });
    await published(topologies, 2);
    const { seen } = topologies.server;
    const requests = seen.length;
    await grant.release();
    await manager.acquire({ cpu: 2 });
    await pause(700);
    expect(seen.slice(requests)).toEqual([]);
  });

  it('is made again after a deletion of the object', async () => {
    const { topologies, manager, lines } = await publish();
    await published(topologies, 1);
    await expect.poll(() => topologies.watches).toBe(1);
    topologies.write(undefined);
    await published(topologies, 2);
    expect(topologies.object!.zones).toEqual(zonesOf(manager));
    expect(lines.filter((line) => line.startsWith('warn'))).toEqual([
      'warn the topology of worker-1 was deleted by others: published again',
    ]);
  });

  it('is made again after others changed its content, not after they labelled it', async () => {
    const { topologies, manager, lines } = await publish();
    await published(topologies, 1);
    await expect.poll(() => topologies.watches).toBe(1);
    const { object } = topologies;
    topologies.write({ ...object!, metadata: { ...object!.metadata, labels: { by: 'others' } } });
    topologies.write({ ...topologies.object!, zones: [] });
    await published(topologies, 2);
    expect(topologies.object).toMatchObject({
      metadata: { labels: { by: 'others' } },
      zones: zonesOf(manager),
    });
    expect(lines.filter((line) => line.startsWith('warn'))).toHaveLength(1);
  });

  it('becomes rarer the more often others change it', async () => {
    const { topologies, patches } = await publish();
    await published(topologies, 1);
    await expect.poll(() => topologies.watches).toBe(1);
    for (let i = 2; i <= 4; i++) {
      topologies.write({ ...topologies.object!, zones: [] });
      await published(topologies, i);
    }
    expect(gapsOf(patches)[2]!).toBeGreaterThan(1999);
  });

  it('does not mistake its own versions for those of others', async () => {
    const { topologies, manager, lines } = await publish();
    for (let i = 1; i <= 3; i++) {
      await published(topologies, i);
      await manager.acquire({ cpu: 1 });
    }
    await published(topologies, 4);
    expect(lines.filter((line) => line.startsWith('warn'))).toEqual([]);
  });

  it('is made up for once an absent server is back', async () => {
    const { topologies, manager, lines } = await publish();
    await published(topologies, 1);
    await topologies.server.stop();
    await manager.acquire({ cpu: 3 });
    await expect.poll(() => lines.some((line) => line.includes('cannot be published'))).toBe(true);
    topologies.object = undefined;
    await topologies.server.start();
    await published(topologies, 2);
    expect(topologies.object!.zones).toEqual(zonesOf(manager));
    expect(lines.filter((line) => line.includes('cannot be published'))).toHaveLength(1);
    await expect.poll(() => lines.at(-1)).toBe('info the topology of worker-1 is published again');
  });

  it('that is refused is reported once, and tried until it is allowed', async () => {
    const topologies = await Topologies.open(pki);
    let isAllowed = false;
    topologies.refusal = ({ method }) => (isAllowed || method === 'GET' ? undefined : [403, 'is forbidden']);
    const { lines } = await publish({}, topologies);
    await topologies.until(
      () => topologies.server.seen.filter(({ method }) => method === 'PATCH').length === 2,
    );
    expect(lines.filter((line) => line.startsWith('error'))).toEqual([
      expect.stringContaining('cannot be published: PATCH'),
    ]);
    isAllowed = true;
    await published(topologies, 1);
  });
});

describe('what it asks of the server', () => {
  it('is allowed by the examples, as check verifies', async () => {
    const topologies = await Topologies.open(pki);
    topologies.node = { metadata: { name: 'worker-1', uid: 'u-1' } };
    await publish({}, topologies);
    await published(topologies, 1);
    await expect.poll(() => topologies.watches).toBe(1);
    const verbs: Record<string, string> = { PATCH: 'patch', POST: 'create' };
    const asked = topologies.server.seen.map(({ method, path, query }) => {
      const [, api, ...parts] = path.split('/');
      const [group, , resource, name] = api === 'api' ? ['', ...parts] : parts;
      const read = query.has('watch') ? 'watch' : name === undefined ? 'list' : 'get';
      return [verbs[method] ?? read, group, resource];
    });
    expect(asked.toSorted()).toEqual([...NEEDED].toSorted());
  });
});

describe('the end', () => {
  it('leaves the object, but neither listener nor connection', async () => {
    const { topologies, publisher, manager } = await publish();
    await published(topologies, 1);
    await publisher.close();
    expect(manager.listenerCount('change')).toBe(0);
    expect(topologies.object).toBeDefined();
    await expect.poll(() => topologies.watches).toBe(0);
    await manager.acquire({ cpu: 1 });
    await pause(100);
    expect(topologies.versions).toHaveLength(1);
  });

  it('removes the object on request', async () => {
    const { topologies, publisher } = await publish({ deletesAtClose: true });
    await published(topologies, 1);
    await publisher.close();
    expect(topologies.object).toBeUndefined();
  });

  it('comes at once in the middle of a failure', async () => {
    const late = await soonest(200, async () => {
      const topologies = await Topologies.open(pki);
      await topologies.server.stop();
      const { publisher, lines } = await publish({}, topologies);
      await expect.poll(() => lines.length).toBeGreaterThan(0);
      const begin = performance.now();
      await publisher.close();
      return performance.now() - begin;
    });
    expect(late).toBeLessThan(200);
  });
});
