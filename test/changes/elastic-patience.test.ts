// needs: agents
// How elastic grants treat others that do not answer, or do not take their share.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { livingState } from '../../lib/admission/on-record.js';
import { notMoved } from '../../lib/changes/answer.js';
import { settledGrants, shrinkGrants } from '../../lib/changes/shrink-grants.js';
import { DIAGNOSTICS_CHANNELS } from '../../lib/entries/diagnostics.js';
import { type Manager, NumalignError } from '../../lib/index.js';
import { changed } from '../support/changed.js';
import { agentOn, isAnnounced, sizesOf } from '../support/changing-grants.js';
import { errorOf } from '../support/error-of.js';
import { hostOf, podOf } from '../support/moves.mjs';
import { simulate } from '../support/simulated.js';
import { makeStateDir } from '../support/state-dir.js';

const SIMULATE = 'package:2 core:6 pu:1';
const range = (name: string) => ({ cpu: { min: 1, max: 12 }, name, movable: { notice: 300 } });

const open = (stateDir: string, options: object = {}) => simulate(SIMULATE, { stateDir, ...options });

const agentIn = (stateDir: string) => agentOn(SIMULATE, stateDir);

const settled = (manager: Manager, isIt: (sizes: Record<string, number>) => boolean) =>
  changed(manager, () => !isAnnounced(manager) && isIt(sizesOf(manager)));

/** From now on a minute passes for this process in every tenth of a second. */
function speedTimeUp(): void {
  const { now } = performance;
  const start = now.call(performance);
  const spy = vi
    .spyOn(performance, 'now')
    .mockImplementation(() => start + (now.call(performance) - start) * 600);
  onTestFinished(() => spy.mockRestore());
}

/** After an announced move is off again. */
async function askedInVain(manager: Manager): Promise<void> {
  await changed(manager, () => isAnnounced(manager));
  await changed(manager, () => !isAnnounced(manager));
}

/** A grant far below its share, which has asked a grant of a stopped process in vain. */
async function refused() {
  const stateDir = makeStateDir();
  const [manager, owner] = [await open(stateDir), await agentIn(stateDir)];
  const other = await manager.acquire({ cpu: 2, name: 'other' });
  await owner.tell('acquire', range('stopped'));
  owner.process.kill('SIGSTOP');
  await other.release();
  const last = await manager.acquire({ cpu: 1, name: 'last' });
  await manager.acquire(range('small'));
  await askedInVain(manager);
  expect(sizesOf(manager)).toEqual({ stopped: 9, last: 1, small: 1 });
  return { manager, owner, last };
}

describe('an elastic grant after a refusal', () => {
  it('takes free CPUs at once', async () => {
    const { manager, last } = await refused();
    // Until it has nothing more to try, which no event shows.
    await delay(1500);
    await last.release();
    await settled(manager, ({ small }) => small === 2);
  });

  it('asks the refusing grant again a minute later', async () => {
    const { manager, owner, last } = await refused();
    owner.process.kill('SIGCONT');
    await owner.tell('events');
    speedTimeUp();
    await last.release();
    await settled(manager, ({ small, stopped }) => small! + stopped! === 11 && small! >= 5);
  });
});

describe('a waiting request after a refusal', () => {
  it('asks the grant again a minute later', async () => {
    const stateDir = makeStateDir();
    const [manager, owner] = [await open(stateDir), await agentIn(stateDir)];
    await owner.tell('acquire', range('stopped'));
    owner.process.kill('SIGSTOP');
    const waiting = manager.acquire({ cpu: 4, name: 'waiting', wait: true });
    await askedInVain(manager);
    owner.process.kill('SIGCONT');
    speedTimeUp();
    await waiting;
    expect(sizesOf(manager)).toEqual({ stopped: 7, waiting: 4 });
  });
});

describe('a grant of a range that does not take its share', () => {
  it('leaves it to another after some time, and gets it back when its process continues', async () => {
    const stateDir = makeStateDir();
    const [manager, owner] = [await open(stateDir), await agentIn(stateDir)];
    const other = await manager.acquire({ cpu: 8, name: 'other' });
    await owner.tell('acquire', { cpu: { min: 1, max: 12 }, name: 'idle' });
    await manager.acquire({ cpu: { min: 1, max: 12 }, name: 'small' });
    expect(sizesOf(manager)).toEqual({ other: 8, idle: 2, small: 1 });
    owner.process.kill('SIGSTOP');
    await other.release();
    // Its own share at first.
    await settled(manager, ({ small }) => small === 5 || small === 6);
    await settled(manager, ({ small }) => small === 9);
    owner.process.kill('SIGCONT');
    await settled(manager, ({ idle }) => idle! >= 5);
  });
});

