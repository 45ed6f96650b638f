// needs: agents
import { describe, expect, it } from 'vitest';
import type { Defragmentation } from '../../lib/entries/diagnostics.js';
import { errorOf } from '../support/error-of.js';
import { cpusByName, fragment, fragmentByTwo, openTwoNodes, SINGLE } from '../support/fragmented.js';

const nodesOf = ({ nodes }: Defragmentation) => nodes.map(({ node, before, after }) => [node, before, after]);

describe('defragment', () => {
  it('moves a grant that consents, so that a node has room for more', async () => {
    const manager = await openTwoNodes({});
    const { mover } = await fragment(manager);
    const done = await manager.defragment();
    expect(cpusByName(manager)).toEqual({ mover: '6-7', filler: '4-5' });
    expect(nodesOf(done)).toEqual([
      [0, 2, 3],
      [1, 2, 0],
    ]);
    expect(done).toMatchObject({ dryRun: false, unmoved: [], moves: [{ uid: mover.uid, name: 'mover' }] });
    await manager.acquire({ cpu: 3, ...SINGLE });
  });

  it('only reports in a dry run', async () => {
    const manager = await openTwoNodes({});
    await fragment(manager);
    const generation = manager.generation();
    const planned = await manager.defragment({ dryRun: true });
    expect(planned).toMatchObject({ dryRun: true, moves: [{ name: 'mover' }] });
    expect(manager.generation()).toBe(generation);
    expect(nodesOf(await manager.defragment())).toEqual(nodesOf(planned));
  });

  it('continues until there is nothing to gain', async () => {
    const manager = await openTwoNodes({}, 6);
    await fragmentByTwo(manager);
    const done = await manager.defragment();
    expect(done.moves.map(({ name }) => name).sort()).toEqual(['a', 'b']);
    expect(nodesOf(done)).toEqual([
      [0, 4, 6],
      [1, 4, 2],
    ]);
    expect(await manager.defragment()).toMatchObject({ moves: [] });
  });

  it('names the grants that refused, and the gain without them', async () => {
    const manager = await openTwoNodes({});
    const { mover } = await fragment(manager);
    mover.on('move', () => {
      throw new Error('never');
    });
    const done = await manager.defragment();
    expect(done).toMatchObject({ moves: [], unmoved: [{ name: 'mover', reason: 'refused' }] });
    expect(nodesOf(done)).toEqual([
      [0, 2, 2],
      [1, 2, 2],
    ]);
    expect(manager.grants()).toHaveLength(2);
  });

  it('moves no grant without consent', async () => {
    const manager = await openTwoNodes({});
    await fragment(manager, {});
    expect(await manager.defragment()).toMatchObject({ moves: [], unmoved: [] });
  });

  it.each([
    [{ dryRun: 1 }, 'dryRun'],
    [{ wet: true }, 'wet'],
  ])('refuses %j', async (options, name) => {
    const manager = await openTwoNodes({});
    const error = await errorOf(() => manager.defragment(options as object));
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION' });
    expect((error as Error).message).toContain(name);
  });
});
