// needs: process
// Grants that a program can do without, on a machine where numalign works.
import { chmodSync, mkdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type EmptyGrant, Grant, type Manager, openManager, pin } from '../../lib/index.js';
import { errorOf } from '../support/error-of.js';
import { affinity, discover } from '../support/package.js';
import { makeStateDir } from '../support/state-dir.js';

const simulated = async (synthetic: string): Promise<Manager> =>
  openManager({ topology: await discover({ synthetic }) });

/** The code of the reason; throws if the grant has CPUs. */
function reasonOf(grant: Grant | EmptyGrant): string {
  if (!grant.isEmpty) throw new Error(`it has CPUs ${grant.cpus}`);
  expect([...grant.cpus]).toEqual([]);
  return grant.reason.code;
}

describe('an optional grant', () => {
  it('is a grant if there is room', async () => {
    const manager = await simulated('core:4 pu:1');
    const grant = await manager.acquire({ cpu: 2, optional: true });
    expect([grant instanceof Grant, grant.isEmpty, grant.reason, grant.cpus.size]).toEqual([
      true,
      false,
      null,
      2,
    ]);
  });

  it.each([
    ['too few CPUs', 'core:2 pu:1', { cpu: 3 }, 'ERR_INSUFFICIENT_CPUS'],
    ['a machine of one CPU', 'core:1 pu:1', { cpu: 1 }, 'ERR_INSUFFICIENT_CPUS'],
    ['no alignment', 'numa:2 core:2 pu:1', { cpu: 3, policy: 'single-numa-node' }, 'ERR_TOPOLOGY_AFFINITY'],
  ] as const)('is empty for %s, and takes nothing', async (_why, machine, options, code) => {
    const manager = await simulated(machine);
    const free = manager.freeCpus();
    expect(reasonOf(await manager.acquire({ ...options, optional: true }))).toBe(code);
    expect((await errorOf(() => manager.acquire(options))).code).toBe(code);
    expect(manager.freeCpus()).toEqual(free);
    expect(manager.grants()).toEqual([]);
  });

  it('is empty without access to the state folder, and the manager with it', async () => {
    const stateDir = makeStateDir();
    // Any user may write to it, so that it is refused.
    mkdirSync(stateDir);
    chmodSync(stateDir, 0o777);
    expect(reasonOf(await pin({ cpu: 1, optional: true, manager: { stateDir } }))).toBe('ERR_STATE_FOLDER');
    const manager = await openManager({ stateDir, optional: true });
    expect(manager.reason?.code).toBe('ERR_STATE_FOLDER');
    expect(reasonOf(await manager.acquire({ cpu: 1, optional: true }))).toBe('ERR_STATE_FOLDER');
  });

  it('does not move the process, and the result of pin() says so', async () => {
    const before = affinity();
    const grant = await pin({ cpu: 1000, optional: true, manager: { stateDir: makeStateDir() } });
    const { moved, memory } = grant.pin();
    expect([moved, memory?.applied, memory?.reason]).toEqual([[], false, 'ERR_INSUFFICIENT_CPUS']);
    expect(affinity()).toEqual(before);
    await grant.release();
  });

  it('has the requested parts, and no others', async () => {
    const manager = await simulated('core:2 pu:1');
    const grant = await manager.acquire({ cpu: 4, parts: { main: 1 }, optional: true });
    expect([...grant.part('main').cpus]).toEqual([]);
    expect(grant.part('main').pin().moved).toEqual([]);
    expect((await errorOf(() => grant.part('other'))).code).toBe('ERR_UNKNOWN_PART');
  });

  it('throws its reason in methods that need CPUs', async () => {
    const manager = await simulated('core:2 pu:1');
    const grant = await manager.acquire({ cpu: 4, optional: true });
    for (const action of [
      () => grant.resize({ cpu: 1 }),
      () => grant.transfer(),
      () => grant.attach(process.pid),
      () => grant.schedule({ policy: 'fifo', priority: 1 }),
      () => grant.audit(),
      () => grant.buffer(4096, { node: 0 }),
    ])
      expect(await errorOf(action)).toBe(grant.reason);
  });

  it('refuses mistakes in the placement of threads, Workers and memory', async () => {
    const manager = await simulated('core:2 pu:1');
    const grant = await manager.acquire({ cpu: 4, parts: { main: 1 }, optional: true });
    const codes = async (actions: readonly (() => unknown)[]) =>
      Promise.all(actions.map(async (action) => (await errorOf(action)).code));
    const misspelled = { repalce: true } as object;
    const options = [
      () => grant.placeThreads(misspelled),
      () => grant.placeThreads({ replace: 1 } as object),
      () => grant.placeThreads({ main: { oneToOne: 1 } } as object),
      () => grant.placeWorkers(misspelled),
      () => grant.placeWorkers({ oneToOne: 1 } as object),
      () => grant.prewarmPool(misspelled),
      () => grant.poolOptions('piscina', misspelled),
      () => grant.buffer(4096, misspelled),
    ];
    expect(await codes(options)).toEqual(options.map(() => 'ERR_INVALID_OPTION'));
    const part = 'mian';
    const parts = [
      () => grant.placeThreads({ main: { part } }),
      () => grant.placeWorkers({ part }),
      () => grant.poolOptions('piscina', { part }),
      () => grant.worker('', { eval: true, part }),
    ];
    expect(await codes(parts)).toEqual(parts.map(() => 'ERR_UNKNOWN_PART'));
    expect((await errorOf(parts[0]!)).message).toBe("the empty grant has no part 'mian', only main");
    await grant.placeThreads({ main: { part: 'main' }, workers: 'one-to-one', pool: '0', replace: true });
    await grant.placeWorkers({ part: 'main', oneToOne: true });
    expect(grant.poolOptions('piscina', { part: 'main' })).toEqual(grant.poolOptions('piscina'));
  });

  it('of pin() is refused for a mistake, with or without room', async () => {
    const code = async (options: object) => {
      const manager = { stateDir: makeStateDir() };
      return (await errorOf(() => pin({ cpu: 1, manager, optional: true, ...options } as { cpu: number })))
        .code;
    };
    expect(await code({ optional: 'yes' })).toBe('ERR_INVALID_OPTION');
    expect(await code({ optional: 'yes', cpu: 1000 })).toBe('ERR_INVALID_OPTION');
    expect(await code({ cpu: 1000, threads: { mian: '0' } })).toBe('ERR_INVALID_OPTION');
    expect(await code({ cpu: 1000, threads: { main: { part: 'main' } } })).toBe('ERR_UNKNOWN_PART');
  });

  it('has ordinary memory', async () => {
    const manager = await simulated('core:2 pu:1');
    const grant = await manager.acquire({ cpu: 4, optional: true });
    expect(grant.buffer('4Ki').length).toBe(4096);
  });

  it('is refused for a mistake, and after its manager was closed', async () => {
    const manager = await simulated('core:2 pu:1');
    const code = async (options: object) =>
      (await errorOf(() => manager.acquire({ cpu: 1, optional: true, ...options }))).code;
    expect(await code({ cpu: 0 })).toBe('ERR_INVALID_OPTION');
    expect(await code({ resources: { 'example.com/nic': 1 } })).toBe('ERR_INVALID_OPTION');
    expect(await code({ optional: 1 })).toBe('ERR_INVALID_OPTION');
    manager.close();
    expect(await code({})).toBe('ERR_MANAGER_CLOSED');
  });

  it('does not exist in a read-only manager', async () => {
    const options = { readOnly: true, optional: true, stateDir: null } as object;
    expect((await errorOf(() => openManager(options))).code).toBe('ERR_INVALID_OPTION');
  });

  it('that waits is given up by its signal, not empty', async () => {
    const manager = await simulated('core:2 pu:1');
    await manager.acquire({ cpu: 1 });
    const signal = AbortSignal.timeout(20);
    const error = await errorOf(() => manager.acquire({ cpu: 1, wait: true, signal, optional: true }));
    expect(error.name).toBe('TimeoutError');
  });
});
