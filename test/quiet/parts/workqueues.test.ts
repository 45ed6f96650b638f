// needs: nothing
import { beforeAll, describe, expect, it } from 'vitest';
import { discover, type Topology } from '../../../lib/entries/topology.js';
import { workqueues } from '../../../lib/quiet/parts/workqueues.js';
import { kernelTree } from '../../support/kernel-tree.js';
import { demandOf, quiet, restore, write } from '../../support/quiet.js';

const FOLDER = '/sys/devices/virtual/workqueue';

let machine: Topology;
beforeAll(async () => {
  machine = await discover({ synthetic: 'numa:1 core:4 pu:1' });
});

const tree = (more: Record<string, string> = {}) =>
  kernelTree({
    [`${FOLDER}/cpumask`]: 'f',
    [`${FOLDER}/uevent`]: '',
    [`${FOLDER}/power/control`]: 'auto',
    [`${FOLDER}/writeback/cpumask`]: '4',
    [`${FOLDER}/writeback/nice`]: '0',
    ...more,
  });
const demand = (...cpus: string[]) => demandOf(machine, ...cpus.map((list) => quiet(list)));

describe('unbound kernel work', () => {
  it('leaves quiet CPUs, the queues before the mask of all, and comes back', async () => {
    const files = tree();
    const before = new Map(files.texts);
    const changes = await write([...workqueues.settings(files, demand('2'), [])], demand('2'));
    expect(files.writes).toEqual([`${FOLDER}/writeback/cpumask`, `${FOLDER}/cpumask`]);
    expect(files.texts.get(`${FOLDER}/cpumask`)).toBe('b');
    expect(files.texts.get(`${FOLDER}/writeback/cpumask`)).toBe('b');
    await restore(changes);
    expect(files.texts).toEqual(before);
  });

  it('is set by the requested mask, from which the kernel takes isolated partitions out', () => {
    const files = tree({ [`${FOLDER}/cpumask`]: 'e', [`${FOLDER}/cpumask_requested`]: '0f' });
    const all = [...workqueues.settings(files, demand('2'), [])].at(-1)!;
    expect(all.path).toBe(`${FOLDER}/cpumask`);
    expect(all.read()).toBe('f');
  });

  it('names its queues', () => {
    const titles = [...workqueues.settings(tree(), demand('2'), [])].map(({ title }) => title);
    expect(titles).toEqual(['workqueue writeback', 'unbound workqueues']);
  });

  it('has no obstacle if the kernel shows its mask', () => {
    expect(workqueues.obstacles(tree(), demand('2'))).toEqual([]);
  });

  it('cannot be kept away if the kernel does not show it', () => {
    const files = kernelTree({});
    expect([...workqueues.settings(files, demand('2'), [])]).toEqual([]);
    expect(workqueues.obstacles(files, demand('2'))).toEqual([
      expect.stringMatching(/cannot be seen.*isolcpus=/),
    ]);
  });
});
