// needs: nothing
// numa-allocation-strategy: which of NUMA nodes that are otherwise equal a request gets.
import { describe, expect, it } from 'vitest';
import type { AcquireOptions, Manager, ManagerOptions } from '../../lib/index.js';
import { errorOf } from '../support/error-of.js';
import { GI, machineOf } from '../support/memory-machine.js';
import { simulate } from '../support/simulated.js';
import { makeStateDir } from '../support/state-dir.js';
import { membersOf } from '../support/state-text.js';

type Strategy = 'none' | 'most-allocated' | 'least-allocated';

const by = (strategy: Strategy, more: object = {}) => ({
  topologyManagerPolicyOptions: { 'numa-allocation-strategy': strategy, ...more },
});

// The nodes 0 and 1 are near each other, 2 and 3 as well.
const DISTANCES = [
  [10, 20, 80, 80],
  [20, 10, 80, 80],
  [80, 80, 10, 20],
  [80, 80, 20, 10],
];
const FOUR = await machineOf(DISTANCES.map((distances) => ({ cpus: 8, memory: 8 * GI, distances })));
const UNEVEN = await machineOf([
  { cpus: 16, memory: 8 * GI },
  { cpus: 4, memory: 8 * GI },
]);

// A device near each node leads a grant there.
const devices = Object.fromEntries(
  [0, 1, 2, 3].map((node) => [`example.com/near${node}`, [{ id: `d${node}`, numaNodes: [node] }]]),
);

const managerOf = (options: ManagerOptions = {}, machine = FOUR) =>
  simulate(machine, { policy: 'best-effort', devices, ...options });

const take = (manager: Manager, node: number, options: AcquireOptions) =>
  manager.acquire({ ...options, resources: { [`example.com/near${node}`]: 1 } });

const nodesOf = async (manager: Manager, options: AcquireOptions) =>
  String((await manager.acquire(options)).numaNodes);

describe('numa-allocation-strategy', () => {
  it.each(['best-effort', 'restricted', 'single-numa-node'] as const)(
    'decides between equal nodes under %s, and none takes the lowest',
    async (policy) => {
      const manager = await managerOf({ policy });
      await take(manager, 0, { cpu: 2 });
      await take(manager, 2, { cpu: 3 });
      const nodes = (strategy: Strategy) =>
        String(
          manager.plan({ containers: [{ name: 'a', limits: { cpu: 2, memory: '1Gi' } }] }, by(strategy))
            .containers[0]!.hint.nodes,
        );
      expect(nodes('none')).toBe('0');
      expect(nodes('most-allocated')).toBe('2');
      expect(nodes('least-allocated')).toBe('1');
    },
  );

  it('goes by the percentage, not by what is left', async () => {
    const manager = await managerOf({ ...by('most-allocated'), devices: {} }, UNEVEN);
    await manager.acquire({ cpu: 14 });
    await manager.acquire({ cpu: 3 });
    // 87 % of node 0 and 75 % of node 1 are taken; 2 CPUs and 1 are left.
    expect(await nodesOf(manager, { cpu: 1 })).toBe('0');
  });

  it('counts only what is asked for: CPUs, memory and devices', async () => {
    const manager = await managerOf(by('least-allocated'));
    await take(manager, 0, { cpu: 1, memory: '6Gi' });
    await take(manager, 1, { cpu: 6 });
    await take(manager, 2, { cpu: 7 });
    await take(manager, 3, { cpu: 7 });
    expect(await nodesOf(manager, { cpu: 1 })).toBe('0');
    expect(await nodesOf(manager, { cpu: 1, memory: '1Gi' })).toBe('1');
    const nics = [0, 0, 1, 1, 1].map((node, i) => ({ id: `nic${i}`, numaNodes: [node] }));
    const other = await managerOf({ ...by('least-allocated'), devices: { 'example.com/nic': nics } });
    const one = () => other.acquire({ cpu: 1, resources: { 'example.com/nic': 1 } });
    const ids = [];
    for (let i = 0; i < 5; i++) ids.push((await one()).devices['example.com/nic']![0]!.id);
    expect(ids).toEqual(['nic0', 'nic2', 'nic3', 'nic1', 'nic4']);
  });

  it('comes after the distance, and before the lowest', async () => {
    const closest = { 'prefer-closest-numa-nodes': true };
    const wide = (strategy: Strategy, more: object) => async () => {
      const manager = await managerOf(by(strategy, more));
      await take(manager, 0, { cpu: 3, ...by('none') });
      return nodesOf(manager, { cpu: 12 });
    };
    expect(await wide('none', closest)()).toBe('0-1');
    expect(await wide('most-allocated', closest)()).toBe('0-1');
    expect(await wide('least-allocated', closest)()).toBe('2-3');
    expect(await wide('least-allocated', {})()).toBe('1-2');
  });

  it('decides on machines of more than 16 nodes too', async () => {
    const manager = await simulate('numa:20 core:2 pu:1', { policy: 'restricted', ...by('least-allocated') });
    const taken = [];
    for (let i = 0; i < 20; i++) taken.push(await nodesOf(manager, { cpu: 1 }));
    expect(taken).toEqual(Array.from({ length: 20 }, (_, i) => String(i)));
    expect(await nodesOf(manager, { cpu: 1 })).toBe('0');
  });

  it('is `prefer` of a joint choice', async () => {
    for (const [strategy, prefer] of [
      ['most-allocated', 'packed'],
      ['least-allocated', 'spread'],
    ] as const) {
      const manager = await managerOf({ placement: 'joint' });
      await take(manager, 2, { cpu: 3 });
      const pod = { containers: [{ name: 'a', limits: { cpu: 2, memory: '1Gi' } }] };
      const plan = manager.plan(pod, { ...by(strategy), prefer: prefer === 'packed' ? 'spread' : 'packed' });
      expect(plan.containers).toEqual(manager.plan(pod, { prefer }).containers);
      expect(plan.choice).toBe(manager.plan(pod, { prefer }).choice);
    }
  });

  it('is on record with a grant, which keeps it when it grows', async () => {
    const stateDir = makeStateDir();
    const manager = await managerOf({ stateDir });
    await take(manager, 0, { cpu: 3 });
    const grant = await manager.acquire({ cpu: 2, ...by('least-allocated') });
    await manager.acquire({ cpu: 1, ...by('most-allocated') });
    const options = membersOf(stateDir).pods.map((pod: { options: object }) =>
      Object.keys(pod.options).filter((name) => name.endsWith('allocated-nodes')),
    );
    expect(options).toEqual([[], ['least-allocated-nodes'], ['most-allocated-nodes']]);
    expect(String(grant.numaNodes)).toBe('1');
    await grant.resize({ cpu: 12 });
    expect(String(grant.numaNodes)).toBe('1-2');
  });

  it('is refused with another value', async () => {
    const error = await errorOf(() => managerOf(by('most' as 'none')));
    expect(error).toMatchObject({
      code: 'ERR_INVALID_OPTION',
      details: { value: 'most', valid: expect.stringContaining('least-allocated') },
    });
  });
});
