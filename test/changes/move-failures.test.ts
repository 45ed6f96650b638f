// needs: agents
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { type Grant, type Manager, NumalignError } from '../../lib/index.js';
import { agentOn } from '../support/changing-grants.js';
import { GI, machineOf } from '../support/memory-machine.js';
import { conductLate, hostOf, move, release } from '../support/moves.mjs';
import { simulate } from '../support/simulated.js';

const MACHINE = 'package:2 [numa(memory=8GiB)] core:4 pu:1';

const open = async () => simulate(await machineOf([0, 1].map(() => ({ cpus: 4, memory: 8 * GI }))));

/** The transactions of a move, in order. */
const TRANSACTIONS = { announcement: 1, begin: 2, end: 3 };

/** One of the next transactions fails, before or after its commit. */
function failTransaction(manager: Manager, nth: number, when: 'before' | 'after'): void {
  const { ledger } = hostOf(manager);
  const real = ledger.transact.bind(ledger);
  let count = 0;
  const spy = vi.spyOn(ledger, 'transact').mockImplementation(async (...options: Parameters<typeof real>) => {
    const fails = ++count === nth;
    const answer = fails && when === 'before' ? undefined : await real(...options);
    if (fails) throw new NumalignError('ERR_SYSCALL', 'the disk is full');
    return answer;
  });
  onTestFinished(() => spy.mockRestore());
}

describe.each(['process', 'persistent'] as const)('a move of a grant of a %s owner', (owner) => {
  it.each([
    ['cannot give up what it leaves', 'end', 'before'],
    ['gets no confirmation of its beginning', 'begin', 'after'],
  ] as const)('is done in the end where it %s at first', async (_, step, when) => {
    const manager = await open();
    const request = { cpu: 2, memory: '2Gi', policy: 'single-numa-node', movable: true } as const;
    const { uid } = await manager.acquire({ ...request, owner });
    failTransaction(manager, TRANSACTIONS[step], when);
    await move(manager, uid, { cpus: '4-5', node: 1 }, { for: 'asker' });
    const [grant] = manager.grants();
    expect(String(grant!.cpus)).toBe('4-5');
    expect(grant!.upcoming).toBeNull();
    await release(manager, 'asker');
    expect(manager.memory().map(({ reserved }) => reserved / GI)).toEqual([0, 2]);
    await manager.release(uid);
  });
});

/** Another process asks the owner, whose listener never answers, and dies. */
async function askAndDie(manager: Manager, grant: Grant): Promise<void> {
  const asker = await agentIn(manager);
  const hears = new Promise<void>((resolve) =>
    grant.once('move', (event) => {
      event.waitUntil(new Promise(() => {}));
      resolve();
    }),
  );
  asker.ask('move', { uid: grant.uid, to: { cpus: '4-5', node: 1 }, for: 'asker' }).catch(() => {});
  await hears;
  await asker.kill();
}

const agentIn = ({ stateDir }: Manager) => agentOn(MACHINE, stateDir);

/** What the listeners of a grant hear, in order. */
function heardOf(grant: Grant): string[] {
  const heard: string[] = [];
  grant.on('move', ({ cpus }) => heard.push(`to ${cpus}`));
  grant.on('moveEnd', ({ isMoved }) => heard.push(isMoved ? 'moved' : 'stays'));
  return heard;
}

describe('a listener', () => {
  it('learns the end of a move before the next one begins', async () => {
    const manager = await open();
    const grant = await manager.acquire({ cpu: 2, movable: { notice: '1m' } });
    const heard = heardOf(grant);
    const next = await agentIn(manager);
    await askAndDie(manager, grant);
    await next.tell('move', { uid: grant.uid, to: { cpus: '6-7', node: 1 }, for: 'next' });
    await expect.poll(() => heard).toEqual(['to 4-5', 'stays', 'to 6-7', 'moved']);
  });

  it('hears nothing of a move that was called off before its turn', async () => {
    const manager = await open();
    const grant = await manager.acquire({ cpu: 2, movable: true });
    const heard = heardOf(grant);
    await conductLate(manager, grant.uid, { cpus: '4-5', node: 1 });
    expect(heard).toEqual([]);
  });
});

describe('a resize', () => {
  it('continues if a move that was called off before ends meanwhile', async () => {
    const manager = await open();
    const grant = await manager.acquire({ cpu: 2, movable: { notice: '1m' } });
    const heard = heardOf(grant);
    await askAndDie(manager, grant);
    await grant.resize({ cpu: 3, noticeMs: 50 });
    expect(heard).toEqual(['to 4-5', 'stays']);
    expect(grant.cpus.size).toBe(3);
    expect(grant.upcoming).toBeNull();
  });
});
