// Pods of a kubelet that are placed with all their containers, by their manifests.
import { describe, expect, it } from 'vitest';
import { parseRules } from '../../lib/placement/rules.js';
import { containerOf, podOf } from '../support/nri-objects.js';
import { MACHINE, type SimulatedNode, simulatedNode } from '../support/simulated-node.js';

const UID = '6a1c2b34-0000-4000-8000-123456789abc';
const PARENT = `/kubepods/pod${UID}`;
const POD = podOf({ uid: UID, cgroupParent: PARENT });

type Amounts = Record<string, number>;
const amounts = (cpu: number, more: object = {}) => ({
  resources: { limits: { cpu, memory: 2 ** 20, ...more }, requests: { cpu, memory: 2 ** 20 } },
});

/** A manifest: CPUs by the name of the container. */
const manifestOf = (containers: Amounts, initContainers: Amounts = {}, more: object = {}) => ({
  metadata: { uid: UID, name: 'web', namespace: 'default' },
  spec: {
    containers: Object.entries(containers).map(([name, cpu]) => ({ name, ...amounts(cpu) })),
    initContainers: Object.entries(initContainers).map(([name, cpu]) => ({
      ...{ name, ...amounts(cpu) },
      ...(name === 'sidecar' && { restartPolicy: 'Always' }),
    })),
    ...more,
  },
});

let created = 0;
const containerNamed = (name: string, cpus: number) => {
  const id = `${name}-${++created}`;
  const fields = containerOf({ id, name, cpus, memory: 2 ** 20 });
  return { ...fields, linux: { ...fields.linux!, cgroups_path: `${PARENT}/${id}` } };
};

const nodeWith = (find: (() => object | null) | object, options = {}, rules: object[] = []) =>
  simulatedNode(
    options,
    MACHINE,
    undefined,
    async () => (typeof find === 'function' ? (find as () => object | null)() : find),
    () => ({ placement: {}, rules: parseRules(rules, 'rules') }),
  );

async function create(
  { handlers }: Pick<SimulatedNode, 'handlers'>,
  container: ReturnType<typeof containerOf>,
  keys: Record<string, string> = {},
) {
  const pairs = Object.entries(keys).map(([key, value]) => [`numalign.io/${key}`, value]);
  const pod = { ...POD, annotations: Object.fromEntries(pairs) };
  const { adjust } = await handlers.createContainer(pod, container);
  return adjust.linux!.resources!.cpu!.cpus;
}

const held = ({ manager }: SimulatedNode) =>
  Object.fromEntries(manager.grants().map(({ uid, cpus }) => [uid, `${cpus}`]));

