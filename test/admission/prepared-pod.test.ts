// needs: machine
// Pods that are read once and planned again and again.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { budget } from '../support/budget.mjs';
import { thrownBy } from '../support/error-of.js';
import { simulate } from '../support/simulated.js';

const newManager = (options = {}) => simulate('numa:2(memory=8GiB) core:2 pu:2', options);

const pod = (cpu: number, more = {}) => ({
  containers: [{ name: 'main', limits: { cpu, memory: '1Gi', ...more } }],
});

describe('a prepared pod', () => {
  it('is planned like a new one each time, whatever else is admitted and released', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ cpu: fc.integer({ min: 1, max: 4 }), isReleased: fc.boolean() }), {
          maxLength: 6,
        }),
        fc.integer({ min: 1, max: 8 }),
        fc.constantFrom('none' as const, 'restricted' as const, 'single-numa-node' as const),
        async (others, cpu, policy) => {
          const manager = await newManager();
          const prepared = manager.prepare(pod(cpu), { policy });
          for (const { cpu: count, isReleased } of others) {
            const other = await manager.acquire({ cpu: count }).catch(() => undefined);
            expect(prepared.plan()).toEqual(manager.plan(pod(cpu), { policy }));
            if (isReleased) await other?.release();
          }
          expect(prepared.plan()).toEqual(manager.plan(pod(cpu), { policy }));
          manager.close();
        },
      ),
      { numRuns: budget({ all: 20, usual: 5 }) },
    );
  });

  it('is planned with the devices that are registered by then', async () => {
    const manager = await newManager();
    const prepared = manager.prepare(pod(1, { 'example.com/nic': 1 }));
    expect(prepared.plan().warnings).toMatchObject([{ code: 'RESOURCE_UNKNOWN' }]);
    manager.registerDevices('example.com/nic', [{ id: 'nic-0', numaNodes: [1] }]);
    expect(prepared.plan().containers).toMatchObject([
      { devices: { 'example.com/nic': [{ id: 'nic-0', nodes: [1] }] } },
    ]);
  });

  it('is decided again only after a change that matters to it', async () => {
    const manager = await newManager();
    const prepared = manager.prepare(pod(1, { 'example.com/nic': 1 }));
    const containers = () => prepared.plan().containers;
    manager.registerDevices('example.com/nic', [{ id: 'nic-0', numaNodes: [1] }]);
    const first = containers();
    expect(containers()).toBe(first);
    manager.registerDevices('example.com/nic', [{ id: 'nic-1', numaNodes: [0] }]);
    expect(containers()[0]!.devices).toEqual({ 'example.com/nic': [{ id: 'nic-1', nodes: [0] }] });
    const second = containers();
    const grant = await manager.acquire({ cpu: 1 });
    expect(containers()[0]!.cpus!.intersects(grant.cpus)).toBe(false);
    await grant.release();
    expect(containers()).not.toBe(second);
    expect(containers()).toEqual(second);
  });

  it('has the generation that it is planned for, even if the decision is an old one', async () => {
    const manager = await newManager();
    const prepared = manager.prepare(pod(1));
    prepared.plan();
    await (await manager.acquire({ cpu: 1 })).release();
    expect(prepared.plan().generation).toBe(manager.generation());
    expect(prepared.plan().generation).toBe(manager.generation());
  });

  it('asks choosers of devices and custom providers each time', async () => {
    const manager = await newManager();
    let asked = 0;
    const preferredAllocation = () => {
      asked++;
      return null;
    };
    const devices = [0, 1].map((node) => ({ id: `nic-${node}`, numaNodes: [node] }));
    manager.registerDevices('example.com/nic', devices, { preferredAllocation });
    const prepared = manager.prepare(pod(1, { 'example.com/nic': 1 }));
    prepared.plan();
    const once = asked;
    prepared.plan();
    expect(once).toBeGreaterThan(0);
    expect(asked).toBe(2 * once);
    const plain = manager.prepare(pod(1));
    plain.plan();
    let hinted = 0;
    manager.addHintProvider({
      name: 'example.com/custom',
      hints: () => {
        hinted++;
        return {};
      },
      allocate: () => {},
      release: () => {},
    });
    plain.plan();
    plain.plan();
    expect(hinted).toBe(2);
  });

  it('does not change', async () => {
    const manager = await newManager();
    const given = pod(2);
    const prepared = manager.prepare(given);
    given.containers[0]!.limits.cpu = 3;
    expect(prepared.plan().containers[0]!.cpus!.size).toBe(2);
  });

  it('is refused like a plan, before it is planned', async () => {
    const manager = await newManager();
    expect(thrownBy(() => manager.prepare({ containers: [] }))).toMatchObject({ code: 'ERR_INVALID_POD' });
    expect(thrownBy(() => manager.prepare(pod(1), { policy: 'strict' as 'none' }))).toMatchObject({
      code: 'ERR_INVALID_OPTION',
    });
  });

  it('cannot be planned once the manager is closed', async () => {
    const manager = await newManager();
    const prepared = manager.prepare(pod(1));
    manager.close();
    expect(thrownBy(() => prepared.plan())).toMatchObject({ code: 'ERR_MANAGER_CLOSED' });
  });
});

describe('a plan', () => {
  it.each(['none', 'best-effort'] as const)(
    'under %s has lists of its own, whatever happens to earlier ones',
    async (policy) => {
      const manager = await newManager();
      const plan = () => manager.plan(pod(1), { policy });
      const before = plan();
      const { hints, containers, warnings } = plan();
      for (const list of [hints, containers, warnings] as unknown[][]) list.push('mine');
      expect(plan()).toEqual(before);
      manager.prepare(pod(1), { policy }).plan();
      expect(plan()).toEqual(before);
      expect(Object.isFrozen(plan().hints)).toBe(false);
      manager.close();
    },
  );
});
