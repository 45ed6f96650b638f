// Pods whose containers have no place, with a server that has them.
import { rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { NodeEvent } from '../../lib/events/event.js';
import { NO_METRICS } from '../../lib/metrics/metrics.js';
import { evictable } from '../../lib/refusals/refusal-rules.js';
import { Refusals, type RefusalsOptions } from '../../lib/refusals/refusals.js';
import { FakeServer, json, makePki, type Pki, refuse, type Seen } from '../api-server/fake-server.js';
import { podOf } from '../support/nri-objects.js';

let pki: Pki;
beforeAll(() => {
  pki = makePki();
});
afterAll(() => rmSync(pki.folder, { recursive: true, force: true }));

const NO_PLACE = Object.assign(new Error('2 CPUs requested'), { code: 'ERR_INSUFFICIENT_CPUS' });
const CONTAINER = { name: 'main' };
const REPLICAS = { kind: 'ReplicaSet', name: 'web', uid: 'r-1', controller: true };

const sandbox = (uid = 'u-1') => podOf({ name: `web-${uid}`, namespace: 'default', uid });
const podObject = (uid: string, more: object = {}) => ({
  metadata: { name: `web-${uid}`, namespace: 'default', uid, ownerReferences: [REPLICAS], ...more },
  status: { phase: 'Pending' },
});

/** Refusals beside a server that knows these pods, and refuses some requests. */
async function open(
  mode: RefusalsOptions['mode'],
  pods: readonly object[],
  refusal: (seen: Seen) => number | undefined = () => undefined,
) {
  const find = (path: string) =>
    pods.find((pod) => path.startsWith(`/api/v1/namespaces/default/pods/${(pod as any).metadata.name}`));
  const server = await FakeServer.open(pki, (seen, answer) => {
    const code = refusal(seen);
    if (code !== undefined) return refuse(answer, code, 'no');
    if (seen.path === '/api/v1/pods') {
      if (seen.query.get('watch')) return answer.writeHead(200).flushHeaders();
      return json(answer, { items: pods, metadata: { resourceVersion: '1' } });
    }
    const pod = find(seen.path);
    return pod ? json(answer, pod) : refuse(answer, 404, 'no such pod');
  });
  let now = 0;
  const lines: string[] = [];
  const events: NodeEvent[] = [];
  const refusals = new Refusals({
    ...{ mode, apiServer: server.client({ patienceMs: 0 }), nodeName: 'worker-1', metrics: NO_METRICS },
    log: (level, message) => lines.push(`${level} ${message}`),
    recordEvent: (event) => events.push(event),
    now: () => now,
  });
  onTestFinished(() => refusals.close());
  const requests = (method: string, part: string) =>
    server.seen.filter((seen) => seen.method === method && seen.path.endsWith(part));
  return {
    ...{ server, refusals, lines, events },
    conditions: () => requests('PATCH', '/status'),
    evictions: () => requests('POST', '/eviction'),
    /** As a kubelet tries again, this often, 10 s apart; waits for what follows. */
    async refuse(times: number, pod = sandbox(), error: Error = NO_PLACE) {
      for (let i = 0; i < times; i++) {
        now += 10_000;
        refusals.refused(pod, CONTAINER, error);
        await refusals.settled;
      }
    },
  };
}

describe('a condition', () => {
  it('says that the pod has no place, and that it has one', async () => {
    const { refusals, refuse, conditions, evictions } = await open('condition', [podObject('u-1')]);
    await refuse(5);
    refusals.admitted(sandbox(), CONTAINER);
    await refusals.settled;
    const written = conditions().map(({ body }) => JSON.parse(body).status.conditions[0]);
    expect(written).toMatchObject([
      { type: 'numalign.io/Placed', status: 'False', reason: 'PlacementRefused' },
      { type: 'numalign.io/Placed', status: 'True', reason: 'Placed' },
    ]);
    expect(written[0].message).toBe('container main: 2 CPUs requested');
    expect(conditions()[0]!.headers['content-type']).toBe('application/strategic-merge-patch+json');
    expect(evictions()).toEqual([]);
  });

  it('is not written for what is wrong on every node', async () => {
    const { refuse, server } = await open('evict', [podObject('u-1')]);
    await refuse(5, sandbox(), Object.assign(new Error('cpu'), { code: 'ERR_INVALID_ANNOTATION' }));
    expect(server.seen).toEqual([]);
  });

  it('of an agent before this one ends, too', async () => {
    const marked = (uid: string, phase: string) => ({
      ...podObject(uid),
      status: { phase, conditions: [{ type: 'numalign.io/Placed', status: 'False', message: 'x' }] },
    });
    const { refusals, conditions } = await open('condition', [
      marked('u-1', 'Pending'),
      marked('u-2', 'Running'),
    ]);
    await refusals.start();
    await vi.waitFor(() => expect(conditions()).toHaveLength(1), { timeout: 60_000 });
    expect(conditions()[0]!.path).toContain('web-u-2');
    refusals.admitted(sandbox(), CONTAINER);
    await vi.waitFor(() => expect(conditions()).toHaveLength(2), { timeout: 60_000 });
  });
});

describe('an eviction', () => {
  it('follows the third refusal, of this very pod, and is told', async () => {
    const { refuse, evictions, events, lines } = await open('evict', [podObject('u-1')]);
    await refuse(2);
    expect(evictions()).toEqual([]);
    await refuse(1);
    expect(evictions().map(({ body }) => JSON.parse(body))).toEqual([
      {
        ...{ apiVersion: 'policy/v1', kind: 'Eviction' },
        metadata: { name: 'web-u-1', namespace: 'default' },
        deleteOptions: { preconditions: { uid: 'u-1' } },
      },
    ]);
    expect(events).toMatchObject([{ reason: 'PlacementEviction', about: { uid: 'u-1' } }]);
    expect(lines).toEqual(['warn default/web-u-1 is evicted: container main: 2 CPUs requested']);
  });

  it('is made in the words of an older API server', async () => {
    const isNew = ({ body }: Seen) => body.includes('"policy/v1"');
    const { refuse, evictions, events } = await open('evict', [podObject('u-1')], (seen) =>
      isNew(seen) ? 400 : undefined,
    );
    await refuse(3);
    expect(evictions().map(({ body }) => JSON.parse(body).apiVersion)).toEqual([
      'policy/v1',
      'policy/v1beta1',
    ]);
    expect(events).toHaveLength(1);
  });

  it('is made twice a minute at most, and of one controller every five minutes', async () => {
    const other = { ownerReferences: [{ ...REPLICAS, uid: 'r-2' }] };
    const pods = [podObject('u-1'), podObject('u-2'), podObject('u-3', other)];
    const { refuse, evictions, lines } = await open('evict', pods);
    await refuse(3, sandbox('u-1'));
    await refuse(4, sandbox('u-2'));
    expect(evictions()).toHaveLength(1);
    expect(lines.at(-1)).toMatch(/web-u-2 is not evicted: another one of its controller/);
    await refuse(3, sandbox('u-3'));
    expect(evictions()).toHaveLength(2);
    await refuse(30, sandbox('u-2'));
    expect(evictions()).toHaveLength(3);
  });

  it('that a disruption budget refuses is tried again', async () => {
    let isRefused = true;
    const { refuse, evictions, events, lines } = await open('evict', [podObject('u-1')], ({ path }) =>
      isRefused && path.endsWith('/eviction') ? 429 : undefined,
    );
    await refuse(3);
    expect(lines).toEqual([
      'warn default/web-u-1: it cannot be evicted: POST /api/v1/namespaces/default/pods/web-u-1/eviction: no',
    ]);
    isRefused = false;
    await refuse(1);
    expect(evictions()).toHaveLength(1);
    await refuse(2);
    expect(evictions()).toHaveLength(2);
    expect(events).toHaveLength(1);
  });

  it.each([
    ['without a controller', { ownerReferences: [] }, /no controller/],
    ['of a DaemonSet', { ownerReferences: [{ ...REPLICAS, kind: 'DaemonSet' }] }, /DaemonSet/],
    ['of the kubelet', { ownerReferences: [{ ...REPLICAS, kind: 'Node' }] }, /static/],
    ['that is deleted', { deletionTimestamp: '2026-01-01T00:00:00Z' }, /deleted/],
    ['that says so', { annotations: { 'numalign.io/on-refusal': 'keep' } }, /annotation/],
  ])('spares a pod %s', (_, more, why) => {
    expect(evictable(podObject('u-1', more), 'u-1')).toMatch(why);
  });

  it('spares a pod that has run, and one of the same name', () => {
    expect(evictable({ ...podObject('u-1'), status: { phase: 'Running' } }, 'u-1')).toBe('it has run');
    expect(evictable(podObject('u-2'), 'u-1')).toBe('it has been replaced');
  });

  it('takes a pod that nothing replaces if it says so', () => {
    const annotations = { 'numalign.io/on-refusal': 'evict' };
    expect(evictable(podObject('u-1', { ownerReferences: [], annotations }), 'u-1')).toEqual({
      owner: 'u-1',
    });
  });
});
