// How a runtime hears of cpusets outside of an answer.
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { RuntimeTeller } from '../../lib/cri/runtime-teller.js';
import type { ContainerUpdate, Runtime } from '../../lib/nri/messages.js';
import { type Answers, FakeRuntime, temporaryFolder } from './fake-runtime.js';

const UPDATE: ContainerUpdate = { container_id: 'c', linux: { resources: { cpu: { cpus: '1' } } } };

function tellerOf(nriVersion: string | undefined, socket: string | null, session = true) {
  const updates: ContainerUpdate[] = [];
  const runtime = { name: 'containerd', nriVersion } as Runtime;
  const teller = new RuntimeTeller({
    socket,
    runtime: () => (session ? runtime : undefined),
    updateContainers: async (some) => void updates.push(...some),
  });
  onTestFinished(() => teller.close());
  return { teller, updates };
}

async function serve(answers: Answers) {
  const socket = join(temporaryFolder(onTestFinished), 'runtime.sock');
  const server = new FakeRuntime(answers);
  onTestFinished(() => server.close());
  await server.listen(socket);
  return { socket, server };
}

it.each(['v0.12.2', '0.13.0', 'v1.0.0-rc.1'])('over NRI if it has %s', async (version) => {
  const { teller, updates } = tellerOf(version, null);
  await teller.tell(UPDATE);
  expect(updates).toEqual([UPDATE]);
});

it.each([undefined, 'v0.8.0', 'v0.12.1', '0.0.0-unknown'])(
  'over CRI if its NRI is %s: it is asked for an update with nothing, of which it asks its plugins',
  async (version) => {
    const { socket, server } = await serve({ UpdateContainerResources: () => ({}) });
    const { teller, updates } = tellerOf(version, socket);
    await teller.tell(UPDATE);
    expect(updates).toEqual([]);
    expect(server.requests).toMatchObject([['UpdateContainerResources', { container_id: 'c' }]]);
    expect(server.requests[0]![1].linux).not.toBeNull();
  },
);

it('not if it does not know the container, or if there is no session', async () => {
  const refuse = () => {
    throw Object.assign(new Error('gone'), { code: 5, details: 'gone' });
  };
  const { socket } = await serve({ UpdateContainerResources: refuse });
  await tellerOf(undefined, socket).teller.tell(UPDATE);
  await tellerOf(undefined, null, false).teller.tell(UPDATE);
});

it('is refused without a CRI socket, and without a runtime there', async () => {
  const socket = join(temporaryFolder(onTestFinished), 'none.sock');
  for (const place of [null, socket])
    await expect(tellerOf(undefined, place).teller.tell(UPDATE)).rejects.toMatchObject({
      code: 'ERR_RUNTIME_UNREACHABLE',
    });
});
