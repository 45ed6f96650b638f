// What the kernel refuses of quiet, and settings that go away or are left to somebody else.
import { expect, it } from 'vitest';
import { addPod, removePods } from '../../lib/account/pod-changes.js';
import { CpuSet } from '../../lib/index.js';
import { podOf, QuietWorld } from '../support/quiet-world.js';

const ALL = '0-7';
const LIMIT = '1000';
const IRQ = '/irq/1';
const ASKED = {
  ...{ interrupts: true, workqueues: true, packets: false, idle: { maxLatency: 10 } },
  ...{ frequency: false, cache: null },
};

const create = () => QuietWorld.create((path) => (path.startsWith('/cpu') ? LIMIT : ALL));

async function acquire(world: QuietWorld, uid: string, cpus: string): Promise<void> {
  const pod = podOf(uid, 'a', CpuSet.parse(cpus), ASKED);
  await world.carryOn(addPod(world.state, pod, world.state.memory));
}

const release = (world: QuietWorld, uid: string) => world.carryOn(removePods(world.state, new Set([uid])));
const recorded = ({ state }: QuietWorld, path: string) =>
  state.quiet?.settings.find((each) => each.path === path);
/** Since the last look. */
const attempts = ({ machine }: QuietWorld, path: string) =>
  machine.attempts.splice(0).filter((each) => each.startsWith(`${path} `));

it('a setting that the kernel refuses is named on record with its error, and written once', async () => {
  const world = await create();
  world.machine.refused.add(IRQ);
  await acquire(world, 'one', '0');
  expect(recorded(world, IRQ)).toMatchObject({ original: ALL, written: ['1-7'], refusal: 'EPERM' });
  expect(attempts(world, IRQ)).toEqual([`${IRQ} 1-7`]);
  await world.settle();
  await world.carryOn(world.state, { isReview: true });
  expect(attempts(world, IRQ)).toEqual([]);
});

it('a setting that the kernel has refused is tried again once something else is asked', async () => {
  const world = await create();
  world.machine.refused.add(IRQ);
  await acquire(world, 'one', '0');
  await acquire(world, 'two', '2');
  expect(attempts(world, IRQ)).toEqual([`${IRQ} 1-7`, `${IRQ} 1,3-7`]);
  world.machine.refused.clear();
  await release(world, 'one');
  expect(world.machine.things.get(IRQ)!.value).toBe('0-1,3-7');
  expect(recorded(world, IRQ)).toMatchObject({ original: ALL, refusal: null });
});

it('a setting that one process has no right to write is written by the next that has it', async () => {
  const world = await create();
  world.machine.refused.add(IRQ);
  world.machine.refusal = 'EACCES';
  await acquire(world, 'one', '0');
  expect(recorded(world, IRQ)).toMatchObject({ original: ALL, refusal: 'EACCES' });
  world.machine.refused.clear();
  await world.settle();
  expect(world.machine.values()[IRQ]).toBe('1-7');
  expect(recorded(world, IRQ)).toMatchObject({ original: ALL, refusal: null });
});

it('a restoration that the kernel refuses stays on record, and is made good once it does not', async () => {
  const world = await create();
  await acquire(world, 'one', '0');
  world.machine.refused.add(IRQ);
  await release(world, 'one');
  expect(world.state.pods).toEqual([]);
  expect(world.state.quiet!.settings).toMatchObject([{ path: IRQ, original: ALL, refusal: 'EPERM' }]);
  await world.settle();
  expect(world.state.quiet!.settings).toMatchObject([{ path: IRQ, original: ALL, refusal: 'EPERM' }]);
  world.machine.refused.clear();
  await world.settle();
  expect(world.machine.things.get(IRQ)!.value).toBe(ALL);
  expect(world.state.quiet).toBeNull();
});

it('a setting that goes away while it is restored leaves nothing on record', async () => {
  const world = await create();
  await acquire(world, 'one', '0');
  const { step } = world.machine;
  world.machine.step = (name, act) =>
    step(name, () => {
      world.machine.remove(IRQ);
      act();
    });
  await release(world, 'one');
  expect(world.state.quiet).toBeNull();
});

