import { afterEach, beforeEach, expect, test } from 'vitest';
import { connectTo } from '../../lib/nri/connect.js';
import type { NriHandlers } from '../../lib/nri/handlers.js';
import type { ContainerUpdate, Runtime } from '../../lib/nri/messages.js';
import { NriSession } from '../../lib/nri/session.js';
import {
  type EventStyle,
  type FakePlugin,
  FakeRuntime,
  type FakeRuntimeOptions,
} from '../support/fake-runtime.js';
import { containerOf, idleHandlers, podOf } from '../support/nri-handlers.js';
import { socketFolder } from '../support/socket-folder.js';

const place = socketFolder();
let runtime: FakeRuntime | undefined;
let session: NriSession | undefined;
let handlers: NriHandlers;

const POD = podOf('p');
const CONTAINER = containerOf('c', 'p');

beforeEach(() => {
  handlers = idleHandlers();
});

afterEach(async () => {
  await session?.close();
  await runtime?.close();
  place.remove();
});

/** A session and the runtime's side of it, registered. */
async function connect(options: FakeRuntimeOptions = {}) {
  Object.assign(place, socketFolder());
  runtime = await FakeRuntime.listen(place.socketPath, options);
  const socket = await connectTo(place.socketPath, new AbortController().signal);
  session = new NriSession({ socket, name: 'numalign', index: '10', handlers });
  const started = session.start();
  started.catch(() => {});
  return { session, started, runtime };
}

/** The same, configured and synchronized. */
async function synchronized(): Promise<{ session: NriSession; peer: FakePlugin }> {
  const { session: made, started, runtime: with_ } = await connect();
  const peer = await with_.synchronizedPlugin();
  await started;
  return { session: made, peer };
}

const update = (id: string, cpus: string): ContainerUpdate => ({
  container_id: id,
  linux: { resources: { cpu: { cpus } } },
});
const cpusOf = (updates: any[]) => updates.map((each) => [each.container_id, each.linux.resources.cpu.cpus]);

test('a session registers with its name and index, and subscribes to what it has handlers for', async () => {
  handlers.removeContainer = () => {};
  const { peer } = await synchronized();
  expect(peer.registration).toEqual({ plugin_name: 'numalign', plugin_idx: '10' });
  expect(peer.events).toBe((1 << 3) | (1 << 7) | (1 << 9) | (1 << 10));
});

test.each(['early', 'late'] as const)('the answer to a registration may come %s', async (registration) => {
  const { started, runtime: with_ } = await connect({ registration });
  await with_.synchronizedPlugin();
  await started;
});

test('a session is told of the runtime before it is synchronized', async () => {
  const calls: (Runtime | string)[] = [];
  handlers.configure = (about) => void calls.push(about);
  handlers.synchronize = async () => {
    calls.push('synchronize');
    return [];
  };
  const { started, session: made, runtime: with_ } = await connect({ name: 'containerd', version: '2.1.0' });
  const peer = await with_.plugin();
  await peer.configure({
    registration_timeout: 5000,
    request_timeout: 2000,
    NRI_version: 'v0.11.0',
    config: 'x: 1',
  });
  await peer.synchronize([], []);
  await started;
  const about = {
    name: 'containerd',
    version: '2.1.0',
    config: 'x: 1',
    nriVersion: 'v0.11.0',
    registrationTimeout: 5000,
    requestTimeout: 2000,
  };
  expect(calls).toEqual([about, 'synchronize']);
  expect(made.runtime).toEqual(about);
});

test('what an old runtime does not say of itself is undefined', async () => {
  const { session: made } = await synchronized();
  expect(made.runtime).toMatchObject({
    nriVersion: undefined,
    registrationTimeout: undefined,
    requestTimeout: undefined,
  });
});

test.each([1, 2, 7])('a state in %i parts is synchronized as one', async (parts) => {
  let seen: string[] = [];
  handlers.synchronize = async (pods, containers) => {
    seen = [...pods, ...containers].map(({ id }) => id);
    return [update('1', '0-3')];
  };
  const { started, runtime: with_ } = await connect();
  const peer = await with_.plugin();
  await peer.configure();
  const pods = ['a', 'b', 'c'].map((id) => podOf(id));
  const containers = ['1', '2', '3', '4', '5'].map((id) => containerOf(id, 'a'));
  const answer = await peer.synchronize(pods, containers, parts);
  await started;
  expect(seen).toEqual(['a', 'b', 'c', '1', '2', '3', '4', '5']);
  expect(cpusOf(answer.update)).toEqual([['1', '0-3']]);
});

test('a runtime may synchronize again', async () => {
  const seen: string[][] = [];
  handlers.synchronize = async (pods) => {
    seen.push(pods.map(({ id }) => id));
    return [];
  };
  const { peer } = await synchronized();
  await peer.synchronize([POD], []);
  expect(seen).toEqual([[], ['p']]);
});

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
    updates: [update('other', '0-1')],
  });
  const { peer } = await synchronized();
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

test('UpdateContainer has the resources that are asked for, and is answered with updates', async () => {
  handlers.updateContainer = async (_pod, { id }, resources) => [update(id, `${resources.cpu?.cpus}+`)];
  const { peer } = await synchronized();
  const answer = await peer.updateContainer(POD, CONTAINER, { cpu: { cpus: '0-7' } });
  expect(cpusOf(answer.update)).toEqual([['c', '0-7+']]);
});

