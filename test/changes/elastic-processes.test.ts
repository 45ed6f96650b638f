// needs: agents
// Grants of several processes that grow and shrink by themselves.
import { describe, expect, it } from 'vitest';
import { changed } from '../support/changed.js';
import { agentOn, isAnnounced, settled, sizesOf } from '../support/changing-grants.js';
import { errorOf } from '../support/error-of.js';
import { simulate } from '../support/simulated.js';
import { makeStateDir } from '../support/state-dir.js';

const SIMULATE = 'package:2 core:4 pu:1';
const ELASTIC = { cpu: { min: 2, max: 8 }, name: 'elastic' };
// The time that its owner has to answer.
const IMPATIENT = { ...ELASTIC, movable: { notice: 2000 } };

const open = (stateDir: string) => simulate(SIMULATE, { stateDir });

const agentIn = (stateDir: string) => agentOn(SIMULATE, stateDir);

describe('a grant of a range of another process', () => {
  it('gives up CPUs for a request, and that process learns of it', async () => {
    const stateDir = makeStateDir();
    const [manager, owner] = [await open(stateDir), await agentIn(stateDir)];
    const { uid, cpus } = await owner.tell('acquire', ELASTIC);
    expect(cpus).toBe('0-6');
    await owner.tell('listenToResizes', { uid });
    const other = await manager.acquire({ cpu: 4, name: 'other' });
    expect(sizesOf(manager)).toEqual({ elastic: 3, other: 4 });
    const now = String(manager.grant(uid).cpus);
    await expect.poll(() => owner.tell('events')).toEqual([{ before: '0-6', cpus: now, for: other.uid }]);
  });

  it('grows again when the other process ends', async () => {
    const stateDir = makeStateDir();
    const [manager, owner, other] = [await open(stateDir), await agentIn(stateDir), await agentIn(stateDir)];
    const { uid } = await owner.tell('acquire', ELASTIC);
    await other.tell('acquire', { cpu: 4 });
    expect(manager.grant(uid).cpus.size).toBe(3);
    await other.kill();
    await settled(manager, { elastic: 7 });
  });

  it('keeps its CPUs while its process does not answer, and the requester is rejected', async () => {
    const stateDir = makeStateDir();
    const [manager, owner] = [await open(stateDir), await agentIn(stateDir)];
    const { cpus } = await owner.tell('acquire', IMPATIENT);
    owner.process.kill('SIGSTOP');
    expect(await errorOf(() => manager.acquire({ cpu: 4 }))).toMatchObject({ code: 'ERR_INSUFFICIENT_CPUS' });
    expect(manager.grants().map((grant) => [grant.name, String(grant.cpus)])).toEqual([['elastic', cpus]]);
    owner.process.kill('SIGCONT');
    await manager.acquire({ cpu: 4, name: 'other' });
    expect(sizesOf(manager)).toEqual({ elastic: 3, other: 4 });
  });

  it('leaves all its CPUs to a request that asks it for some while its process dies', async () => {
    const stateDir = makeStateDir();
    const [manager, owner] = [await open(stateDir), await agentIn(stateDir)];
    await owner.tell('acquire', ELASTIC);
    owner.process.kill('SIGSTOP');
    const coming = manager.acquire({ cpu: 4, name: 'other' });
    await changed(manager, () => isAnnounced(manager));
    await owner.kill();
    await coming;
    expect(sizesOf(manager)).toEqual({ other: 4 });
  });

  it('keeps its CPUs when the process dies that asks for some', async () => {
    const stateDir = makeStateDir();
    const [manager, owner, asker] = [await open(stateDir), await agentIn(stateDir), await agentIn(stateDir)];
    const { cpus } = await owner.tell('acquire', ELASTIC);
    owner.process.kill('SIGSTOP');
    asker.ask('acquire', { cpu: 4 }).catch(() => {});
    await changed(manager, () => isAnnounced(manager));
    await asker.kill();
    await changed(manager, () => !isAnnounced(manager));
    expect(manager.grants().map((grant) => [grant.name, String(grant.cpus)])).toEqual([['elastic', cpus]]);
    owner.process.kill('SIGCONT');
    await owner.tell('events');
    expect(manager.grants().map((grant) => [grant.name, String(grant.cpus)])).toEqual([['elastic', cpus]]);
  });

  it('makes room for two requests at a time', async () => {
    const stateDir = makeStateDir();
    const [manager, owner, asker] = [await open(stateDir), await agentIn(stateDir), await agentIn(stateDir)];
    await owner.tell('acquire', { ...ELASTIC, cpu: { min: 1, max: 8 } });
    await Promise.all([
      manager.acquire({ cpu: 2, name: 'first' }),
      asker.tell('acquire', { cpu: 3, name: 'second' }),
    ]);
    const { elastic, first, second } = sizesOf(manager);
    expect([first, second]).toEqual([2, 3]);
    expect(elastic).toBeLessThanOrEqual(2);
    await changed(manager, () => sizesOf(manager).elastic === 2);
  });

  it('shares with one of a third process by weight', async () => {
    const stateDir = makeStateDir();
    const [manager, owner, other] = [await open(stateDir), await agentIn(stateDir), await agentIn(stateDir)];
    await owner.tell('acquire', { cpu: { min: 1, max: 8 }, name: 'light' });
    await other.tell('acquire', { cpu: { min: 1, max: 8 }, weight: 250, name: 'heavy' });
    await settled(manager, { light: 2, heavy: 5 });
    await other.kill();
    await settled(manager, { light: 7 });
  });

  it('grows with its successor once it is handed over', async () => {
    const stateDir = makeStateDir();
    const [manager, owner, next] = [await open(stateDir), await agentIn(stateDir), await agentIn(stateDir)];
    const { uid } = await owner.tell('acquire', ELASTIC);
    const other = await manager.acquire({ cpu: 4 });
    const token = await owner.tell('transfer', { uid });
    await next.tell('takeOver', { token });
    await owner.kill();
    await other.release();
    await settled(manager, { elastic: 7 });
  });
});
