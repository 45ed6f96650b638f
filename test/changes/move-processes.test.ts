// needs: machine
import { describe, expect, it } from 'vitest';
import { takeOver } from '../../lib/admission/grants/transfer.js';
import { answerMoves } from '../../lib/changes/mover.js';
import type { Manager } from '../../lib/index.js';
import { changed } from '../support/changed.js';
import { agentOn, isAnnounced } from '../support/changing-grants.js';
import { errorOf } from '../support/error-of.js';
import { GI, machineOf } from '../support/memory-machine.js';
import { hostOf, move } from '../support/moves.mjs';
import { simulate } from '../support/simulated.js';
import { makeStateDir } from '../support/state-dir.js';

const SIMULATE = 'package:2 [numa(memory=8GiB)] core:4 pu:1';
const SECOND = { cpus: '4-5', node: 1 };
const MOVER = { cpu: 2, memory: '2Gi', name: 'mover', policy: 'single-numa-node', movable: true };

const open = async (stateDir: string) =>
  simulate(await machineOf([0, 1].map(() => ({ cpus: 4, memory: 8 * GI }))), { stateDir });

const agentIn = (stateDir: string) => agentOn(SIMULATE, stateDir);

const grantsOf = (manager: Manager) =>
  Object.fromEntries(manager.grants().map(({ name, cpus }) => [name, String(cpus)]));
const reservedOf = (manager: Manager) => manager.memory().map(({ reserved }) => reserved / GI);

