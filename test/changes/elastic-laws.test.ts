// needs: agents
// Whatever comes and goes: elastic grants reach the targets of the rule for the record.
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { discover } from '../../lib/entries/topology.js';
import { type Grant, openManager } from '../../lib/index.js';
import { budget } from '../support/budget.mjs';
import { expectRanges, restOfRanges } from '../support/elastic.js';

const SIMULATE = 'package:2 core:6 pu:1';

const range = fc.record({
  kind: fc.constant('range' as const),
  min: fc.integer({ min: 1, max: 4 }),
  more: fc.integer({ min: 0, max: 8 }),
  weight: fc.integer({ min: 1, max: 4 }),
});
const number = fc.record({ kind: fc.constant('number' as const), cpu: fc.integer({ min: 1, max: 5 }) });
const release = fc.record({ kind: fc.constant('release' as const), which: fc.nat() });
const steps = fc
  .tuple(range, range, fc.array(fc.oneof(range, number, release), { minLength: 1, maxLength: 6 }))
  .map(([first, second, more]) => [first, second, ...more]);

describe('grants of ranges', () => {
  it('reach their targets whatever comes and goes, within their bounds, without going back and forth', async () => {
    const topology = await discover({ synthetic: SIMULATE });
    await fc.assert(
      fc.asyncProperty(steps, fc.boolean(), async (all, isSlow) => {
        const manager = await openManager({ topology });
        const grants: Grant[] = [];
        const directions = new Map<string, Set<number>>();
        try {
          for (const [i, step] of all.entries()) {
            // Steps with a rest in between have their own effect each.
            if (isSlow || i === all.length - 1) await restOfRanges(manager);
            // Events of earlier steps have been delivered by then.
            for (let turn = 0; turn < 10; turn++) await setImmediate();
            directions.clear();
            if (step.kind === 'release') {
              const [grant] = grants.splice(step.which % Math.max(grants.length, 1), 1);
              await grant?.release();
            } else {
              const { kind, ...asked } = step;
              const options =
                'cpu' in asked
                  ? { cpu: asked.cpu }
                  : { cpu: { min: asked.min, max: asked.min + asked.more }, weight: asked.weight };
              const held = manager
                .grants()
                .reduce((sum, { cpus, elastic }) => sum + (elastic?.min ?? cpus.size), 0);
              const least = 'cpu' in asked ? asked.cpu : asked.min;
              // Rejected only if the minimums leave too few.
              const grant = await manager.acquire(options).catch((error) => {
                expect(held + least).toBeGreaterThanOrEqual(topology.cpus.size);
                expect(error).toMatchObject({ code: expect.stringMatching(/INSUFFICIENT_CPUS|SHARED_POOL/) });
              });
              if (grant) grants.push(grant);
              grant?.on('resize', (event) => {
                const all = directions.get(event.uid) ?? new Set();
                directions.set(event.uid, all.add(Math.sign(event.cpus.size - event.before.size)));
              });
            }
            expectRanges(manager);
          }
          await restOfRanges(manager);
          for (const signs of directions.values()) expect(signs.size).toBe(1);
        } finally {
          for (const grant of grants) await grant.release();
          manager.close();
        }
      }),
      { numRuns: budget({ all: 300, usual: 20 }) },
    );
  });
});
