import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import type { NriHandlers } from '../../lib/nri/handlers.js';
import type { ContainerUpdate, Runtime } from '../../lib/nri/messages.js';
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

test('a session registers with its name and index, and subscribes to the events of its handlers', async () => {
  handlers.removeContainer = () => {};
  const { peer } = await pair.synchronize(handlers);
  expect(peer.registration).toEqual({ plugin_name: 'numalign', plugin_idx: '10' });
  expect(peer.events).toBe((1 << 3) | (1 << 7) | (1 << 9) | (1 << 10));
});

test.each(['early', 'late'] as const)('the answer to a registration may come %s', async (registration) => {
  const { started, runtime: with_ } = await pair.connect(handlers, { registration });
  await with_.synchronizedPlugin();
  await started;
});

test('a session gets the runtime’s name before it is synchronized', async () => {
  const calls: (Runtime | string)[] = [];
  handlers.configure = (about) => void calls.push(about);
  handlers.synchronize = async () => {
    calls.push('synchronize');
    return [];
  };
  const {
    started,
    session: made,
    runtime: with_,
  } = await pair.connect(handlers, { name: 'containerd', version: '2.1.0' });
  const peer = await with_.plugin();
  await peer.configure({
    registration_timeout: 5000,
    request_timeout: 2000,
    NRI_version: 'v0.12.0',
    config: 'x: 1',
  });
  await peer.synchronize([], []);
  await started;
  const about = {
    name: 'containerd',
    version: '2.1.0',
    config: 'x: 1',
    nriVersion: 'v0.12.0',
    registrationTimeout: 5000,
    requestTimeout: 2000,
  };
  expect(calls).toEqual([about, 'synchronize']);
  expect(made.runtime).toEqual(about);
});

test('fields that an old runtime does not send are undefined', async () => {
  const { session: made } = await pair.synchronize(handlers);
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
    return [updateOf('1', '0-3')];
  };
  const { started, runtime: with_ } = await pair.connect(handlers);
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
  const { peer } = await pair.synchronize(handlers);
  await peer.synchronize([POD], []);
  expect(seen).toEqual([[], ['p']]);
});

test.each([
  ['Configure', 'configure'],
  ['Synchronize', 'synchronize'],
] as const)('a session whose %s fails here answers with the error and ends', async (method, name) => {
  Object.assign(handlers, { [name]: () => Promise.reject(new Error('state is locked')) });
  const { started, session: made, runtime: with_ } = await pair.connect(handlers);
  const peer = await with_.plugin();
  const answer = peer.callBytes(method, Buffer.alloc(0));
  await expect(answer).rejects.toMatchObject({ status: 2, message: 'state is locked' });
  expect(await made.closed).toMatchObject({
    code: 'ERR_NRI_HANDLER',
    message: expect.stringContaining('state is locked'),
  });
  await expect(started).rejects.toMatchObject({ code: 'ERR_NRI_HANDLER' });
});

test('a session that is not synchronized within a minute ends', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const { started, session: made, runtime: with_ } = await pair.connect(handlers);
  let flaw: unknown;
  started.catch((error) => {
    flaw = error;
  });
  await (await with_.plugin()).configure();
  vi.advanceTimersByTime(59_999);
  expect(made.runtime).toBeDefined();
  vi.advanceTimersByTime(1);
  vi.useRealTimers();
  await expect
    .poll(() => flaw)
    .toMatchObject({ code: 'ERR_NRI_SYNCHRONIZE', details: { valid: 'within 60000 ms' } });
});

test('a session that is up has no timer', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  await pair.synchronize(handlers);
  expect(vi.getTimerCount()).toBe(0);
});

test("a registration that is refused ends the session with the runtime's words", async () => {
  const { started, session: made } = await pair.connect(handlers, {
    registration: { error: 'index 10 is taken' },
  });
  await expect(started).rejects.toMatchObject({
    code: 'ERR_NRI_REGISTER',
    message: expect.stringContaining('index 10 is taken'),
    details: { value: '10-numalign', cause: expect.objectContaining({ message: 'index 10 is taken' }) },
  });
  expect(await made.closed).toMatchObject({ code: 'ERR_NRI_REGISTER' });
});

test('updates without a call return those that failed', async () => {
  const { session: made, peer } = await pair.synchronize(handlers);
  peer.onUpdate = ({ update: updates }) => updates.slice(1);
  const failed = await made.updateContainers([updateOf('a', '0'), updateOf('b', '1')]);
  expect(cpusOf(peer.updates[0]!.update)).toEqual([
    ['a', '0'],
    ['b', '1'],
  ]);
  expect(failed.map((each) => each.container_id)).toEqual(['b']);
});

test('updates that the runtime refuses have its words', async () => {
  const { session: made, peer } = await pair.synchronize(handlers);
  peer.onUpdate = () => Promise.reject(new Error('busy'));
  await expect(made.updateContainers([updateOf('a', '0')])).rejects.toMatchObject({
    code: 'ERR_TTRPC_STATUS',
    message: 'busy',
  });
});

test('updates and calls may cross', async () => {
  const { session: made, peer } = await pair.synchronize(handlers);
  let failed: Promise<readonly ContainerUpdate[]> | undefined;
  handlers.createContainer = async () => {
    failed = made.updateContainers([updateOf('a', '0')]);
    return {};
  };
  // Like containerd: no update while a call waits for its answer.
  let isAnswered = false;
  peer.onUpdate = async () => {
    await expect.poll(() => isAnswered).toBe(true);
    return [];
  };
  await peer.createContainer(POD, CONTAINER);
  isAnswered = true;
  expect(await failed).toEqual([]);
});

test('a runtime that shuts down gets its answer, and the session ends', async () => {
  const { session: made, peer } = await pair.synchronize(handlers);
  await peer.shutdown();
  expect(await made.closed).toMatchObject({ code: 'ERR_NRI_SHUTDOWN' });
});

test('the end of the runtime ends the session and its pending calls', async () => {
  const { session: made, peer } = await pair.synchronize(handlers);
  let signal: AbortSignal | undefined;
  handlers.createContainer = (_pod, _container, call) => {
    signal = call.signal;
    return new Promise(() => {});
  };
  peer.createContainer(POD, CONTAINER).catch(() => {});
  await expect.poll(() => signal).toBeDefined();
  peer.onUpdate = () => new Promise(() => {});
  const pending = made.updateContainers([updateOf('a', '0')]);
  peer.disconnect();
  await expect(pending).rejects.toMatchObject({ code: 'ERR_TTRPC_CLOSED' });
  expect(await made.closed).toMatchObject({ code: 'ERR_TTRPC_CLOSED' });
  expect(signal!.aborted).toBe(true);
});

test('a session that is closed has no reason', async () => {
  const { session: made, peer } = await pair.synchronize(handlers);
  await made.close();
  expect(await made.closed).toBeUndefined();
  await peer.closed;
});
