// needs: nothing
// The examples in Kubernetes' documentation of its Topology Manager, with devices as custom hint
// providers.
import { describe, expect, it } from 'vitest';
import type { TopologyManagerPolicy } from '../../lib/entries/kubelet.js';
import { type AdmissionError, type Manager, NodeSet } from '../../lib/index.js';
import { DeviceProvider } from '../support/device-provider.js';
import { guaranteed, simulate } from '../support/simulated.js';

const GPU = 'example.com/gpu';
const NIC = 'example.com/nic';
// Two NUMA nodes, each with two CPUs of one thread.
const TWO_NODES = 'package:2 numa:1 core:2 pu:1';

async function machine(
  policy: TopologyManagerPolicy,
  devices: Record<string, number[]>,
  synthetic = TWO_NODES,
) {
  const manager = await simulate(synthetic, { policy });
  const providers = Object.entries(devices).map(([name, counts]) => new DeviceProvider(name, counts));
  for (const provider of providers) manager.addHintProvider(provider);
  return { manager, providers };
}

const only = (node: number) => ({ nodes: NodeSet.of(node), preferred: true });

async function rejection(manager: Manager, pod: Parameters<Manager['admit']>[0]) {
  const error = await manager.admit(pod).then(
    () => undefined,
    (error: AdmissionError) => error,
  );
  return error?.details.reason;
}

describe('two NUMA nodes with CPUs, a GPU and a NIC each', () => {
  const all = { cpu: 1, [GPU]: 1, [NIC]: 1 };

  it.each<TopologyManagerPolicy>(['best-effort', 'restricted', 'single-numa-node'])(
    'give a container CPU, GPU and NIC of one node under %s',
    async (policy) => {
      const { manager, providers } = await machine(policy, { [GPU]: [1, 1], [NIC]: [1, 1] });
      const pod = await manager.admit({ uid: 'a', containers: [guaranteed('main', all)] });
      expect(pod.container('main').hint).toEqual(only(0));
      expect(manager.getAffinity('a', 'main')).toEqual(only(0));
      expect(manager.topology.nodesOf(pod.container('main').cpus!)).toEqual(NodeSet.of(0));
      expect(providers.map((provider) => provider.nodesOf('a', 'main'))).toEqual([[0], [0]]);
    },
  );

  it('place a container on the node with the free GPU', async () => {
    const { manager, providers } = await machine('single-numa-node', { [GPU]: [1, 1], [NIC]: [1, 1] });
    providers[0]!.lose(`${GPU}-0.0`);
    const pod = await manager.admit({ containers: [guaranteed('main', all)] });
    expect(pod.container('main').hint).toEqual(only(1));
    expect(manager.topology.nodesOf(pod.container('main').cpus!)).toEqual(NodeSet.of(1));
  });

  it('align two containers one after the other, each on its own node, and reject the third', async () => {
    const { manager, providers } = await machine('single-numa-node', { [GPU]: [1, 1], [NIC]: [1, 1] });
    const two = { uid: 'two', containers: [guaranteed('first', all), guaranteed('second', all)] };
    const pod = await manager.admit(two);
    expect(pod.containers.map(({ hint }) => hint)).toEqual([only(0), only(1)]);
    expect(providers.map((provider) => provider.nodesOf('two', 'second'))).toEqual([[1], [1]]);
    expect(await rejection(manager, { containers: [guaranteed('third', all)] })).toBe(
      'TopologyAffinityError',
    );
    // Devices that are not requested do not count.
    await manager.admit({ containers: [guaranteed('main', { cpu: 1 })] });
  });

  it('cannot hold two such containers on one node, as the scope pod requires', async () => {
    const { manager, providers } = await machine('single-numa-node', { [GPU]: [1, 1], [NIC]: [1, 1] });
    const pod = { uid: 'two', containers: [guaranteed('first', all), guaranteed('second', all)] };
    const error = (await manager.admit(pod, { scope: 'pod' }).catch((e) => e)) as AdmissionError;
    expect(error.code).toBe('ERR_TOPOLOGY_AFFINITY');
    expect(providers.flatMap((provider) => [...provider.holders])).toEqual([]);
    // One node has two CPUs, so both nodes are not preferred for them.
    const admitted = await manager.admit(pod, { scope: 'pod', policy: 'best-effort' });
    const both = { nodes: NodeSet.of(0, 1), preferred: false };
    expect(admitted.containers.map(({ hint }) => hint)).toEqual([both, both]);
  });
});

