import { EventEmitter, once } from 'node:events';
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Manager, openManager } from 'numalign';
import { discover } from 'numalign/topology';
import { expect, it, onTestFinished } from 'vitest';
import { NodeAgent } from '../../lib/node-agent.js';
import { socketFolder } from '../support/socket-folder.js';

/** A manager that records the kubelet's allocations only once `finish` is called. */
async function slowManager() {
  const topology = await discover({ synthetic: 'numa:2 core:4 pu:1' });
  const manager = await openManager({ topology, reservedSystemCPUs: '0' });
  onTestFinished(() => manager.close());
  const events = new EventEmitter();
  const [recording, finish] = [once(events, 'recording'), once(events, 'finish')];
  manager.recordKubelet = async () => {
    events.emit('recording');
    await finish;
    return null;
  };
  return { manager, recording, finish: () => events.emit('finish') };
}

/** An agent without a publisher; there is no runtime at its node. */
function agentOf(manager: Manager, { hasNri }: { hasNri: boolean }) {
  const { folder, socketPath, remove } = socketFolder();
  onTestFinished(remove);
  const deviceFolder = join(folder, 'device-plugins');
  mkdirSync(deviceFolder);
  const agent = new NodeAgent({
    ...{ manager, publish: null, log: () => {} },
    nri: hasNri ? { nriSocket: socketPath } : null,
    devicePlugin: { folder: deviceFolder },
    kubelet: { stateFolder: folder, deviceFolder, podResourcesSocket: join(folder, 'pods.sock') },
  });
  return { agent, deviceFolder };
}

it('starts nothing any more once it is closed', async () => {
  const { manager, recording, finish } = await slowManager();
  const { agent, deviceFolder } = agentOf(manager, { hasNri: false });
  const start = agent.start();
  const refusal = expect(start).rejects.toMatchObject({ code: 'ERR_AGENT_CLOSED' });
  await recording;
  const close = agent.close();
  finish();
  await close;
  await refusal;
  expect(readdirSync(deviceFolder)).toEqual([]);
  expect(manager.listenerCount('change')).toBe(0);
});

it('is closed while it waits for a runtime', async () => {
  const { manager, recording, finish } = await slowManager();
  const { agent, deviceFolder } = agentOf(manager, { hasNri: true });
  finish();
  const refusal = expect(agent.start()).rejects.toMatchObject({ code: 'ERR_NRI_CLOSED' });
  await recording;
  await expect.poll(() => readdirSync(deviceFolder)).toHaveLength(1);
  await agent.close();
  await refusal;
  expect(readdirSync(deviceFolder)).toEqual([]);
});
