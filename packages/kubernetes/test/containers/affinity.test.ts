// Containers near others and apart from them, on two NUMA nodes with two L3 caches each.
import { describe, expect, it } from 'vitest';
import { containerOf, podOf } from '../support/nri-objects.js';
import { simulatedNode } from '../support/simulated-node.js';

// Node 0: L3 0-1 and 2-3; node 1: 4-5 and 6-7.
const MACHINE = 'numa:2(memory=8GB) l3:2 core:2 pu:1';
const GIB = 2 ** 30;

type Keys = Record<string, string>;
const prefixed = (keys: Keys) =>
  Object.fromEntries(Object.entries(keys).map(([key, value]) => [`numalign.io/${key}`, value]));

async function nodeOf(options = {}) {
  const node = await simulatedNode(options, MACHINE);
  let handlers = node.handlers;
  const pod = (name: string, keys: Keys = {}, labels: Keys = {}) =>
    podOf({ id: name, uid: `uid-${name}`, name, labels, annotations: prefixed(keys) });
  const create = async (name: string, cpus: number, keys: Keys = {}, labels: Keys = {}) => {
    const fields = { id: `c-${name}`, pod_sandbox_id: name, name: 'main', cpus, memory: GIB };
    const sandbox = pod(name, keys, labels);
    handlers.runPodSandbox(sandbox);
    const { adjust } = await handlers.createContainer(sandbox, containerOf(fields));
    return adjust.linux!.resources!.cpu!.cpus;
  };
  const restart = async () => {
    handlers = node.restart();
    return handlers;
  };
  return { ...node, create, pod, restart };
}

describe('A container that is to be near another one', () => {
  it.each([
    ['the container of a pod, by name', 'db/main'],
    ['pods with labels', 'app=db'],
    ['the container in its namespace', 'default/db/main l3'],
  ])('has CPUs at the same L3 cache or NUMA node: %s', async (_, near) => {
    const { create } = await nodeOf();
    await create('filler', 4);
    expect(await create('db', 1, {}, { app: 'db' })).toBe('4');
    const fits = near.endsWith('l3') ? '5' : '5-6';
    expect(await create('web', fits === '5' ? 1 : 2, { near })).toBe(fits);
  });

  it('has CPUs of the nearest group that has room, if it only prefers to be there', async () => {
    const { create, lines } = await nodeOf();
    await create('db', 1, { apart: 'x/main' }, { app: 'db' });
    expect(await create('a', 2, { near: 'app=db l3' })).toBe('1-2');
    expect(await create('b', 2, { near: 'app=db' })).toBe('4-5');
    expect(lines.filter((line) => line.includes('container main may not be where it prefers'))).toHaveLength(
      2,
    );
  });

  it('is refused if it must be there and there is no room, or no other; the error says who is where', async () => {
    const { create, manager } = await nodeOf();
    await create('db', 1, {}, { app: 'db' });
    const required = { near: 'app=db l3 required' };
    await expect(create('web', 2, required)).rejects.toMatchObject({
      code: 'ERR_AFFINITY',
      message: expect.stringMatching(
        /^container main must be near app=db, at the same L3 cache \(default\/db\/main on CPUs 0\): .*to be chosen from CPUs 0-1 only/,
      ),
    });
    await expect(create('other', 1, { near: 'app=x required' })).rejects.toThrow(
      /near app=x, at the same NUMA node \(no container with CPUs of its own\)/,
    );
    expect(await create('web', 1, required)).toBe('1');
    expect(manager.grants()).toHaveLength(2);
  });

  it('is the first of its kind if no other has the labels', async () => {
    const { create } = await nodeOf();
    const keys = { near: 'app=web l3 required' };
    expect(await create('a', 1, keys, { app: 'web' })).toBe('0');
    expect(await create('b', 1, keys, { app: 'web' })).toBe('1');
    await expect(create('c', 1, keys, { app: 'web' })).rejects.toThrow(/near app=web/);
  });
});

describe('A container that is to be apart from another one', () => {
  it('has CPUs of another L3 cache, or of another NUMA node', async () => {
    const { create } = await nodeOf();
    await create('db', 1);
    expect(await create('a', 1, { apart: 'db/main l3' })).toBe('2');
    expect(await create('b', 1, { apart: 'db/main' })).toBe('4');
  });

  it('is kept apart from later ones, too, also by a plugin that has just started', async () => {
    const { create, pod, restart } = await nodeOf();
    const keys = { apart: 'app=noisy node required' };
    await create('quiet', 1, keys);
    expect(await create('noisy', 2, {}, { app: 'noisy' })).toBe('4-5');
    const handlers = await restart();
    const container = containerOf({ id: 'c-quiet', pod_sandbox_id: 'quiet', cpus: 1, memory: GIB });
    await handlers.synchronize([pod('quiet', keys)], [container]);
    await expect(create('more', 7, {}, { app: 'noisy' })).rejects.toThrow(
      /must be default\/quiet\/main is to be apart from app=noisy/,
    );
  });

  it('is near them if it only prefers to be apart, and there is no room', async () => {
    const { create } = await nodeOf();
    await create('db', 1);
    expect(await create('a', 5, { apart: 'db/main' })).toBe('1-5');
  });
});

it('Containers without CPUs of their own go anywhere', async () => {
  const { create } = await nodeOf();
  await create('db', 1);
  expect(await create('shared', 0.5, { near: 'absent/main required' })).toBe('1-7');
});

it.each(['', 'app=', 'a/b/c/d', 'app=db l3 node', 'app=db always', 'app==db'])(
  'Nearness to %j is refused, with what is valid',
  async (near) => {
    const { create } = await nodeOf();
    const creation = create('a', 1, { near });
    if (near === 'app=') await expect(creation).resolves.toBe('0');
    else await expect(creation).rejects.toMatchObject({ code: 'ERR_INVALID_ANNOTATION' });
  },
);