describe('a request for three GPUs when each of two nodes has two', () => {
  // The least that could ever suffice is both nodes: preferred for the GPUs, but not for the CPU,
  // which one node could give.
  it.each<[TopologyManagerPolicy, string | undefined]>([
    ['none', undefined],
    ['best-effort', undefined],
    ['restricted', 'TopologyAffinityError'],
    ['single-numa-node', 'TopologyAffinityError'],
  ])('with one CPU leads %s to %s', async (policy, reason) => {
    const { manager, providers } = await machine(policy, { [GPU]: [2, 2] });
    const pod = { uid: 'a', containers: [guaranteed('main', { cpu: 1, [GPU]: 3 })] };
    expect(await rejection(manager, pod)).toBe(reason);
    expect(providers[0]!.nodesOf('a', 'main')).toEqual(reason ? [] : [0, 1]);
  });

  it.each<[TopologyManagerPolicy, string | undefined]>([
    ['none', undefined],
    ['best-effort', undefined],
    ['restricted', undefined],
    ['single-numa-node', 'TopologyAffinityError'],
  ])('with three CPUs, which also need both, leads %s to %s', async (policy, reason) => {
    const { manager } = await machine(policy, { [GPU]: [2, 2] });
    const pod = { uid: 'a', containers: [guaranteed('main', { cpu: 3, [GPU]: 3 })] };
    expect(await rejection(manager, pod)).toBe(reason);
    if (policy === 'none')
      expect(manager.getAffinity('a', 'main')).toEqual({ nodes: null, preferred: false });
    else if (!reason)
      expect(manager.getAffinity('a', 'main')).toEqual({ nodes: NodeSet.of(0, 1), preferred: true });
  });
});

describe('a request for two GPUs when one of the two on each node is unavailable', () => {
  // One node could give them on the empty machine, so the hint of both nodes is not preferred.
  it.each<[TopologyManagerPolicy, string | undefined]>([
    ['none', undefined],
    ['best-effort', undefined],
    ['restricted', 'TopologyAffinityError'],
    ['single-numa-node', 'TopologyAffinityError'],
  ])('leads %s to %s', async (policy, reason) => {
    const { manager, providers } = await machine(policy, { [GPU]: [2, 2] });
    providers[0]!.lose(`${GPU}-0.0`);
    providers[0]!.lose(`${GPU}-1.0`);
    const pod = { uid: 'a', containers: [guaranteed('main', { cpu: 1, [GPU]: 2 })] };
    expect(await rejection(manager, pod)).toBe(reason);
    expect(providers[0]!.nodesOf('a', 'main')).toEqual(reason ? [] : [0, 1]);
  });

  it('no policy admits a request for more than is left, and nothing stays booked', async () => {
    for (const policy of ['none', 'best-effort', 'restricted', 'single-numa-node'] as const) {
      const { manager, providers } = await machine(policy, { [GPU]: [1, 1] });
      providers[0]!.lose(`${GPU}-0.0`);
      const pod = {
        uid: 'a',
        containers: [guaranteed('first', { cpu: 1, [GPU]: 1 }), guaranteed('main', { cpu: 1, [GPU]: 1 })],
      };
      const error = (await manager.admit(pod).catch((e) => e)) as AdmissionError;
      expect([error.code, error.details.reason]).toEqual(
        policy === 'none' || policy === 'best-effort'
          ? ['ERR_HINT_PROVIDER', 'UnexpectedAdmissionError']
          : ['ERR_TOPOLOGY_AFFINITY', 'TopologyAffinityError'],
      );
      expect(manager.grants()).toEqual([]);
      expect(providers[0]!.free()).toEqual([`${GPU}-1.0`]);
    }
  });
});
