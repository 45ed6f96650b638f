// needs: agents
import { describe, expect, it, onTestFinished } from 'vitest';
import { discover } from '../../lib/entries/topology.js';
import { type Manager, openManager } from '../../lib/index.js';
import { errorOf } from '../support/error-of.js';
import { makeStateDir } from '../support/state-dir.js';
import { membersOf } from '../support/state-text.js';

const simulated = () => discover({ synthetic: 'numa:2 core:4 pu:1' });

async function opened(stateDir: string): Promise<Manager> {
  const manager = await openManager({ stateDir, topology: await simulated() });
  onTestFinished(() => manager.close());
  return manager;
}

const idsIn = (stateDir: string) => membersOf(stateDir).pods.map(({ uid }: { uid: string }) => uid);

const container = { name: 'main', limits: { cpu: 1, memory: '1Mi' } };

describe('await using', () => {
  it('releases the grants and pods of the manager, and closes it', async () => {
    const stateDir = makeStateDir();
    let left: Manager | undefined;
    {
      await using manager = await openManager({ stateDir, topology: await simulated() });
      left = manager;
      await manager.acquire({ cpu: 1 });
      await manager.admit({ containers: [container] }, { owner: 'process' });
      expect(idsIn(stateDir)).toHaveLength(2);
    }
    expect(idsIn(stateDir)).toEqual([]);
    expect(() => left.grants()).toThrow(expect.objectContaining({ code: 'ERR_MANAGER_CLOSED' }));
  });

  it('leaves persistent grants, and those of another manager of the process', async () => {
    const stateDir = makeStateDir();
    const other = await opened(stateDir);
    const theirs = await other.acquire({ cpu: 1 });
    const manager = await opened(stateDir);
    const persistent = await manager.acquire({ cpu: 1, owner: 'persistent' });
    const own = await manager.acquire({ cpu: 1 });
    expect(idsIn(stateDir)).toContain(own.uid);
    await manager[Symbol.asyncDispose]();
    expect(idsIn(stateDir).sort()).toEqual([theirs.uid, persistent.uid].sort());
    await theirs.release();
  });

  it('leaves a pod that another manager has admitted', async () => {
    const stateDir = makeStateDir();
    const other = await opened(stateDir);
    const pod = { uid: 'web', containers: [container] };
    await other.admit(pod, { owner: 'process' });
    const manager = await opened(stateDir);
    expect(await manager.admit(pod, { owner: 'process' })).toMatchObject({ alreadyAdmitted: true });
    await manager[Symbol.asyncDispose]();
    expect(idsIn(stateDir)).toEqual(['web']);
    await other.release('web');
  });

  it('accepts grants that were released before, however many', async () => {
    const stateDir = makeStateDir();
    const manager = await opened(stateDir);
    for (let i = 0; i < 150; i++) await (await manager.acquire({ cpu: 1 })).release();
    await manager.acquire({ cpu: 1 });
    await manager[Symbol.asyncDispose]();
    expect(idsIn(stateDir)).toEqual([]);
  });

  it('releases grants that are admitted meanwhile, and ends waiting requests', async () => {
    const stateDir = makeStateDir();
    const manager = await opened(stateDir);
    const coming = manager.acquire({ cpu: 7 });
    const waiting = errorOf(() => manager.acquire({ cpu: 7, wait: true }));
    await manager[Symbol.asyncDispose]();
    await coming;
    expect(await waiting).toMatchObject({ code: 'ERR_MANAGER_CLOSED' });
    expect(idsIn(stateDir)).toEqual([]);
  });

  it('leaves the grants of a manager that was closed before', async () => {
    const stateDir = makeStateDir();
    const manager = await opened(stateDir);
    const grant = await manager.acquire({ cpu: 1 });
    manager.close();
    await manager[Symbol.asyncDispose]();
    expect(idsIn(stateDir)).toEqual([grant.uid]);
    await grant.release();
  });
});

describe('using', () => {
  it('closes the manager, and leaves its grants', async () => {
    const stateDir = makeStateDir();
    const manager = await opened(stateDir);
    const grant = await manager.acquire({ cpu: 1 });
    manager[Symbol.dispose]();
    expect(idsIn(stateDir)).toEqual([grant.uid]);
    await grant.release();
  });
});
