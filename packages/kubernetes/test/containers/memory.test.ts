// What a node keeps of each pod and container.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import type { ContainerHandlers } from '../../lib/containers/container-handlers.js';
import { containerOf, podOf } from '../support/nri-objects.js';
import { simulatedNode } from '../support/simulated-node.js';

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');

const usedHeap = () => {
  collect();
  return process.memoryUsage().heapUsed;
};

// As `kubectl apply` notes a whole manifest.
const long = (id: string) => ({ 'kubectl.kubernetes.io/last-applied-configuration': id.padEnd(20_000) });

/** Pods with a container each, for which memory is booked, as a runtime creates them. */
async function create(handlers: ContainerHandlers, from: number, to: number): Promise<void> {
  for (let i = from; i < to; i++) {
    const pod = podOf({ id: `p${i}`, uid: `u${i}`, name: `pod${i}`, annotations: long(`p${i}`) });
    const container = containerOf({
      ...{ id: `c${i}`, pod_sandbox_id: `p${i}`, annotations: long(`c${i}`), env: [`E=${long('')}`] },
      ...{ shares: 512, quota: 50_000, memory: 1 << 20 },
    });
    handlers.runPodSandbox(pod);
    await handlers.createContainer(pod, container);
    await handlers.startContainer(pod, container);
  }
}

it('A pod with a container takes a few kilobytes, whatever its annotations are', async () => {
  const { handlers } = await simulatedNode({ policy: 'best-effort', memoryManagerPolicy: 'Static' });
  await create(handlers, 0, 100);
  const before = usedHeap();
  await create(handlers, 100, 300);
  const each = (usedHeap() - before) / 200;
  expect(handlers.containers).toHaveLength(300);
  expect(handlers.containers.every(({ placement }) => placement)).toBe(true);
  expect(each).toBeLessThan(8000);
});
