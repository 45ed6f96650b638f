// needs: nothing
// The cost of reading and writing kernel settings for the event loop.
import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { addPod, removePods } from '../../lib/account/pod-changes.js';
import { CpuSet } from '../../lib/index.js';
import { quietDemands } from '../../lib/quiet/kernel/demands.js';
import type { Part } from '../../lib/quiet/kernel/setting.js';
import { lookAtSettings, type QuietFacts } from '../../lib/quiet/look.js';
import { podOf, QuietWorld } from '../support/quiet-world.js';

const ASKED = {
  ...{ interrupts: true, workqueues: false, packets: false, idle: null },
  ...{ frequency: false, cache: null },
};

it('the event loop gets its turn after a few writes, however many settings there are', async () => {
  const world = await QuietWorld.create(() => '0-7');
  for (let irq = 3; irq < 300; irq++) world.machine.add('interrupts', `/irq/${irq}`, 'first', '0-7');
  let writes = 0;
  let most = 0;
  let isDone = false;
  const { step } = world.machine;
  world.machine.step = (name, act) => {
    writes++;
    return step(name, act);
  };
  const turns = (async () => {
    for (; !isDone; await turn()) {
      most = Math.max(most, writes);
      writes = 0;
    }
  })();
  const pod = podOf('one', 'a', CpuSet.parse('0'), ASKED);
  await world.carryOn(addPod(world.state, pod, world.state.memory));
  await world.carryOn(removePods(world.state, new Set(['one'])));
  isDone = true;
  await turns;
  expect(world.machine.attempts).toHaveLength(600);
  expect(most).toBeLessThanOrEqual(16);
});

it('the event loop gets its turn after a few reads, too', async () => {
  let reads = 0;
  const setting = (irq: number) => ({ path: `/irq/${irq}`, identity: null, read: () => String(reads++) });
  const part = {
    name: 'interrupts',
    settings: () => Array.from({ length: 100 }, (_, irq) => setting(irq)),
    hidden: () => [],
  } as unknown as Part;
  const pod = podOf('one', 'a', CpuSet.parse('0'), ASKED);
  const demands = quietDemands({ pods: [pod] });
  const look = lookAtSettings({ parts: [part], demands, recorded: [] } as unknown as QuietFacts);
  let most = 0;
  for (let before = 0; before < 100; await turn()) {
    most = Math.max(most, reads - before);
    before = reads;
  }
  expect((await look).found).toHaveLength(100);
  expect(most).toBeLessThanOrEqual(16);
});