it('a setting that cannot be read stays on record, and keeps no grant from its end', async () => {
  const world = await create();
  await acquire(world, 'one', '0');
  world.machine.unreadable.add(IRQ);
  await release(world, 'one');
  expect(world.state.pods).toEqual([]);
  expect(world.state.quiet!.settings).toMatchObject([{ path: IRQ, original: ALL, written: ['1-7'] }]);
  world.machine.unreadable.clear();
  await world.settle();
  expect(world.machine.values()[IRQ]).toBe(ALL);
});

it('a setting that cannot be seen from where its grant ends stays on record for a process that sees it', async () => {
  const world = await create();
  await acquire(world, 'one', '0');
  world.machine.hidden.add('/irq');
  await release(world, 'one');
  expect(world.machine.values()[IRQ]).toBe('1-7');
  expect(world.state.quiet!.settings.map(({ path }) => path)).toEqual(['/irq/0', IRQ, '/irq/2']);
  world.machine.hidden.clear();
  await world.settle();
  expect(world.machine.values()[IRQ]).toBe(ALL);
  expect(world.state.quiet).toBeNull();
});

it('a setting is left alone by a process without the rights to write it, once that is on record', async () => {
  const world = await create();
  world.machine.refusal = 'EACCES';
  world.machine.refused.add(IRQ);
  await acquire(world, 'one', '0');
  expect(attempts(world, IRQ)).toEqual([`${IRQ} 1-7`]);
  expect(await world.compare()).toEqual([]);
  await world.carryOn(world.state, { isReview: true });
  expect(attempts(world, IRQ)).toEqual([]);
});

it('what a process has no rights to restore is left over, and restored once by another that has', async () => {
  const world = await create();
  await acquire(world, 'one', '0');
  world.machine.refusal = 'EACCES';
  world.machine.refused.add(IRQ);
  await acquire(world, 'two', '1');
  attempts(world, IRQ);
  const all = new Set(['one', 'two']);
  await world.carryOn(removePods(world.state, all));
  expect(attempts(world, IRQ)).toEqual([]);
  expect(world.state.quiet!.settings).toMatchObject([{ path: IRQ, original: ALL, isLeftover: true }]);
  expect(await world.compare()).toEqual([]);
  world.machine.refused.clear();
  expect(await world.compare()).toEqual([`quiet ${IRQ}`]);
  await world.settle();
  expect(world.machine.values()[IRQ]).toBe(ALL);
  expect(world.state.quiet).toBeNull();
});

it('a setting that was given up is left to somebody else, whatever the value, while others are repaired', async () => {
  const world = await create();
  await acquire(world, 'one', '0');
  const isGivenUp = (path: string) => path === IRQ;
  world.setForeign(IRQ, '0-3');
  world.setForeign('/irq/2', '0-3');
  await world.carryOn(world.state, { isGivenUp });
  expect(world.machine.values()).toMatchObject({ [IRQ]: '0-3', '/irq/2': '1-3' });
  await release(world, 'one');
  expect(world.machine.values()).toMatchObject({ [IRQ]: '0-3', '/irq/2': '0-3', '/irq/0': ALL });
  expect(world.state.quiet).toBeNull();
});

it('a record of which somebody else has the setting by now is gone with the next opener', async () => {
  const world = await create();
  await acquire(world, 'one', '0');
  world.machine.unreadable.add(IRQ);
  await release(world, 'one');
  world.machine.set(IRQ, '0-3');
  world.machine.unreadable.clear();
  expect(world.state.quiet!.settings).toMatchObject([{ path: IRQ }]);
  await world.settle();
  expect([world.machine.values()[IRQ], world.state.quiet]).toEqual(['0-3', null]);
});

it('a setting that goes away while it is restored at last leaves nothing on record', async () => {
  const world = await create();
  await acquire(world, 'one', '0');
  world.machine.refused.add(IRQ);
  await release(world, 'one');
  const { step } = world.machine;
  world.machine.step = (name, act) =>
    step(name, () => {
      if (name === `write ${IRQ}`) world.machine.remove(IRQ);
      act();
    });
  world.machine.refused.clear();
  await world.settle();
  expect(world.state.quiet).toBeNull();
});

it('a setting that has come under the path of another keeps its value, though it is one of numalign', async () => {
  const world = await create();
  await acquire(world, 'one', '0');
  world.machine.remove(IRQ);
  world.machine.add('interrupts', IRQ, 'second', '1-7');
  await release(world, 'one');
  expect(world.machine.values()[IRQ]).toBe('1-7');
  expect(world.state.quiet).toBeNull();
});