test('StopContainer is answered with updates', async () => {
  handlers.stopContainer = async () => [update('other', '0-3')];
  const { peer } = await synchronized();
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
  const { peer } = await synchronized();
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
    const { peer } = await synchronized();
    await peer.event('RunPodSandbox', POD, undefined, style);
    await peer.event('RemoveContainer', POD, CONTAINER, style);
  },
);

test('events and calls of newer runtimes are answered', async () => {
  const { peer } = await synchronized();
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
  const { peer } = await synchronized();
  const method = name[0]!.toUpperCase() + name.slice(1);
  const answer = peer.call(method, 'UpdateContainerRequest', { pod: POD, container: CONTAINER }, 'Empty');
  await expect(answer).rejects.toMatchObject({ status: 2, message: 'no CPUs left' });
  await peer.synchronize([], []);
});

test('an answer that is no message is an error, and the session goes on', async () => {
  handlers.stopContainer = async () => [{ container_id: 7 } as never];
  const { peer } = await synchronized();
  await expect(peer.stopContainer(POD, CONTAINER)).rejects.toMatchObject({
    status: 2,
    message: expect.stringContaining('container_id'),
  });
  await peer.synchronize([], []);
});

test('a request without its pod or container is refused', async () => {
  const { peer } = await synchronized();
  const create = (request: object) =>
    peer.call('CreateContainer', 'CreateContainerRequest', request, 'Empty');
  await expect(create({ container: CONTAINER })).rejects.toMatchObject({ status: 3 });
  await expect(create({ pod: POD })).rejects.toMatchObject({ status: 3 });
});

test('what needs the state of the runtime is refused before it is known', async () => {
  const { runtime: with_ } = await connect();
  const peer = await with_.plugin();
  await peer.configure();
  await expect(peer.createContainer(POD, CONTAINER)).rejects.toMatchObject({ status: 9 });
});

test.each([
  ['Configure', 'configure'],
  ['Synchronize', 'synchronize'],
] as const)('a session whose %s fails here answers with the error and ends', async (method, name) => {
  Object.assign(handlers, { [name]: () => Promise.reject(new Error('state is locked')) });
  const { started, session: made, runtime: with_ } = await connect();
  const peer = await with_.plugin();
  const answer = peer.callBytes(method, Buffer.alloc(0));
  await expect(answer).rejects.toMatchObject({ status: 2, message: 'state is locked' });
  expect(await made.closed).toMatchObject({
    code: 'ERR_NRI_HANDLER',
    message: expect.stringContaining('state is locked'),
  });
  await expect(started).rejects.toMatchObject({ code: 'ERR_NRI_HANDLER' });
});

test("a registration that is refused ends the session with the runtime's words", async () => {
  const { started, session: made } = await connect({ registration: { error: 'index 10 is taken' } });
  await expect(started).rejects.toMatchObject({
    code: 'ERR_NRI_REGISTER',
    message: expect.stringContaining('index 10 is taken'),
  });
  expect(await made.closed).toMatchObject({ code: 'ERR_NRI_REGISTER' });
});

test('updates without a call return those that failed', async () => {
  const { session: made, peer } = await synchronized();
  peer.onUpdate = ({ update: updates }) => updates.slice(1);
  const failed = await made.updateContainers([update('a', '0'), update('b', '1')]);
  expect(cpusOf(peer.updates[0]!.update)).toEqual([
    ['a', '0'],
    ['b', '1'],
  ]);
  expect(failed.map((each) => each.container_id)).toEqual(['b']);
});

test('updates that the runtime refuses have its words', async () => {
  const { session: made, peer } = await synchronized();
  peer.onUpdate = () => Promise.reject(new Error('busy'));
  await expect(made.updateContainers([update('a', '0')])).rejects.toMatchObject({
    code: 'ERR_TTRPC_STATUS',
    message: 'busy',
  });
});

test('updates and calls may cross', async () => {
  const { session: made, peer } = await synchronized();
  let failed: Promise<readonly ContainerUpdate[]> | undefined;
  handlers.createContainer = async () => {
    failed = made.updateContainers([update('a', '0')]);
    return {};
  };
  // As containerd: no update while a call waits for its answer.
  let isAnswered = false;
  peer.onUpdate = async () => {
    await expect.poll(() => isAnswered).toBe(true);
    return [];
  };
  await peer.createContainer(POD, CONTAINER);
  isAnswered = true;
  expect(await failed).toEqual([]);
});

test('a runtime that shuts down has its answer, and the session ends', async () => {
  const { session: made, peer } = await synchronized();
  await peer.shutdown();
  expect(await made.closed).toMatchObject({ code: 'ERR_NRI_SHUTDOWN' });
});

test('a runtime that goes ends the session and what waits for it', async () => {
  const { session: made, peer } = await synchronized();
  let signal: AbortSignal | undefined;
  handlers.createContainer = (_pod, _container, call) => {
    signal = call.signal;
    return new Promise(() => {});
  };
  peer.createContainer(POD, CONTAINER).catch(() => {});
  await expect.poll(() => signal).toBeDefined();
  peer.onUpdate = () => new Promise(() => {});
  const pending = made.updateContainers([update('a', '0')]);
  peer.disconnect();
  await expect(pending).rejects.toMatchObject({ code: 'ERR_TTRPC_CLOSED' });
  expect(await made.closed).toMatchObject({ code: 'ERR_TTRPC_CLOSED' });
  expect(signal!.aborted).toBe(true);
});

test('a session that is closed has no reason', async () => {
  const { session: made, peer } = await synchronized();
  await made.close();
  expect(await made.closed).toBeUndefined();
  await peer.closed;
});
