// needs: agents
import { readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Manager } from '../../lib/index.js';
import type { Agent } from '../support/agent.js';
import { budget } from '../support/budget.mjs';
import { changed } from '../support/changed.js';
import { agentOn, isAnnounced } from '../support/changing-grants.js';
import { cpusByName, DYNAMIC, SINGLE } from '../support/fragmented.js';
import { GI, machineOf } from '../support/memory-machine.js';
import { beginFor } from '../support/moves.mjs';
import { simulate } from '../support/simulated.js';
import { makeStateDir } from '../support/state-dir.js';
// @ts-expect-error without declarations
import { shimEnvironment } from '../torture/shim.mjs';

const simulated = (cpus: number) => `package:2 [numa(memory=8GiB)] core:${cpus} pu:1`;
const MOVER = { cpu: 2, memory: '2Gi', name: 'mover', movable: true, ...SINGLE };
const ASKER = { cpu: 3, memory: '1Gi', name: 'asker', ...SINGLE };

const open = async (stateDir: string, cpus = 4) =>
  simulate(await machineOf([0, 1].map(() => ({ cpus, memory: 8 * GI }))), { stateDir, ...DYNAMIC });

const agentIn = (stateDir: string, cpus = 4, prefix: string[] = []) =>
  agentOn(simulated(cpus), stateDir, DYNAMIC, prefix);

/** `mover` of the agent has two CPUs and memory of node 0, `filler` two CPUs of node 1. */
async function fragment(manager: Manager, owner: Agent, options: object = {}): Promise<string> {
  const { uid } = await owner.tell('acquire', { ...MOVER, ...options });
  const rest = await manager.acquire({ cpu: 2, ...SINGLE });
  await manager.acquire({ cpu: 2, name: 'filler', ...SINGLE });
  await rest.release();
  return uid;
}

const namesOf = (manager: Manager) =>
  manager
    .grants()
    .map(({ name }) => name)
    .sort();
const reservedOf = (manager: Manager) => manager.memory().map(({ reserved }) => reserved / GI);

describe('a grant of another process', () => {
  it('moves out of the way of a request, and its owner learns of it', async () => {
    const stateDir = makeStateDir();
    const [manager, owner] = [await open(stateDir), await agentIn(stateDir)];
    const uid = await fragment(manager, owner);
    await owner.tell('listenToMoves', { uid });
    await manager.acquire(ASKER);
    expect(cpusByName(manager)).toEqual({ mover: '6-7', filler: '4-5', asker: '0-2' });
    expect(reservedOf(manager)).toEqual([1, 2]);
    expect(await owner.tell('events')).toMatchObject([{ name: 'move' }, { name: 'moveEnd', isMoved: true }]);
  });

  it('is passed over if its process does not answer, and the next candidate moves', async () => {
    const stateDir = makeStateDir();
    const [manager, owner] = [await open(stateDir), await agentIn(stateDir)];
    const small = { ...MOVER, cpu: 1 };
    // The grant with less memory to migrate comes first.
    await owner.tell('acquire', { ...small, memory: '1Gi', movable: { notice: 200 } });
    await manager.acquire({ ...small, name: 'second' });
    const rest = await manager.acquire({ cpu: 2, ...SINGLE });
    await manager.acquire({ cpu: 2, name: 'filler', ...SINGLE });
    await rest.release();
    owner.process.kill('SIGSTOP');
    await manager.acquire(ASKER);
    owner.process.kill('SIGCONT');
    const nodes = manager.grants().map(({ name, numaNodes }) => `${name} ${numaNodes}`);
    expect(nodes).toEqual(['mover 0', 'second 1', 'filler 1', 'asker 0']);
  });
});

describe('a request whose room is made by a process that has stopped meanwhile', () => {
  it('ends with its signal, and the old room of the grant is kept until it has left', async () => {
    const stateDir = makeStateDir();
    const [manager, owner] = [await open(stateDir), await agentIn(stateDir)];
    const uid = await fragment(manager, owner, { movable: { notice: 5000 } });
    owner.process.kill('SIGSTOP');
    const abort = new AbortController();
    const asking = manager.acquire({ ...ASKER, signal: abort.signal }).catch((error) => error);
    await changed(manager, () => isAnnounced(manager));
    await beginFor(manager, uid);
    abort.abort(new Error('enough'));
    expect(await asking).toMatchObject({ message: 'enough' });
    expect(reservedOf(manager)).toEqual([2, 2]);
    await owner.kill();
    await changed(manager, () => manager.grants().length === 1);
    expect(namesOf(manager)).toEqual(['filler']);
    expect(reservedOf(manager)).toEqual([0, 0]);
  });
});