describe('A pod whose manifest is known', () => {
  it('is admitted with all its containers when the first one is created', async () => {
    const node = await nodeWith(manifestOf({ a: 2, b: 1 }));
    expect(await create(node, containerNamed('a', 2))).toBe('0-1');
    expect(held(node)).toEqual({ [UID]: '0-2' });
    expect(node.manager.grants()[0]!.name).toBe('numalign:default/web');
    expect(await create(node, containerNamed('b', 1))).toBe('2');
    await node.handlers.stopPodSandbox(POD);
    expect(held(node)).toEqual({});
  });

  it('is refused at the first one if not all have room, and nothing is on record', async () => {
    const node = await nodeWith(manifestOf({ a: 2, b: 7 }));
    await expect(create(node, containerNamed('a', 2))).rejects.toThrow(/7 exclusive CPUs requested/);
    expect(held(node)).toEqual({});
  });

  it('is on one NUMA node under the scope pod', async () => {
    const alone = { policy: 'single-numa-node', scope: 'pod' } as const;
    const node = await nodeWith(manifestOf({ a: 2, b: 3 }), alone);
    await expect(create(node, containerNamed('a', 2))).rejects.toThrow(/./);
    const fitting = await nodeWith(manifestOf({ a: 1, b: 3 }), alone);
    expect(await create(fitting, containerNamed('a', 1))).toBe('0');
    expect(await create(fitting, containerNamed('b', 3))).toBe('1-3');
  });

  it('has its containers reuse what init containers leave, but for sidecars', async () => {
    const node = await nodeWith(manifestOf({ app: 6 }, { sidecar: 1, init: 6 }));
    const sidecar = await create(node, containerNamed('sidecar', 1));
    const init = containerNamed('init', 6);
    const cpus = await create(node, init);
    await node.handlers.stopContainer(POD, init);
    expect(await create(node, containerNamed('app', 6))).toBe(cpus);
    expect(cpus).not.toContain(sidecar);
    expect(Object.keys(held(node))).toEqual([UID]);
  });

  it('has its containers start again where they were, also after a restart of the plugin', async () => {
    const node = await nodeWith(manifestOf({ a: 2, b: 3 }));
    const [a, b] = [containerNamed('a', 2), containerNamed('b', 3)];
    for (const each of [a, b]) await create(node, each);
    await node.handlers.stopContainer(POD, a);
    expect(await create(node, containerNamed('a', 2))).toBe('0-1');
    const handlers = node.restart();
    await handlers.synchronize([POD], [b]);
    expect(held(node)).toEqual({ [UID]: '0-1,4-6' });
    expect(await create({ handlers }, containerNamed('a', 2))).toBe('0-1');
    await handlers.stopContainer(POD, b);
    await handlers.stopPodSandbox(POD);
    expect(held(node)).toEqual({});
  });

  it('keeps its amounts', async () => {
    const node = await nodeWith(manifestOf({ a: 2 }));
    const a = containerNamed('a', 2);
    await create(node, a);
    const update = (cpus: number) =>
      node.handlers.updateContainer(POD, a, containerNamed('a', cpus).linux.resources!);
    await expect(update(3)).rejects.toMatchObject({ code: 'ERR_NOT_RESIZABLE' });
    expect(await update(2)).toHaveLength(1);
  });

  it('has devices of others left to them', async () => {
    const manifest = manifestOf({ a: 2 });
    const [a] = manifest.spec.containers;
    Object.assign(a!, amounts(2, { 'example.com/gpu': 1 }));
    expect(await create(await nodeWith(manifest), containerNamed('a', 2))).toBe('0-1');
  });
});

describe('The containers of a pod are placed one by one', () => {
  const other = { ...manifestOf({ a: 1, b: 1 }), metadata: { uid: 'other', name: 'web' } };
  const burstable = manifestOf({ a: 1 }, {}, { containers: [{ name: 'a', resources: {} }] });

  it.each([
    ['there is none at the API server', () => null],
    ['that one is another pod of this name, such as the mirror of a static pod', other],
    ['it is not Guaranteed there', burstable],
  ])('if %s', async (_, find) => {
    const node = await nodeWith(find);
    await create(node, containerNamed('a', 1));
    expect(held(node)).toEqual({ [`${UID}.a`]: '0' });
  });

  it('if the API server does not answer in time, which is logged once', async () => {
    let isThere = false;
    const node = await nodeWith(() => {
      if (isThere) return manifestOf({ a: 1, b: 1 });
      throw new Error('no answer');
    });
    await create(node, containerNamed('a', 1));
    isThere = true;
    await create(node, containerNamed('b', 1));
    expect(Object.keys(held(node))).toEqual([`${UID}.a`, `${UID}.b`]);
    expect(node.lines.filter((line) => line.includes('one by one'))).toEqual([
      'warn: the containers of pod web are placed one by one: no answer',
    ]);
  });

  it.each([
    ['annotations of one differ', { 'core-kind.a': 'performance' }, [], /ask for different things/],
    ['rules differ', {}, [{ match: { containers: 'a' }, cpus: '4-7' }], /ask for different things/],
    ['they are to be apart', { apart: 'b' }, [], /are to be near each other, or apart/],
    ['each has CPUs for kernel work', { quiet: 'idle', housekeeping: '1' }, [], /kernel work/],
  ])('if %s, which is logged', async (_, keys, rules, why) => {
    const node = await nodeWith(manifestOf({ a: 2, b: 2 }), {}, rules);
    await create(node, containerNamed('a', 2), keys);
    expect(Object.keys(held(node))).toEqual([`${UID}.a`]);
    expect(node.lines.filter((line) => line.includes('one by one'))).toEqual([expect.stringMatching(why)]);
  });
});

