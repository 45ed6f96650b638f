import fc from 'fast-check';
import { CpuSet, type Grant } from 'numalign';
import { expect, it } from 'vitest';
import type { ContainerHandlers } from '../../lib/containers/container-handlers.js';
import { type Container, ContainerState, type ContainerUpdate } from '../../lib/nri/messages.js';
import { containerOf, podOf } from '../support/nri-objects.js';
import { type SimulatedNode, simulatedNode } from '../support/simulated-node.js';

const POD = podOf();
const GIB = 2 ** 30;

/** A runtime that carries out its answers; cpusets are files that numalign may write too. */
class Runtime {
  readonly containers = new Map<string, Container>();
  #handlers: ContainerHandlers;

  constructor(readonly node: SimulatedNode) {
    this.#handlers = node.handlers;
  }

  cpusOf(id: string): CpuSet {
    return CpuSet.parse(this.node.cpusOf(`/k/${id}`));
  }

  async create(container: Container): Promise<void> {
    const { id } = container;
    const answer = await this.#handlers.createContainer(POD, container).catch(() => undefined);
    if (!answer) return;
    const { adjust, updates } = answer;
    this.#update(updates);
    const cpus = adjust.linux!.resources!.cpu!.cpus!;
    this.node.makeCgroup(`/k/${id}`, cpus);
    this.containers.set(id, {
      ...container,
      state: ContainerState.RUNNING,
      annotations: adjust.annotations ?? {},
      linux: {
        ...container.linux!,
        resources: {
          ...container.linux!.resources!,
          cpu: { ...container.linux!.resources!.cpu!, cpus },
        },
      },
    });
    this.#handlers.postCreateContainer();
  }

  async stop(id: string): Promise<void> {
    const container = this.containers.get(id)!;
    this.containers.delete(id);
    this.#update(await this.#handlers.stopContainer(POD, container));
    await this.#handlers.removeContainer(POD, container);
  }

  /** The plugin ends, `meanwhile` comes and goes without it, and it is started again. */
  async restart(meanwhile: () => void): Promise<void> {
    this.#handlers.close();
    meanwhile();
    this.#handlers = this.node.restart();
    const containers = [...this.containers.values()].map((container) => ({
      ...container,
      linux: {
        ...container.linux!,
        resources: {
          ...container.linux!.resources!,
          cpu: { ...container.linux!.resources!.cpu!, cpus: String(this.cpusOf(container.id)) },
        },
      },
    }));
    this.#update(await this.#handlers.synchronize([POD], containers));
  }

  #update(updates: readonly ContainerUpdate[]): void {
    for (const { container_id, linux } of updates)
      this.node.makeCgroup(`/k/${container_id}`, linux.resources.cpu!.cpus!);
  }
}

const steps = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ kind: fc.constant('exclusive'), count: fc.integer({ min: 1, max: 5 }) }),
    },
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant('shared'), count: fc.integer({ min: 0, max: 7 }) }),
    },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('stop'), count: fc.nat(20) }) },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant('acquire'), count: fc.integer({ min: 1, max: 3 }) }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('release'), count: fc.nat(20) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart'), count: fc.nat(20) }) },
  ),
  { maxLength: 24 },
);

it('No CPU is in two exclusive containers, nor in one and the shared pool, whatever comes and goes', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (list) => {
      const node = await simulatedNode();
      const { manager } = node;
      const runtime = new Runtime(node);
      const foreign: Grant[] = [];
      let last = 0;
      for (const { kind, count } of list) {
        const ids = [...runtime.containers.keys()];
        const id = ids[count % ids.length];
        if (kind === 'exclusive')
          await runtime.create(containerOf({ id: `x${++last}`, cpus: count, memory: GIB / 8 }));
        else if (kind === 'shared')
          await runtime.create(containerOf({ id: `s${++last}`, cpuset: count > 3 ? `${count - 3}-7` : '' }));
        else if (kind === 'stop' && id !== undefined) await runtime.stop(id);
        else if (kind === 'acquire') {
          const grant = await manager.acquire({ cpu: count, owner: 'persistent' }).catch(() => undefined);
          if (grant) foreign.push(grant);
        } else if (kind === 'release')
          await foreign.splice(count % Math.max(1, foreign.length), 1)[0]?.release();
        else if (kind === 'restart')
          await runtime.restart(() => id !== undefined && runtime.containers.delete(id));
        await check(runtime);
      }
      for (const id of runtime.containers.keys()) await runtime.stop(id);
      for (const grant of foreign) await grant.release();
      expect(manager.grants()).toEqual([]);
      expect(String(manager.sharedPool())).toBe('0-7');
    }),
    { numRuns: 60 },
  );
});

async function check(runtime: Runtime): Promise<void> {
  const { containers, node } = runtime;
  const pool = node.manager.sharedPool();
  const exclusive = [...containers.values()].filter(({ id }) => id.startsWith('x'));
  let taken = CpuSet.EMPTY;
  for (const { id, linux } of exclusive) {
    const cpus = runtime.cpusOf(id);
    expect(cpus.size).toBe(linux!.resources!.cpu!.quota!.value / 100_000);
    expect(cpus.intersects(taken)).toBe(false);
    expect(cpus.intersects(pool)).toBe(false);
    expect(String(node.manager.pod(id).containers[0]!.cpus)).toBe(String(cpus));
    taken = taken.union(cpus);
  }
  for (const { id } of containers.values())
    if (id.startsWith('s')) await expect.poll(() => runtime.cpusOf(id).isSubsetOf(pool)).toBe(true);
}