describe('a grant of another process', () => {
  it('is moved by that process, which learns of it before and after', async () => {
    const stateDir = makeStateDir();
    const [manager, owner] = [await open(stateDir), await agentIn(stateDir)];
    const { uid } = await owner.tell('acquire', MOVER);
    await owner.tell('listenToMoves', { uid });
    const moved = await move(manager, uid, SECOND, { for: 'asker' });
    expect(String(moved.containers[0]!.cpus)).toBe('4-5');
    expect(grantsOf(manager)).toEqual({ mover: '4-5', asker: '0-1' });
    await expect
      .poll(() => owner.tell('events'))
      .toEqual([
        { name: 'move', before: '0-1', cpus: '4-5' },
        { name: 'moveEnd', isMoved: true, cpus: '4-5', reason: null },
      ]);
  });

  it('is moved even without listeners', async () => {
    const stateDir = makeStateDir();
    const [manager, owner] = [await open(stateDir), await agentIn(stateDir)];
    const { uid } = await owner.tell('acquire', MOVER);
    await move(manager, uid, SECOND, { for: 'asker' });
    expect(grantsOf(manager)).toEqual({ mover: '4-5', asker: '0-1' });
  });

  it('is moved only once the program that takes it over can listen', async () => {
    const stateDir = makeStateDir();
    const [manager, other] = [await open(stateDir), await agentIn(stateDir)];
    const { uid } = await other.tell('acquire', { ...MOVER, movable: { notice: 60_000 } });
    // From now on this process looks for moves.
    await manager.acquire({ cpu: 1, movable: true });
    const host = hostOf(manager);
    const pod = await takeOver(host, await other.tell('transfer', { uid }));
    const moving = other.tell('move', { uid, to: SECOND, for: 'asker' });
    await changed(manager, () => isAnnounced(manager));
    const heard: string[] = [];
    manager.grant(uid).on('move', ({ cpus }) => void heard.push(String(cpus)));
    answerMoves(host, pod);
    await moving;
    expect(heard).toEqual(['4-5']);
  });

  it('stays when its process does not answer within the notice', async () => {
    const stateDir = makeStateDir();
    const [manager, owner] = [await open(stateDir), await agentIn(stateDir)];
    const { uid } = await owner.tell('acquire', { ...MOVER, movable: { notice: 2000 } });
    owner.process.kill('SIGSTOP');
    const error = await errorOf(() => move(manager, uid, SECOND, { for: 'asker' }));
    expect(error).toMatchObject({ code: 'ERR_NOT_MOVED', details: { value: uid, reason: 'no-answer' } });
    owner.process.kill('SIGCONT');
    await owner.tell('listenToMoves', { uid });
    expect(grantsOf(manager)).toEqual({ mover: '0-1' });
    expect(reservedOf(manager)).toEqual([2, 0]);
    // It may be asked again.
    await move(manager, uid, SECOND, { for: 'asker' });
    expect(grantsOf(manager)).toEqual({ mover: '4-5', asker: '0-1' });
  });

  it('learns that a move is off when it answers too late', async () => {
    const stateDir = makeStateDir();
    const [manager, owner] = [await open(stateDir), await agentIn(stateDir)];
    const { uid } = await owner.tell('acquire', { ...MOVER, movable: { notice: 2000 } });
    await owner.tell('listenToMoves', { uid, waits: true });
    await errorOf(() => move(manager, uid, SECOND, { for: 'asker' }));
    await expect
      .poll(() => owner.tell('events'))
      .toContainEqual(expect.objectContaining({ name: 'moveEnd', isMoved: false, cpus: '0-1' }));
    await owner.tell('letGo');
    expect(grantsOf(manager)).toEqual({ mover: '0-1' });
  });

  it('learns that its listener was too slow when the listener blocks its process', async () => {
    const stateDir = makeStateDir();
    const [manager, owner] = [await open(stateDir), await agentIn(stateDir)];
    const { uid } = await owner.tell('acquire', { ...MOVER, movable: { notice: 2000 } });
    await owner.tell('listenToMoves', { uid, blocks: true });
    await errorOf(() => move(manager, uid, SECOND, { for: 'asker' }));
    await expect
      .poll(() => owner.tell('events'))
      .toContainEqual({ name: 'moveEnd', isMoved: false, cpus: '0-1', reason: 'no-answer' });
  });

  it('is given back, with all room kept for it, when its process dies before it answers', async () => {
    const stateDir = makeStateDir();
    const [manager, owner] = [await open(stateDir), await agentIn(stateDir)];
    const { uid } = await owner.tell('acquire', MOVER);
    await owner.tell('listenToMoves', { uid, waits: true });
    const moving = errorOf(() => move(manager, uid, SECOND, { for: 'asker' }));
    await changed(manager, () => isAnnounced(manager));
    await owner.kill();
    expect(await moving).toMatchObject({ code: 'ERR_NOT_MOVED', details: { reason: 'ended' } });
    expect(grantsOf(manager)).toEqual({});
    expect(reservedOf(manager)).toEqual([0, 0]);
  });

  it('stays, and learns so, when the requesting process dies meanwhile', async () => {
    const stateDir = makeStateDir();
    const [manager, owner, asker] = [await open(stateDir), await agentIn(stateDir), await agentIn(stateDir)];
    const { uid } = await owner.tell('acquire', MOVER);
    await owner.tell('listenToMoves', { uid, waits: true });
    asker.ask('move', { uid, to: SECOND, for: 'asker' }).catch(() => {});
    await changed(manager, () => isAnnounced(manager));
    await asker.kill();
    await changed(manager, () => !isAnnounced(manager));
    expect(grantsOf(manager)).toEqual({ mover: '0-1' });
    expect(reservedOf(manager)).toEqual([2, 0]);
    await expect
      .poll(() => owner.tell('events'))
      .toContainEqual({
        ...{ name: 'moveEnd', isMoved: false, cpus: '0-1', reason: 'called-off' },
      });
  });

  it('frees its room when the requesting process dies after the move', async () => {
    const stateDir = makeStateDir();
    const [manager, owner, asker] = [await open(stateDir), await agentIn(stateDir), await agentIn(stateDir)];
    const { uid } = await owner.tell('acquire', MOVER);
    await asker.tell('move', { uid, to: SECOND, for: 'asker' });
    expect(grantsOf(manager)).toEqual({ mover: '4-5', asker: '0-1' });
    await asker.kill();
    await changed(manager, () => manager.grants().length === 1);
    expect(grantsOf(manager)).toEqual({ mover: '4-5' });
    expect(reservedOf(manager)).toEqual([0, 2]);
  });

  it('is moved for one requester at a time', async () => {
    const stateDir = makeStateDir();
    const [manager, owner, asker] = [await open(stateDir), await agentIn(stateDir), await agentIn(stateDir)];
    const { uid } = await owner.tell('acquire', MOVER);
    await owner.tell('listenToMoves', { uid, waits: true });
    const first = asker.ask('move', { uid, to: SECOND, for: 'first' });
    await changed(manager, () => isAnnounced(manager));
    const error = await errorOf(() => move(manager, uid, { cpus: '6-7', node: 1 }, { for: 'second' }));
    expect(error).toMatchObject({ code: 'ERR_GRANT_BUSY', details: { value: uid } });
    expect(await owner.ask('resize', { uid, cpu: 3 })).toMatchObject({ error: { code: 'ERR_GRANT_BUSY' } });
    await owner.tell('letGo');
    expect((await first).error).toBeUndefined();
    expect(grantsOf(manager)).toEqual({ mover: '4-5', first: '0-1' });
  });

  it('may be released while its move is announced', async () => {
    const stateDir = makeStateDir();
    const [manager, owner] = [await open(stateDir), await agentIn(stateDir)];
    const { uid } = await owner.tell('acquire', MOVER);
    await owner.tell('listenToMoves', { uid, waits: true });
    const moving = errorOf(() => move(manager, uid, SECOND, { for: 'asker' }));
    await changed(manager, () => isAnnounced(manager));
    await owner.tell('release', { uid });
    expect(await moving).toMatchObject({ code: 'ERR_NOT_MOVED', details: { reason: 'ended' } });
    expect(grantsOf(manager)).toEqual({});
    expect(reservedOf(manager)).toEqual([0, 0]);
  });

  it('can be called off by the requester', async () => {
    const stateDir = makeStateDir();
    const [manager, owner] = [await open(stateDir), await agentIn(stateDir)];
    const { uid } = await owner.tell('acquire', MOVER);
    await owner.tell('listenToMoves', { uid, waits: true });
    const abort = new AbortController();
    const moving = move(manager, uid, SECOND, { for: 'asker', signal: abort.signal });
    const outcome = moving.catch((error) => error);
    await changed(manager, () => isAnnounced(manager));
    abort.abort(new Error('enough'));
    expect(await outcome).toMatchObject({ message: 'enough' });
    expect(grantsOf(manager)).toEqual({ mover: '0-1' });
    expect(reservedOf(manager)).toEqual([2, 0]);
  });
});

describe('a persistent grant', () => {
  it('is moved by the requesting process', async () => {
    const stateDir = makeStateDir();
    const [manager, other] = [await open(stateDir), await agentIn(stateDir)];
    const { uid } = await other.tell('acquire', { ...MOVER, owner: 'persistent' });
    await move(manager, uid, SECOND, { for: 'asker' });
    expect(grantsOf(manager)).toEqual({ mover: '4-5', asker: '0-1' });
  });
});
