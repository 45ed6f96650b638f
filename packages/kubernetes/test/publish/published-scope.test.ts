// The scope that a node agent publishes for its manager.
import { rmSync } from 'node:fs';
import { openManager } from 'numalign';
import { discover } from 'numalign/topology';
import { expect, it, onTestFinished } from 'vitest';
import { NodeAgent } from '../../lib/node-agent.js';
import { makePki } from '../api-server/fake-server.js';
import { socketFolder } from '../support/socket-folder.js';
import { Topologies } from './topologies.js';

it.each([
  ['container, where it places containers one by one', true, 'container'],
  ["its manager's, where it places none", false, 'pod'],
])('The published scope is %s', async (_, isPlugin, scope) => {
  const pki = makePki();
  const { socketPath, remove } = socketFolder();
  onTestFinished(() => {
    remove();
    rmSync(pki.folder, { recursive: true, force: true });
  });
  const topologies = await Topologies.open(pki);
  const topology = await discover({ synthetic: 'numa:2(memory=8GB) core:4 pu:1' });
  const manager = await openManager({ topology, scope: 'pod' });
  onTestFinished(() => manager.close());
  const { url, tokenFile } = topologies.server;
  const agent = new NodeAgent({
    ...{ manager, log: () => {}, devicePlugin: null, kubelet: null },
    nri: isPlugin ? { nriSocket: socketPath } : null,
    publish: { nodeName: 'worker-1', apiServer: { url, caFile: pki.caFile, tokenFile } },
  });
  const start = agent.start().catch(() => {});
  await expect.poll(() => topologies.versions.length, { interval: 5 }).toBe(1);
  expect(topologies.object).toMatchObject({
    attributes: expect.arrayContaining([{ name: 'topologyManagerScope', value: scope }]),
  });
  await agent.close();
  await start;
});
