import { rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type NodeEvent, THIS_NODE } from '../../lib/events/event.js';
import { EventRecorder } from '../../lib/events/event-recorder.js';
import { FakeServer, json, makePki, type Pki, refuse, type Seen } from '../api-server/fake-server.js';

let pki: Pki;

beforeAll(() => {
  pki = makePki();
});

afterAll(() => rmSync(pki.folder, { recursive: true }));

const POD = { kind: 'Pod', namespace: 'shop', name: 'web', uid: 'u-1', container: 'main' } as const;
const REFUSAL: NodeEvent = { about: POD, type: 'Warning', reason: 'Refused', message: 'no CPUs' };

const accept = ({ body }: Seen, answer: ServerResponse) =>
  json(answer, { metadata: { name: 'x' }, ...JSON.parse(body) });

/** A recorder that repeats at once, and the server that it writes to. */
async function recorderAt(handler: typeof accept = accept, repeatMs = 0) {
  const server = await FakeServer.open(pki, handler);
  const lines: string[] = [];
  const recorder = new EventRecorder({
    ...{ apiServer: server.client({ patienceMs: 0 }), nodeName: 'worker-1', repeatMs },
    log: (level, message) => lines.push(`${level}: ${message}`),
  });
  onTestFinished(() => recorder.close());
  const written = async (count: number) => {
    await expect.poll(() => server.seen.length).toBe(count);
    return server.seen.map(({ method, path, body }) => ({ method, path, body: JSON.parse(body) }));
  };
  return { server, recorder, lines, written };
}

describe('An Event', () => {
  it('of a pod is in its namespace, about the container', async () => {
    const { recorder, written } = await recorderAt();
    recorder.record(REFUSAL);
    const [{ method, path, body }] = (await written(1)) as [Awaited<ReturnType<typeof written>>[0]];
    expect([method, path]).toEqual(['POST', '/api/v1/namespaces/shop/events']);
    expect(body).toMatchObject({
      ...{ kind: 'Event', type: 'Warning', reason: 'Refused', message: 'no CPUs', count: 1 },
      involvedObject: { kind: 'Pod', namespace: 'shop', name: 'web', uid: 'u-1' },
      source: { component: 'numalign-node', host: 'worker-1' },
    });
    expect(body.involvedObject.fieldPath).toBe('spec.containers{main}');
    expect(body.metadata.name).toMatch(/^web\.[0-9a-f]+$/);
    expect(body.firstTimestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  });

  it('of the node is where kubectl looks for it', async () => {
    const { recorder, written } = await recorderAt();
    recorder.record({ about: THIS_NODE, type: 'Normal', reason: 'Started', message: 'x'.repeat(2000) });
    const [{ path, body }] = (await written(1)) as [Awaited<ReturnType<typeof written>>[0]];
    expect(path).toBe('/api/v1/namespaces/default/events');
    expect(body.involvedObject).toMatchObject({ kind: 'Node', name: 'worker-1', uid: 'worker-1' });
    expect(body.message).toHaveLength(1024);
  });

  it('that happens again only raises the count of its object', async () => {
    const { recorder, written } = await recorderAt();
    recorder.record(REFUSAL);
    await written(1);
    for (const message of ['one', 'two', 'three']) recorder.record({ ...REFUSAL, message });
    const [first, second] = await written(2);
    expect(second).toMatchObject({ method: 'PATCH', body: { count: 4, message: 'three' } });
    expect(second!.path).toBe(`${first!.path}/${first!.body.metadata.name}`);
  });

  it('is written again only after a while', async () => {
    const { server, recorder, written } = await recorderAt(accept, 300);
    recorder.record(REFUSAL);
    await written(1);
    recorder.record(REFUSAL);
    await written(2);
    expect(server.seen[1]!.at - server.seen[0]!.at).toBeGreaterThan(250);
  });

  it('is made again once the API server has forgotten it', async () => {
    const forget = ({ method, body }: Seen, answer: ServerResponse) =>
      method === 'PATCH' ? refuse(answer, 404, 'not found') : json(answer, JSON.parse(body));
    const { recorder, written } = await recorderAt(forget);
    recorder.record(REFUSAL);
    await written(1);
    recorder.record(REFUSAL);
    expect((await written(3)).map(({ method }) => method)).toEqual(['POST', 'PATCH', 'POST']);
  });
});

describe('Events that cannot be written', () => {
  it('are logged once, until they can be', async () => {
    const { server, recorder, lines, written } = await recorderAt((_, answer) =>
      refuse(answer, 403, 'events is forbidden'),
    );
    recorder.record(REFUSAL);
    recorder.record({ ...REFUSAL, reason: 'Other' });
    await written(2);
    await expect.poll(() => recorder.condition.text).toMatch('ERR_API_FORBIDDEN');
    expect(lines).toEqual([expect.stringMatching(/^warn: Events cannot be written: .*forbidden/)]);
    server.handler = accept;
    recorder.record({ ...REFUSAL, reason: 'Third' });
    await expect.poll(() => recorder.condition.isMet).toBe(true);
  });

  it('are dropped beyond a number, and at the end', async () => {
    const { server, recorder } = await recorderAt(() => {});
    for (let i = 0; i < 1000; i++) recorder.record({ ...REFUSAL, reason: `R${i}` });
    await expect.poll(() => server.seen.length).toBe(1);
    await recorder.close();
    recorder.record(REFUSAL);
    expect(server.seen).toHaveLength(1);
  });
});
