// needs: nothing
// The kernel's refusals of quiet, and settings that disappear or are left to other programs.
import { expect, it } from 'vitest';
import { addPod, removePods } from '../../lib/account/pod-changes.js';
import { CpuSet } from '../../lib/index.js';
import { DISK_IS_FULL, podOf, QuietWorld } from '../support/quiet-world.js';

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
/** Since the last check. */
const attempts = ({ machine }: QuietWorld, path: string) =>
  machine.attempts.splice(0).filter((each) => each.startsWith(`${path} `));

it('a setting that the kernel refuses is on record with its error, and written once', async () => {
  const world = await create();
  world.machine.refused.add(IRQ);
  await acquire(world, 'one', '0');
  expect(recorded(world, IRQ)).toMatchObject({ original: ALL, written: ['1-7'], refusal: 'EPERM' });
  expect(attempts(world, IRQ)).toEqual([`${IRQ} 1-7`]);
  await world.settle();
  await world.carryOn(world.state, { isReview: true });
  expect(attempts(world, IRQ)).toEqual([]);
});

it('a setting that the kernel has refused is tried again once its target changes', async () => {
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

it('a setting that one process has no right to write is written by the next process with the right', async () => {
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

it('a restoration that the kernel refuses stays on record, and is done once the kernel accepts it', async () => {
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

it('a setting that disappears while it is restored leaves nothing on record', async () => {
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

it('a setting that is invisible to the process that ends its grant stays on record for one that sees it', async () => {
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

it('a setting that a process has no right to restore stays, and is restored once by another with the right', async () => {
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

it('a setting that was given up is left to other programs, whatever the value, while others are repaired', async () => {
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

it('the record of a setting that another program has taken over ends with the next opener', async () => {
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

it('a setting that disappears in its last restoration leaves nothing on record', async () => {
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

it('a new setting under the path of another keeps its value, even if it is one of numalign’s', async () => {
  const world = await create();
  await acquire(world, 'one', '0');
  world.machine.remove(IRQ);
  world.machine.add('interrupts', IRQ, 'second', '1-7');
  await release(world, 'one');
  expect(world.machine.values()[IRQ]).toBe('1-7');
  expect(world.state.quiet).toBeNull();
});

it('a setting that the kernel refused is not written again when a failed commit undoes the others', async () => {
  const world = await create();
  await acquire(world, 'one', '0');
  await acquire(world, 'two', '2');
  world.machine.refused.add(IRQ);
  world.machine.attempts.length = 0;
  // The record of what is about to be written fits.
  world.fullDiskAt = 1;
  await expect(release(world, 'one')).rejects.toBe(DISK_IS_FULL);
  expect(world.machine.attempts.filter((each) => each.startsWith('/irq/'))).toEqual([
    ...['/irq/0 0-1,3-7', '/irq/1 0-1,3-7', '/irq/2 0-1,3-7'],
    ...['/irq/2 1,3-7', '/irq/0 1,3-7'],
  ]);
});
