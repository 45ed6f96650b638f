// needs: agents
// Several processes that acquire and release at once, are stopped, and are killed.
import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, it, onTestFinished } from 'vitest';
import { discover } from '../../lib/entries/topology.js';
import { openManager } from '../../lib/index.js';
import { Agent } from '../support/agent.js';
import { budget } from '../support/budget.mjs';
import { expectRanges, restOfRanges } from '../support/elastic.js';
import { makeStateDir } from '../support/state-dir.js';

const SIMULATE = 'package:2 core:6 pu:1';
const REJECTIONS = ['ERR_INSUFFICIENT_CPUS'];

const range = fc
  .record({
    min: fc.integer({ min: 1, max: 3 }),
    more: fc.integer({ min: 0, max: 9 }),
    weight: fc.constantFrom(50, 100, 400),
  })
  .map(({ min, more, weight }) => ({
    ...{ cpu: { min, max: min + more }, weight, movable: { notice: 300 } },
  }));
const number = fc.record({ cpu: fc.integer({ min: 1, max: 4 }), movable: fc.boolean() });
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ verb: fc.constant('acquire'), options: fc.oneof(range, number) }) },
  { weight: 2, arbitrary: fc.record({ verb: fc.constant('release'), which: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ verb: fc.constant('stop'), ms: fc.integer({ min: 1, max: 700 }) }) },
  { weight: 1, arbitrary: fc.record({ verb: fc.constant('kill') }) },
);
const lives = fc.array(fc.array(step, { minLength: 4, maxLength: 12 }), { minLength: 3, maxLength: 4 });

type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

/** One process that does all this, and keeps its grants in the end, unless it is killed. */
async function live(stateDir: string, steps: readonly Step[]): Promise<Agent> {
  const agent = new Agent();
  const uids: string[] = [];
  await agent.tell('open', { stateDir, simulate: SIMULATE });
  for (const each of steps) {
    if ('options' in each) {
      const { value, error } = await agent.ask('acquire', each.options);
      if (value) uids.push(value.uid);
      else expect(REJECTIONS).toContain(error!.code);
    } else if ('which' in each) {
      const [uid] = uids.splice(each.which % Math.max(uids.length, 1), 1);
      if (uid) await agent.tell('release', { uid });
    } else if ('ms' in each) {
      agent.process.kill('SIGSTOP');
      await delay(each.ms);
      agent.process.kill('SIGCONT');
    } else {
      await agent.kill();
      return agent;
    }
  }
  return agent;
}

it('elastic grants of many processes reach their targets, whichever of them stops or dies', async () => {
  const topology = await discover({ synthetic: SIMULATE });
  await fc.assert(
    fc.asyncProperty(lives, async (all) => {
      const stateDir = makeStateDir();
      const manager = await openManager({ topology, stateDir });
      onTestFinished(() => manager.close());
      manager.on('change', () => expectRanges(manager));
      const agents = await Promise.all(all.map((steps) => live(stateDir, steps)));
      await restOfRanges(manager);
      for (const agent of agents) if (agent.process.signalCode === null) await agent.kill();
      manager.close();
    }),
    { numRuns: budget({ all: 60, usual: 2 }) },
  );
});
