import { describe, expect, it } from 'vitest';
import { parseRules, type Rule } from '../../lib/placement/rules.js';
import { containerOf, podOf } from '../support/nri-objects.js';
import { cpusByContainer, type SimulatedNode, simulatedNode } from '../support/simulated-node.js';

/** A node with these rules, which `replace` changes. */
async function ruledNode(fields: object[], machine?: string) {
  let rules: readonly Rule[] = parseRules(fields, 'rules');
  const node = await simulatedNode({}, machine, undefined, () => ({ placement: {}, rules }));
  const replace = (next: object[]) => {
    rules = parseRules(next, 'rules');
  };
  return { node, replace };
}

/** Creates a container in a pod of its own, and returns its CPUs. */
async function create(
  { handlers }: SimulatedNode,
  id: string,
  fields: Parameters<typeof containerOf>[0] = {},
) {
  const pod = podOf({ id: fields.pod_sandbox_id ?? `pod-${id}`, uid: `uid-${id}`, name: id });
  const container = containerOf({ pod_sandbox_id: pod.id, ...fields, id });
  const { adjust, updates } = await handlers.createContainer(pod, container);
  return { cpus: adjust.linux?.resources?.cpu?.cpus, updates, pod, container };
}

describe('Rules of a node', () => {
  it('say from which CPUs containers get theirs', async () => {
    const { node } = await ruledNode([{ exclusive: true, cpus: '5-7' }]);
    expect((await create(node, 'a', { cpus: 2, memory: 2 ** 20 })).cpus).toBe('5-6');
    await expect(create(node, 'b', { cpus: 2, memory: 2 ** 20 })).rejects.toThrow(/from CPUs 5-7 only/);
    expect((await create(node, 'c', { cpus: 1 })).cpus).toBe('7');
  });

  it('keep shared containers on some CPUs, as long as these are shared', async () => {
    const { node } = await ruledNode([{ match: { containers: 'shared' }, cpus: '3-4' }]);
    expect((await create(node, 's', { name: 'shared' })).cpus).toBe('3-4');
    const { updates } = await create(node, 'e', { cpus: 4, memory: 2 ** 20 });
    expect(cpusByContainer(updates)).toEqual({ s: '4' });
  });

  it.each([
    ['numa-node', undefined, ['0-3', '4-7', '0-3', '4-7']],
    ['numa-node', '1-6', ['1-3', '4-6', '1-3', '4-6']],
    ['l3-group', undefined, ['0-3', '4-7', '0-3', '4-7']],
  ])(
    'bind shared containers to a part of the pool with pool: %s, the least loaded (%s)',
    async (pool, cpus, expected) => {
      const { node } = await ruledNode(
        [{ pool, ...(cpus && { cpus }) }],
        'numa:2(memory=8GB) l3:1 core:4 pu:1',
      );
      const found: unknown[] = [];
      for (const id of ['a', 'b', 'c', 'd']) found.push((await create(node, id, { shares: 1024 })).cpus);
      expect(found).toEqual(expected);
    },
  );

  it('keep the containers of a pod together, and count what is left of each part', async () => {
    const { node } = await ruledNode([{ match: { containers: 'shared' }, pool: 'numa-node' }]);
    await create(node, 'exclusive', { cpus: 3, memory: 2 ** 20 });
    // One CPU is left of node 0, and four of node 1.
    const cpus: unknown[] = [];
    for (const id of ['a', 'b', 'c'])
      cpus.push((await create(node, id, { name: 'shared', pod_sandbox_id: 'p', shares: 1024 })).cpus);
    expect(cpus).toEqual(['3', '3', '3'].map(() => cpus[0]));
    expect((await create(node, 'other', { name: 'shared', shares: 1024 })).cpus).not.toBe(cpus[0]);
  });

  it('let a part that has no shared CPU any more use all of the pool, until it has some again', async () => {
    const { node } = await ruledNode([{ match: { containers: 'shared' }, pool: 'numa-node' }]);
    expect((await create(node, 'a', { name: 'shared' })).cpus).toBe('0-3');
    const { updates, pod, container } = await create(node, 'e', { cpus: 4, memory: 2 ** 20 });
    expect(cpusByContainer(updates)).toEqual({ a: '4-7' });
    const back = await node.handlers.stopContainer(pod, container);
    expect(cpusByContainer(back)).toEqual({ a: '0-3' });
  });

  it('apply to the next container after a change; others keep what they have', async () => {
    const { node, replace } = await ruledNode([{ exclusive: 2 }]);
    const { pod, container } = await create(node, 'a', {});
    replace([{ exclusive: false }]);
    expect((await create(node, 'b', { cpus: 2, memory: 2 ** 20 })).cpus).toBe('2-7');
    const resources = containerOf({ shares: 512 }).linux!.resources!;
    const updates = await node.handlers.updateContainer(pod, container, resources);
    expect(cpusByContainer(updates)).toMatchObject({ a: '0-1' });
  });

  it('do not let a container grow out of their CPUs', async () => {
    const { node } = await ruledNode([{ cpus: '4-7' }]);
    const { pod, container } = await create(node, 'a', { cpus: 2, memory: 2 ** 20 });
    const resources = containerOf({ cpus: 3, memory: 2 ** 20 }).linux!.resources!;
    await expect(node.handlers.updateContainer(pod, container, resources)).rejects.toMatchObject({
      code: 'ERR_NOT_RESIZABLE',
    });
  });

  it('bind containers that already run when they come, unless numalign has placed them', async () => {
    const { node } = await ruledNode([{ pool: 'numa-node' }]);
    const pod = podOf();
    const running = ['a', 'b'].map((id) => containerOf({ id, shares: 1024 }));
    const placed = containerOf({ id: 'c', annotations: { 'numalign.io/choice': '' } });
    const updates = await node.handlers.synchronize([pod], [...running, placed]);
    expect(cpusByContainer(updates)).toMatchObject({ a: '0-3', b: '0-3' });
  });
});
