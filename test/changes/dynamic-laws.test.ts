// needs: agents
import { array, assert, asyncProperty, boolean, constantFrom, integer, record } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AdmissionError, openManager, type Pod } from '../../lib/index.js';
import { budget, isLong } from '../support/budget.mjs';
import { GI, machineOf } from '../support/memory-machine.js';

const step = record({
  cpu: integer({ min: 1, max: 5 }),
  memory: integer({ min: 1, max: 4 }),
  movable: boolean(),
  policy: constantFrom('single-numa-node', 'single-numa-node', 'restricted', 'best-effort'),
  // The index of a pod on record; from 6 on none.
  releases: integer({ min: 0, max: 9 }),
});

const machine = record({ nodes: integer({ min: 2, max: 4 }), cpus: integer({ min: 4, max: 7 }) });

describe('under the dynamic policy', () => {
  it('a pod is admitted exactly if a plan says so, after the moves that it names', async () => {
    let moves = 0;
    const law = asyncProperty(machine, array(step, { minLength: 15, maxLength: 30 }), async (made, steps) => {
      const topology = await machineOf(
        Array.from({ length: made.nodes }, () => ({ cpus: made.cpus, memory: 8 * GI })),
      );
      const manager = await openManager({ topology, cpuManagerPolicy: 'dynamic' });
      const pods: Pod[] = [];
      const placesOf = () => new Map(manager.grants().map(({ uid, cpus }) => [uid, String(cpus)]));
      try {
        for (const [i, { cpu, memory, movable, policy, releases }] of steps.entries()) {
          if (releases < 6 && pods.length > 2) await pods.splice(releases % pods.length, 1)[0]!.release();
          const pod = { uid: `pod${i}`, containers: [{ name: 'c', limits: { cpu, memory: `${memory}Gi` } }] };
          const plan = manager.plan(pod, { policy });
          const before = placesOf();
          const answer = await manager.admit(pod, { policy, movable }).catch((error) => error);
          const named = plan.repacking?.moves ?? [];
          expect(!(answer instanceof Error)).toBe(plan.admitted || named.length > 0);
          if (answer instanceof Error) expect(answer).toBeInstanceOf(AdmissionError);
          else pods.push(answer);
          moves += named.length;
          const after = placesOf();
          const moved = [...before.keys()].filter((uid) => after.get(uid) !== before.get(uid));
          expect(new Set(moved)).toEqual(new Set(named.map(({ uid }) => uid)));
          expect(after.size).toBe(pods.length);
          const held = manager.grants().flatMap(({ cpus }) => cpus.toArray());
          expect(new Set(held).size).toBe(held.length);
          const booked = manager.memory().reduce((sum, { reserved }) => sum + reserved, 0);
          const memoryOf = ({ containers }: Pod) => containers.flatMap((each) => each.memory);
          const asked = pods.flatMap((each) => memoryOf(manager.pod(each.uid)));
          expect(booked).toBe(asked.reduce((sum, { bytes }) => sum + bytes, 0));
        }
      } finally {
        for (const pod of pods) await pod.release();
        manager.close();
      }
    });
    await assert(law, { numRuns: budget({ all: 400, usual: 20 }) });
    // Rare: a short run may meet none.
    if (isLong) expect(moves).toBeGreaterThan(0);
  });
});
