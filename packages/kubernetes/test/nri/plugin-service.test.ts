import { afterEach, beforeEach, expect, test } from 'vitest';
import type { NriHandlers } from '../../lib/nri/handlers.js';
import type { EventStyle } from '../support/fake-runtime.js';
import { containerOf, cpusOf, idleHandlers, podOf, updateOf } from '../support/nri-handlers.js';
import { SessionPair } from '../support/session-pair.js';

const pair = new SessionPair();
let handlers: NriHandlers;

const POD = podOf('p');
const CONTAINER = containerOf('c', 'p');

beforeEach(() => {
  handlers = idleHandlers();
});

afterEach(() => pair.close());

test('CreateContainer is answered with an adjustment and updates of others', async () => {
  handlers.createContainer = async (pod, container) => ({
    adjust: {
      env: [{ key: 'NUMALIGN_CPUS', value: '2-3' }],
      annotations: { of: `${pod.name}/${container.name}` },
      linux: {
        resources: { cpu: { cpus: '2-3', mems: '0' } },
        devices: [{ path: '/dev/x', type: 'c', major: 10, minor: 1 }],
      },
      CDI_devices: [{ name: 'vendor.com/class=x' }],
    },
    updates: [updateOf('other', '0-1')],
  });
  const { peer } = await pair.synchronize(handlers);
  const { adjust, update: updates } = await peer.createContainer(POD, CONTAINER);
  expect(adjust).toMatchObject({
    env: [{ key: 'NUMALIGN_CPUS', value: '2-3' }],
    annotations: { of: 'pod-p/container-c' },
    linux: {
      resources: { cpu: { cpus: '2-3', mems: '0' } },
      devices: [{ path: '/dev/x', major: 10, minor: 1 }],
    },
    CDI_devices: [{ name: 'vendor.com/class=x' }],
  });
  expect(cpusOf(updates)).toEqual([['other', '0-1']]);
});

test('UpdateContainer has the requested resources, and is answered with updates', async () => {
  handlers.updateContainer = async (_pod, { id }, resources) => [updateOf(id, `${resources.cpu?.cpus}+`)];
  const { peer } = await pair.synchronize(handlers);
  const answer = await peer.updateContainer(POD, CONTAINER, { cpu: { cpus: '0-7' } });
  expect(cpusOf(answer.update)).toEqual([['c', '0-7+']]);
});

test('StopContainer is answered with updates', async () => {
  handlers.stopContainer = async () => [updateOf('other', '0-3')];
  const { peer } = await pair.synchronize(handlers);
  expect(cpusOf((await peer.stopContainer(POD, CONTAINER)).update)).toEqual([['other', '0-3']]);
});

test.each(['StateChange', 'call'] as EventStyle[])('events by %s have the same handlers', async (style) => {
  const calls: string[] = [];
  for (const name of ['runPodSandbox', 'stopPodSandbox', 'removePodSandbox'] as const) {
    handlers[name] = (pod) => void calls.push(`${name} ${pod.id}`);
  }
  const events = [
    'postCreateContainer',
    'startContainer',
    'postStartContainer',
    'postUpdateContainer',
    'removeContainer',
  ] as const;
  for (const name of events)
    handlers[name] = (pod, container) => void calls.push(`${name} ${pod.id} ${container.id}`);
  const { peer } = await pair.synchronize(handlers);
  for (const name of ['RunPodSandbox', 'StopPodSandbox', 'RemovePodSandbox'])
    await peer.event(name, POD, undefined, style);
  for (const name of ['PostCreate', 'Start', 'PostStart', 'PostUpdate', 'Remove']) {
    await peer.event(`${name}Container`, POD, CONTAINER, style);
  }
  expect(calls).toEqual([
    'runPodSandbox p',
    'stopPodSandbox p',
    'removePodSandbox p',
    'postCreateContainer p c',
    'startContainer p c',
    'postStartContainer p c',
    'postUpdateContainer p c',
    'removeContainer p c',
  ]);
});

test.each(['StateChange', 'call'] as EventStyle[])(
  'an event by %s without a handler is answered',
  async (style) => {
    const { peer } = await pair.synchronize(handlers);
    await peer.event('RunPodSandbox', POD, undefined, style);
    await peer.event('RemoveContainer', POD, CONTAINER, style);
  },
);

test('events and calls of newer runtimes are answered', async () => {
  const { peer } = await pair.synchronize(handlers);
  await peer.call('StateChange', 'StateChangeEvent', { event: 99, pod: POD }, 'Empty');
  for (const method of ['UpdatePodSandbox', 'PostUpdatePodSandbox', 'ValidateContainerAdjustment']) {
    await peer.call(method, 'EventRequest', { pod: POD }, 'Empty');
  }
  await expect(peer.callBytes('NoSuchCall', Buffer.alloc(0))).rejects.toMatchObject({ status: 12 });
});

test.each([
  'createContainer',
  'updateContainer',
  'stopContainer',
  'runPodSandbox',
  'removeContainer',
] as const)('an error of %s is the answer, and the session goes on', async (name) => {
  Object.assign(handlers, { [name]: () => Promise.reject(new Error('no CPUs left')) });
  const { peer } = await pair.synchronize(handlers);
  const method = name[0]!.toUpperCase() + name.slice(1);
  const answer = peer.call(method, 'UpdateContainerRequest', { pod: POD, container: CONTAINER }, 'Empty');
  await expect(answer).rejects.toMatchObject({ status: 2, message: 'no CPUs left' });
  await peer.synchronize([], []);
});

test('an answer that is no message is an error, and the session continues', async () => {
  handlers.stopContainer = async () => [{ container_id: 7 } as never];
  const { peer } = await pair.synchronize(handlers);
  await expect(peer.stopContainer(POD, CONTAINER)).rejects.toMatchObject({
    status: 2,
    message: expect.stringContaining('container_id'),
  });
  await peer.synchronize([], []);
});

test('a request without its pod or container is refused', async () => {
  const { peer } = await pair.synchronize(handlers);
  const create = (request: object) =>
    peer.call('CreateContainer', 'CreateContainerRequest', request, 'Empty');
  await expect(create({ container: CONTAINER })).rejects.toMatchObject({ status: 3 });
  await expect(create({ pod: POD })).rejects.toMatchObject({ status: 3 });
});

test('calls that need the state of the runtime are refused before it is known', async () => {
  const { runtime: with_ } = await pair.connect(handlers);
  const peer = await with_.plugin();
  await peer.configure();
  await expect(peer.createContainer(POD, CONTAINER)).rejects.toMatchObject({ status: 9 });
});
