import { join } from 'node:path';
import { CpuSet, NodeSet } from 'numalign';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readCpuset } from '../../lib/cgroups/cpuset.js';
import { ContainerRuntime } from '../../lib/cri/container-runtime.js';
import type { Message } from '../../lib/protobuf/schema.js';
import { ContainerCgroup, canMakeCgroups } from './container-cgroup.js';
import { type Answers, FakeRuntime, temporaryFolder } from './fake-runtime.js';

const POD = { id: 's1', metadata: { name: 'web', uid: 'u1', namespace: 'shop' }, state: 0 };
const containerOf = (id: string): Message => ({
  ...{ id, pod_sandbox_id: 's1', metadata: { name: 'nginx' }, state: 1, labels: { app: 'web' } },
});

function answersFor(ids: string[], info: (id: string) => string = () => ''): Answers {
  return {
    ListContainers: () => ({ containers: ids.map(containerOf) }),
    ListPodSandbox: () => ({ items: [POD] }),
    ContainerStatus: ({ container_id: id }) => ({ info: { info: info(id) } }),
    UpdateContainerResources: () => ({}),
  };
}

async function runtimeWith(answers: Answers): Promise<{ runtime: ContainerRuntime; fake: FakeRuntime }> {
  const socketPath = join(temporaryFolder(onTestFinished), 'runtime.sock');
  const fake = new FakeRuntime(answers);
  await fake.listen(socketPath);
  const runtime = new ContainerRuntime({ socketPath });
  onTestFinished(() => {
    runtime.close();
    fake.close();
  });
  return { runtime, fake };
}

function makeCgroup(): ContainerCgroup {
  const cgroup = new ContainerCgroup();
  onTestFinished(() => cgroup.end());
  return cgroup;
}

describe('The containers of a runtime', () => {
  it('are the running ones, with the names of their pods', async () => {
    const { runtime, fake } = await runtimeWith(answersFor(['a1']));
    expect(await runtime.containers({ labels: { app: 'web' } })).toEqual([
      {
        ...{ id: 'a1', name: 'nginx', pod: 'web', namespace: 'shop', podUid: 'u1' },
        ...{ labels: { app: 'web' }, annotations: {} },
      },
    ]);
    const [, { filter }] = fake.requests.find(([name]) => name === 'ListContainers')!;
    expect(filter).toMatchObject({ state: { state: 1 }, label_selector: { app: 'web' } });
  });

  it('are listed even if their pod is not, or has no names', async () => {
    const items: Message[] = [{ id: 's2', state: 0 }];
    const answers = { ...answersFor(['a1']), ListPodSandbox: () => ({ items }) };
    const { runtime } = await runtimeWith(answers);
    expect(await runtime.containers()).toMatchObject([{ id: 'a1', pod: '', namespace: '', podUid: '' }]);
    items[0]!.id = 's1';
    expect(await runtime.containers()).toMatchObject([{ id: 'a1', pod: '', namespace: '', podUid: '' }]);
  });

  it.each([
    ['nothing', ''],
    ['no JSON', '{'],
    ['no object', 'null'],
    ['a text for the pid', '{"pid":"1"}'],
    ['no possible pid', '{"pid":-1}'],
    ['the pid of a process that is not there', `{"pid":${2 ** 40}}`],
    ["another user's process", `{"pid":${process.pid}}`],
  ])('have no foreign process if the runtime says %s', async (_, info) => {
    const { runtime } = await runtimeWith(answersFor(['a1'], () => info));
    await expect(runtime.find('a1')).rejects.toMatchObject({
      code: 'ERR_CONTAINER_ENDED',
      details: { value: 'a1' },
    });
  });
});

describe.runIf(canMakeCgroups)('A container with a cgroup', () => {
  it.each([
    ['the runtime says its process', (pid: number) => JSON.stringify({ pid })],
    ['the runtime says nothing', () => ''],
    ['the runtime says another process', () => `{"pid":${process.pid}}`],
  ])('has its process and its cpuset if %s', async (_, info) => {
    const cgroup = makeCgroup();
    const { runtime } = await runtimeWith(answersFor([cgroup.id], () => info(cgroup.pid)));
    const found = await runtime.find('shop/web/nginx');
    expect([found.pid, found.cpuset.folder]).toEqual([cgroup.pid, cgroup.folder]);
    expect(found.cpuset.effectiveCpus.isEmpty).toBe(false);
  });

  it('ends with its process, whatever the runtime says', async () => {
    const cgroup = makeCgroup();
    const { runtime } = await runtimeWith(answersFor([cgroup.id], () => JSON.stringify({ pid: cgroup.pid })));
    const container = await runtime.find('nginx');
    expect(await runtime.isRunning(container)).toBe(true);
    await cgroup.end();
    expect(await runtime.isRunning(container)).toBe(false);
    await expect(runtime.inspect(container)).rejects.toMatchObject({ code: 'ERR_CONTAINER_ENDED' });
  });

  it('gets only its CPUs and memory nodes', async () => {
    const cgroup = makeCgroup();
    const answers = answersFor([cgroup.id]);
    const cpu = readCpuset(cgroup.folder).effectiveCpus.first!;
    const { runtime, fake } = await runtimeWith({
      ...answers,
      UpdateContainerResources: ({ linux }) => {
        cgroup.write('cpuset.cpus', linux.cpuset_cpus);
        return {};
      },
    });
    const cpuset = await runtime.setCpuset(await runtime.find('nginx'), { cpus: CpuSet.of(cpu) });
    expect(`${cpuset.effectiveCpus}`).toBe(`${cpu}`);
    const [, sent] = fake.requests.find(([name]) => name === 'UpdateContainerResources')!;
    const isSet = (value: unknown) =>
      typeof value === 'object' ? Object.keys(value!).length > 0 : value !== 0 && value !== '';
    expect(Object.entries(sent.linux).filter(([, value]) => isSet(value))).toEqual([
      ['cpuset_cpus', `${cpu}`],
    ]);
  });

  it('is reported as it is if the runtime has not applied the request', async () => {
    const cgroup = makeCgroup();
    const { runtime } = await runtimeWith(answersFor([cgroup.id]));
    const container = await runtime.find('nginx');
    const now = `${container.cpuset.effectiveCpus}`;
    await expect(
      runtime.setCpuset(container, { cpus: CpuSet.of(60_000), mems: NodeSet.of(1000) }),
    ).rejects.toMatchObject({
      code: 'ERR_CPUSET_MISMATCH',
      message: expect.stringContaining(`CPUs ${now}, not 60000 and memory nodes`),
      details: { value: { cpus: now }, valid: { cpuset_cpus: '60000', cpuset_mems: '1000' } },
    });
  });
});
