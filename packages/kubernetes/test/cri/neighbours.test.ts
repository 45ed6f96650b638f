import { readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { CpuSet, type Manager } from 'numalign';
import { describe, expect, it } from 'vitest';
import { Neighbours } from '../../lib/cri/neighbours.js';
import { canMakeCgroups } from './container-cgroup.js';
import { FakeNode } from './fake-node.js';

interface FakeGrant {
  uid: string;
  name: string;
  cpus: string;
  alive?: boolean;
  former?: CpuSet;
}

async function nodeWith(count: number) {
  const node = await FakeNode.start(count);
  const grants: FakeGrant[] = [];
  const manager = {
    grants: () => grants.map((each) => ({ alive: true, ...each, cpus: CpuSet.parse(each.cpus) })),
  } as unknown as Manager;
  const logged: string[] = [];
  const folder = join(node.folder, 'narrowed');
  const make = () =>
    new Neighbours({
      ...{ manager, runtime: node.runtime, folder },
      log: (level, message) => logged.push(`${level}: ${message}`),
    });
  const records = () => readdirSync(folder);
  const grant = (cpus: string, names: Partial<FakeGrant> = {}) =>
    grants.push({ uid: 'g', name: 'n', ...names, cpus });
  return { node, grants, grant, logged, make, records, shared: make(), all: node.cpus()[0]! };
}

describe.runIf(canMakeCgroups && availableParallelism() > 1)('Neighbours', () => {
  it('leave granted CPUs and come back, each to its former ones', async () => {
    const { node, grant, grants, shared, records, all } = await nodeWith(3);
    const [first, ...rest] = CpuSet.parse(all);
    node.container(1).write('cpuset.cpus', `${rest[0]}`);
    const others = CpuSet.from(rest).toString();
    grant(`${first}`);
    const moves = await shared.fit('');
    expect(node.cpus()).toEqual([others, `${rest[0]}`, others]);
    expect(moves.map(({ before, after }) => [`${before}`, `${after}`])).toEqual([
      [all, others],
      [all, others],
    ]);
    expect(await shared.fit('')).toEqual([]);
    expect(node.updates).toBe(2);
    grants.pop();
    await shared.fit('');
    expect(node.cpus()).toEqual([all, `${rest[0]}`, all]);
    expect(records()).toEqual([]);
  });

  it('leave what a grant that moves has not left yet', async () => {
    const { node, grant, shared, all } = await nodeWith(1);
    const [first, ...rest] = CpuSet.parse(all);
    grant('', { former: CpuSet.of(first!) });
    await shared.fit('');
    expect(node.cpus()).toEqual([CpuSet.from(rest).toString()]);
  });

  it('come back through another process too', async () => {
    const { node, grant, grants, shared, make, all } = await nodeWith(1);
    grant(`${CpuSet.parse(all).first}`);
    await shared.fit('');
    grants.pop();
    await make().fit('');
    expect(node.cpus()).toEqual([all]);
  });

  it('do not count the grants of owners that have ended', async () => {
    const { node, grant, shared, all } = await nodeWith(1);
    grant(`${CpuSet.parse(all).first}`, { alive: false });
    await shared.fit('');
    expect(node.cpus()).toEqual([all]);
  });

  it.each([
    ['id', (node: FakeNode) => ({ uid: node.container(0).id })],
    ["pod's uid", () => ({ uid: 'u0' })],
    ['name', () => ({ name: 'default/p0/c0' })],
  ])('do not include those that hold a grant by their %s', async (_, names) => {
    const { node, grant, shared, all } = await nodeWith(2);
    const { first } = CpuSet.parse(all);
    grant(`${first}`, names(node));
    await shared.fit('');
    expect(node.cpus()).toEqual([all, `${CpuSet.parse(all).difference(CpuSet.of(first!))}`]);
  });

  it('include those of a pod whose grant has no CPUs', async () => {
    const { node, grant, shared, all } = await nodeWith(1);
    grant(`${CpuSet.parse(all).first}`);
    grant('', { uid: 'u0' });
    await shared.fit('');
    expect(node.cpus()).not.toEqual([all]);
  });

  it('are left alone on request', async () => {
    const { node, grant, shared, all } = await nodeWith(2);
    grant(`${CpuSet.parse(all).first}`);
    await shared.fit(node.container(1).id);
    expect(node.cpus()[1]).toBe(all);
    expect(node.cpus()[0]).not.toBe(all);
  });

  it('without other CPUs block a required clearing, and are reported otherwise', async () => {
    const { node, grant, shared, logged, all } = await nodeWith(2);
    const first = CpuSet.of(CpuSet.parse(all).first!);
    node.container(1).write('cpuset.cpus', `${first}`);
    grant(`${first}`);
    await expect(shared.fit('', first)).rejects.toMatchObject({
      code: 'ERR_CONTAINER_UNMOVABLE',
      details: { value: node.container(1).id },
    });
    expect(node.cpus()).toEqual([all, `${first}`]);
    expect(node.updates).toBe(0);
    await shared.fit('');
    expect(node.cpus()[0]).not.toBe(all);
    expect(logged).toEqual([expect.stringMatching(/^warn: default\/p1\/c1 .* only has CPUs /)]);
  });

  it('keep CPUs that another program gives them meanwhile, as far as they are free', async () => {
    const { node, grant, grants, shared, all } = await nodeWith(1);
    const [first, second] = CpuSet.parse(all);
    grant(`${first}`);
    await shared.fit('');
    const free = node.cpus()[0];
    node.container(0).write('cpuset.cpus', `${first},${second}`);
    await shared.fit('');
    expect(node.cpus()).toEqual([`${second}`]);
    grants.pop();
    await shared.fit('');
    expect(node.cpus()).toEqual([`${CpuSet.of(first!, second!)}`]);
    expect(free).not.toBe('');
  });

  it('may end while they are moved', async () => {
    const { node, grant, shared, all } = await nodeWith(2);
    grant(`${CpuSet.parse(all).first}`);
    const [ending, staying] = [node.container(0), node.container(1)];
    node.onUpdate = async (container) => {
      if (container !== ending) return;
      await ending.end();
      throw { code: status.UNKNOWN, details: 'container not running' };
    };
    await shared.fit('');
    expect((await node.runtime.find(staying.id)).cpuset.effectiveCpus.equals(CpuSet.parse(all))).toBe(false);
  });

  it('that the runtime does not move cause an error, and are not on record', async () => {
    const { node, grant, shared, records, all } = await nodeWith(1);
    grant(`${CpuSet.parse(all).first}`);
    node.onUpdate = () => {
      throw { code: status.INTERNAL, details: 'out of order' };
    };
    await expect(shared.fit('')).rejects.toMatchObject({
      code: 'ERR_RUNTIME',
      message: 'UpdateContainerResources: out of order',
    });
    expect(records()).toEqual([]);
  });
});
