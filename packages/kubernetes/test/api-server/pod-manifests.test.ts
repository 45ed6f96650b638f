// The pods of the API server, for a container that waits.
import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { soonest } from '../../../../test/support/soonest.js';
import type { ApiServerOptions } from '../../lib/api-server/api-server.js';
import { PodManifests } from '../../lib/api-server/pod-manifests.js';
import { FakeServer, type Handler, json, makePki, type Pki, refuse } from './fake-server.js';

// For an answer that comes.
const PATIENT = { deadlineMs: 60_000 };
const POD = { metadata: { name: 'web', namespace: 'shop', uid: 'u1' }, spec: {} };

let pki: Pki;
beforeAll(() => {
  pki = makePki();
});
afterAll(() => rmSync(pki.folder, { recursive: true, force: true }));

async function manifestsOf(handler: Handler, options: Partial<ApiServerOptions> = {}) {
  const server = await FakeServer.open(pki, handler);
  const { url, tokenFile } = server;
  const manifests = new PodManifests({ url, caFile: pki.caFile, tokenFile, ...options });
  onTestFinished(() => manifests.close());
  return { server, manifests, find: () => manifests.find({ namespace: 'shop', name: 'web' }) };
}

it('are found by namespace and name', async () => {
  const { server, find } = await manifestsOf((_seen, answer) => json(answer, POD), PATIENT);
  expect(await find()).toEqual(POD);
  expect(server.seen.map(({ method, path }) => [method, path])).toEqual([
    ['GET', '/api/v1/namespaces/shop/pods/web'],
  ]);
});

it('may be none', async () => {
  const { find } = await manifestsOf((_seen, answer) => refuse(answer, 404, 'pods "web" not found'), PATIENT);
  expect(await find()).toBeNull();
});

it('are waited for no longer than half a second, and asked for once', async () => {
  const late = await soonest(1500, async () => {
    const requests: unknown[] = [];
    const { find } = await manifestsOf((seen) => requests.push(seen));
    const begin = performance.now();
    await expect(find()).rejects.toMatchObject({ code: 'ERR_API_TIMEOUT' });
    expect(requests.length).toBeLessThanOrEqual(1);
    return requests.length === 1 ? performance.now() - begin : Number.POSITIVE_INFINITY;
  });
  expect(late).toBeLessThan(1500);
});

it('are refused without the right to read them', async () => {
  const { manifests, find } = await manifestsOf(
    (_seen, answer) => refuse(answer, 403, 'pods is forbidden'),
    PATIENT,
  );
  expect(manifests.condition.isMet).toBe(true);
  await expect(find()).rejects.toMatchObject({ code: 'ERR_API_FORBIDDEN' });
  expect(manifests.condition).toMatchObject({ part: 'whole-pods', isMet: false, isVital: false });
  expect(manifests.condition.text).toContain('pods is forbidden');
});
