import { EventEmitter, once } from 'node:events';
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Manager, NumalignError, openManager } from 'numalign';
import { discover } from 'numalign/topology';
import { expect, it, onTestFinished } from 'vitest';
import type { Log } from '../../lib/base/log.js';
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
function agentOf(manager: Manager, { hasNri }: { hasNri: boolean }, log: Log = () => {}) {
  const { folder, socketPath, remove } = socketFolder();
  onTestFinished(remove);
  const deviceFolder = join(folder, 'device-plugins');
  mkdirSync(deviceFolder);
  const agent = new NodeAgent({
    ...{ manager, log, publish: null },
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

it('refuses a DRA driver without NRI, which would place its containers', async () => {
  const { manager } = await slowManager();
  const parts = { manager, log: () => {}, nri: null, devicePlugin: null, kubelet: null, publish: null };
  expect(() => new NodeAgent({ ...parts, dra: { kubeletFolder: '/var/lib/kubelet' } })).toThrow(
    expect.objectContaining({ code: 'ERR_CLAIM_WITHOUT_NRI' }),
  );
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

it('says which parts work, and that nothing is stuck', async () => {
  const { manager, finish } = await slowManager();
  const { agent } = agentOf(manager, { hasNri: true });
  const met = () => Object.fromEntries(agent.conditions.map(({ part, isMet }) => [part, isMet]));
  expect(met()).toEqual({ start: false, state: true, kubelet: false, 'device-plugin': false, nri: false });
  expect(agent.conditions.find(({ part }) => part === 'nri')!.text).toMatch(/^waits for .*sock$/);
  expect(agent.ailment).toBeUndefined();
  finish();
  await agent.close();
});

it('logs the errors of its manager, each once until it is over', async () => {
  const { manager, finish } = await slowManager();
  const lines: string[] = [];
  const { agent } = agentOf(manager, { hasNri: false }, (level, message) =>
    lines.push(`${level}: ${message}`),
  );
  const fail = () => void manager.emit('error', new NumalignError('ERR_SYSCALL', 'the disk is full', {}));
  fail();
  fail();
  expect(lines).toEqual(['error: the disk is full']);
  finish();
  await agent.close();
  expect(manager.listenerCount('error')).toBe(0);
});