describe('A whole pod', () => {
  const whole = async (
    keys: Record<string, string>,
    rules: object[] = [],
    containers: Amounts = { a: 1, b: 2 },
  ) => {
    const node = await nodeWith(manifestOf(containers), {}, rules);
    const cpus = await create(node, containerNamed('a', containers.a!), keys);
    expect(Object.keys(held(node))).toEqual([UID]);
    return { ...node, cpus };
  };

  it('follows the rule of its containers', async () => {
    const rule = { match: { namespaces: 'default' }, cpus: '4-7', policy: 'single-numa-node' };
    const node = await whole({}, [rule]);
    expect(held(node)).toEqual({ [UID]: '4-6' });
    await expect(whole({}, [rule], { a: 2, b: 3 })).rejects.toThrow(/from CPUs 4-7 only/);
  });

  it('has the amounts that annotations and rules say', async () => {
    const node = await whole({ 'cpu.b': '3' }, [{ match: { containers: 'c' }, exclusive: false }], {
      ...{ a: 1, b: 2, c: 2 },
    });
    expect(held(node)).toEqual({ [UID]: '0-3' });
    expect(await create(node, containerNamed('b', 2))).toBe('1-3');
    expect(await create(node, containerNamed('c', 2))).toBe('4-7');
  });

  it('is as quiet as annotations say, or refused', async () => {
    const { manager } = await whole({ quiet: 'idle' });
    expect(Object.keys(manager.pod(UID).quiet!.parts)).toEqual(['idle']);
    const keys = { quiet: 'idle', 'require-quiet': 'idle' };
    await expect(whole(keys)).rejects.toMatchObject({ code: 'ERR_QUIET' });
  });

  it('is refused for a wrong annotation of a later container', async () => {
    const node = await nodeWith(manifestOf({ a: 1, b: 1 }));
    const created = create(node, containerNamed('a', 1), { 'cpu.b': 'two' });
    await expect(created).rejects.toMatchObject({ code: 'ERR_INVALID_ANNOTATION' });
    expect(held(node)).toEqual({});
  });

  describe('beside a pod with CPUs of its own', () => {
    const other = podOf({ id: 'db', uid: 'uid-db', name: 'db', labels: { app: 'db' } });
    const beside = async (containers: Amounts, annotations: Record<string, string> = {}) => {
      const node = await nodeWith(manifestOf(containers));
      node.handlers.runPodSandbox(other);
      const fields = { id: 'db-main', pod_sandbox_id: 'db', name: 'main', cpus: 1, memory: 2 ** 20 };
      await node.handlers.createContainer({ ...other, annotations }, containerOf(fields));
      return node;
    };

    it('is near it with all its containers, or refused', async () => {
      const near = { near: 'app=db required' };
      const node = await beside({ a: 1, b: 2 });
      await create(node, containerNamed('a', 1), near);
      expect(held(node)[UID]).toBe('1-3');
      const created = create(await beside({ a: 2, b: 2 }), containerNamed('a', 2), near);
      await expect(created).rejects.toMatchObject({ code: 'ERR_AFFINITY' });
    });

    it('is apart from it if one of its containers has to be', async () => {
      const node = await beside({ a: 1, b: 2 }, { 'numalign.io/apart': 'web/b required' });
      await create(node, containerNamed('a', 1));
      expect(held(node)[UID]).toBe('4-6');
    });
  });
});