describe('the requesting process', () => {
  it('keeps no room if it is killed before the owner’s answer', async () => {
    const stateDir = makeStateDir();
    const [manager, owner, asker] = [await open(stateDir), await agentIn(stateDir), await agentIn(stateDir)];
    const uid = await fragment(manager, owner);
    await owner.tell('listenToMoves', { uid, waits: true });
    asker.ask('acquire', ASKER).catch(() => {});
    await changed(manager, () => isAnnounced(manager));
    await asker.kill();
    await changed(manager, () => !isAnnounced(manager));
    expect(cpusByName(manager)).toEqual({ mover: '0-1', filler: '4-5' });
    expect(reservedOf(manager)).toEqual([2, 0]);
    const next = manager.acquire(ASKER);
    await expect.poll(() => owner.tell('events')).toHaveLength(3);
    await owner.tell('letGo');
    await next;
    expect(cpusByName(manager)).toEqual({ mover: '6-7', filler: '4-5', asker: '0-2' });
  });

  it('keeps no room if it is killed between two moves', async () => {
    const stateDir = makeStateDir();
    const manager = await open(stateDir, 5);
    const [owner, asker] = [await agentIn(stateDir, 5), await agentIn(stateDir, 5)];
    const small = { cpu: 1, memory: '1Gi', movable: true, ...SINGLE };
    const uids: string[] = [];
    for (const name of ['a', 'b']) uids.push((await owner.tell('acquire', { ...small, name })).uid);
    const rest = await manager.acquire({ cpu: 3, ...SINGLE });
    await manager.acquire({ cpu: 2, name: 'filler', ...SINGLE });
    await rest.release();
    for (const uid of uids) await owner.tell('listenToMoves', { uid, waits: true });
    asker.ask('acquire', { ...ASKER, cpu: 5 }).catch(() => {});
    await changed(manager, () => isAnnounced(manager));
    await expect.poll(() => owner.tell('events')).toHaveLength(1);
    await owner.tell('letGo');
    // The first has moved; the second is asked.
    await expect.poll(() => owner.tell('events')).toHaveLength(3);
    expect(manager.grants()).toHaveLength(4);
    await asker.kill();
    await changed(manager, () => !isAnnounced(manager) && manager.grants().length === 3);
    expect(namesOf(manager)).toEqual(['a', 'b', 'filler']);
    expect(reservedOf(manager)).toEqual([1, 1]);
    expect(manager.freeCpus().size).toBe(6);
  });

  it('leaves a sound record whichever step it dies at', async () => {
    const shim = (variables: Record<string, string>) => [
      'env',
      ...Object.entries(variables).map(([name, value]) => `${name}=${value}`),
    ];
    const scene = async (fail?: { nth: number; when: 'before' }) => {
      const stateDir = makeStateDir();
      const [manager, owner] = [await open(stateDir), await agentIn(stateDir)];
      await fragment(manager, owner);
      const trace = fail ? undefined : join(stateDir, '..', 'steps');
      const variables = shimEnvironment({ folder: realpathSync(stateDir), fail, trace });
      const asker = await agentIn(stateDir, 4, shim(variables)).catch(() => undefined);
      return { stateDir, manager, owner, asker };
    };
    const whole = await scene();
    const steps = () =>
      readFileSync(join(whole.stateDir, '..', 'steps'), 'utf8')
        .split('\n')
        .filter((line) => line !== '' && JSON.parse(line).op !== 'close').length;
    const opened = steps();
    await whole.asker!.tell('acquire', ASKER);
    const all = steps();
    await whole.asker!.kill();
    await whole.owner.kill();
    const stride = budget({ all: 1, usual: 10 });
    let deaths = 0;
    for (let nth = opened + 1; nth <= all; nth += stride) {
      const { manager, owner, asker } = await scene({ nth, when: 'before' });
      const answer = await asker?.ask('acquire', ASKER).catch(() => undefined);
      if (answer) await asker!.kill();
      else deaths++;
      // All its grants and kept room are free by then.
      const next = await manager.acquire({ ...ASKER, name: 'next' });
      expect(namesOf(manager), `step ${nth} of ${all}, ${JSON.stringify(answer)}`).toEqual([
        'filler',
        'mover',
        'next',
      ]);
      expect(cpusByName(manager)).toEqual({ mover: '6-7', filler: '4-5', next: '0-2' });
      expect(reservedOf(manager)).toEqual([1, 2]);
      await next.release();
      await owner.kill();
    }
    expect(deaths).toBeGreaterThan(10 / stride);
  });
});

describe('two processes with requests at the same time', () => {
  it('are both admitted if there is room for both, again and again', async () => {
    for (let round = 0; round < budget({ all: 30, usual: 3 }); round++) {
      const stateDir = makeStateDir();
      const manager = await open(stateDir, 10);
      const agents = [await agentIn(stateDir, 10), await agentIn(stateDir, 10), await agentIn(stateDir, 10)];
      const [owner, first, second] = agents as [Agent, Agent, Agent];
      // Node 0: four movable grants of one CPU, and six free ones; node 1: three fixed, seven free.
      for (const name of ['a', 'b', 'c', 'd'])
        await owner.tell('acquire', { cpu: 1, memory: '1Gi', name, movable: true, ...SINGLE });
      const rest = await manager.acquire({ cpu: 6, ...SINGLE });
      await manager.acquire({ cpu: 3, name: 'filler', ...SINGLE });
      await rest.release();
      const answers = await Promise.all([
        first.ask('acquire', { cpu: 7, name: 'x', ...SINGLE }),
        second.ask('acquire', { cpu: 5, name: 'y', ...SINGLE }),
      ]);
      expect(answers.map(({ error }) => error?.message)).toEqual([undefined, undefined]);
      expect(namesOf(manager)).toEqual(['a', 'b', 'c', 'd', 'filler', 'x', 'y']);
      const held = manager.grants().flatMap(({ cpus }) => cpus.toArray());
      expect(new Set(held).size).toBe(held.length);
      for (const agent of agents) await agent.kill();
    }
  });
});