describe('a growth that an error has stopped', () => {
  it('is tried again once the error is over, without a change on record', async () => {
    const stateDir = makeStateDir();
    const manager = await open(stateDir, { lockTimeoutMs: 50 });
    const grant = await manager.acquire(range('elastic'));
    const [other, holder] = [await open(stateDir), hostOf(manager).ledger];
    const number = await other.acquire({ cpu: 4 });
    const failed = new Promise((resolve) => {
      subscribe(DIAGNOSTICS_CHANNELS.error, resolve);
      onTestFinished(() => void unsubscribe(DIAGNOSTICS_CHANNELS.error, resolve));
    });
    await number.release();
    await holder.transact({ lockTimeoutMs: 10_000, totalOn: () => 0 }, () => failed);
    await settled(manager, () => grant.cpus.size === 11);
  });

  it('is tried again as soon after the last of several errors as after the first', async () => {
    const stateDir = makeStateDir();
    const [manager, other] = [await open(stateDir), await open(stateDir)];
    const grant = await manager.acquire(range('elastic'));
    const { ledger } = hostOf(manager);
    const real = ledger.transact.bind(ledger);
    let pauseMs = 0;
    for (let times = 1; times <= 4; times++) {
      const number = await other.acquire({ cpu: 4 });
      await number.release();
      const spy = vi.spyOn(ledger, 'transact').mockImplementationOnce(async () => {
        const failure = performance.now();
        spy.mockImplementationOnce((...options: Parameters<typeof real>) => {
          pauseMs = performance.now() - failure;
          return real(...options) as never;
        });
        throw new NumalignError('ERR_SYSCALL', 'the disk is full');
      });
      await settled(manager, () => grant.cpus.size === 11);
      spy.mockRestore();
    }
    // 400 ms after one failure; 3200 after four in a row.
    expect(pauseMs).toBeGreaterThan(0);
    expect(pauseMs).toBeLessThan(3000);
  });
});

describe('a grant of a range', () => {
  it.each([
    ['has refused', 'refused', true],
    ['has not answered', 'no-answer', true],
    ['has no room', 'no-room', false],
    ['has ended', 'ended', false],
    ['is called off', 'called-off', false],
  ] as const)(
    'that does not shrink because it %s (%s) counts as refusing: %s',
    async (_, reason, isRefusal) => {
      const manager = await open(makeStateDir());
      const { uid } = await manager.acquire(range('elastic'));
      const host = hostOf(manager);
      const answer = vi.spyOn(host.ledger, 'transact').mockRejectedValueOnce(notMoved(uid, reason, reason));
      onTestFinished(() => answer.mockRestore());
      const refused = await shrinkGrants(host, [podOf(host, uid)], { for: 'asker' });
      expect(refused).toEqual(isRefusal ? [uid] : []);
    },
  );
});

describe('grants of ranges that may make room later', () => {
  it('are not awaited again if none has settled within its notice', async () => {
    const manager = await open(makeStateDir());
    const grant = await manager.acquire(range('elastic'));
    await grant.transfer();
    const host = hostOf(manager);
    expect(await settledGrants(host, livingState(host), undefined)).toBe(false);
    expect(await errorOf(() => manager.acquire({ cpu: 4 }))).toMatchObject({ code: 'ERR_INSUFFICIENT_CPUS' });
  });

  it('are not awaited if they are at their minimum', async () => {
    const manager = await open(makeStateDir());
    const grant = await manager.acquire({ cpu: { min: 4, max: 4 }, movable: { notice: 3_600_000 } });
    await grant.transfer();
    const host = hostOf(manager);
    expect(await settledGrants(host, livingState(host), undefined)).toBe(false);
  });

  it('are not awaited if they have settled since the decision on the request', async () => {
    const manager = await open(makeStateDir());
    const grant = await manager.acquire(range('elastic'));
    const host = hostOf(manager);
    const transfer = await grant.transfer();
    const seen = livingState(host);
    await transfer.cancel();
    expect(await settledGrants(host, seen, undefined)).toBe(true);
  });
});
