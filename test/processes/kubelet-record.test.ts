// needs: agents
// The kubelet's allocations, kept on record by one process and left alone by others.
import { existsSync, readdirSync, readFileSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Agent } from '../support/agent.js';
import { view } from '../support/simulated.js';
import { makeStateDir } from '../support/state-dir.js';

const MACHINE = 'core:8 pu:1';
const pods = (cpus: string, name = 'web') => [
  { namespace: 'default', name, containers: [{ name: 'main', cpus }] },
];

async function agentOn(stateDir: string): Promise<Agent> {
  const agent = new Agent();
  // Newer versions have files of a newer format anyway.
  await agent.tell('open', { simulate: MACHINE, stateDir, kubeletVersion: 'v1.36' });
  return agent;
}

const ownersIn = (stateDir: string) => readdirSync(join(stateDir, 'owners'));
const versionOf = (stateDir: string) =>
  JSON.parse(readFileSync(join(stateDir, 'state.json'), 'utf8').split('\n')[0]!).version;

describe('the keeper of the record', () => {
  it('is killed: the record stays, and the next one keeps it', async () => {
    const stateDir = makeStateDir();
    const [keeper, other] = [await agentOn(stateDir), await agentOn(stateDir)];
    const { since } = await keeper.tell('recordKubelet', pods('2-6'));
    expect(await other.tell('kubelet')).toMatchObject({ keeper: { pid: keeper.process.pid, alive: true } });
    const refused = await other.ask('recordKubelet', pods('1'));
    expect(refused.error).toMatchObject({
      code: 'ERR_OWNER_ALIVE',
      message: expect.stringContaining(`process ${keeper.process.pid} `),
    });
    await keeper.kill();
    expect(await other.tell('kubelet')).toMatchObject({ cpus: '2-6', keeper: { alive: false } });
    expect((await other.ask('acquire', { cpu: 3 })).error?.code).toBe('ERR_INSUFFICIENT_CPUS');
    expect((await other.tell('acquire', { cpu: 2 })).cpus).toBe('0-1');
    const taken = await other.tell('recordKubelet', pods('2-6'));
    expect(taken).toMatchObject({ keeper: { pid: other.process.pid, alive: true } });
    expect(taken.since > since).toBe(true);
    expect(await other.tell('recordKubelet', null)).toBeNull();
    expect(await other.tell('sharedPool')).toBe('2-7');
  });

  it('counts as dead for read-only managers', async () => {
    const stateDir = makeStateDir();
    const keeper = await agentOn(stateDir);
    await keeper.tell('recordKubelet', pods('2-6'));
    const looker = await view(MACHINE, stateDir);
    expect([looker.kubelet(), looker.status().kubelet]).toMatchObject(
      Array(2).fill({ keeper: { alive: true } }),
    );
    await keeper.kill();
    expect([looker.kubelet(), looker.status().kubelet]).toMatchObject(
      Array(2).fill({ keeper: { alive: false } }),
    );
  });

  it('may have grants of its own, under one lock', async () => {
    const stateDir = makeStateDir();
    const [keeper, other] = [await agentOn(stateDir), await agentOn(stateDir)];
    const { uid } = await keeper.tell('acquire', { cpu: 1 });
    await keeper.tell('recordKubelet', pods('2-6'));
    await keeper.tell('release', { uid });
    expect(ownersIn(stateDir)).toHaveLength(1);
    expect(await other.tell('kubelet')).toMatchObject({ keeper: { alive: true } });
  });

  it('restores its file if another program removes it', async () => {
    const stateDir = makeStateDir();
    const [keeper, other] = [await agentOn(stateDir), await agentOn(stateDir)];
    await keeper.tell('recordKubelet', pods('2-6'));
    const [name] = ownersIn(stateDir);
    const file = join(stateDir, 'owners', name!);
    unlinkSync(file);
    await expect.poll(() => existsSync(file)).toBe(true);
    expect(await other.tell('kubelet')).toMatchObject({ keeper: { alive: true } });
    expect(await other.tell('acquire', { cpu: 1 })).toMatchObject({ cpus: '0' });
  });
});

describe('a state with the kubelet’s record', () => {
  it('has a version that older packages refuse, and theirs again once the record is empty', async () => {
    const stateDir = makeStateDir();
    const keeper = await agentOn(stateDir);
    expect(versionOf(stateDir)).toBe(2);
    await keeper.tell('recordKubelet', pods('2-6'));
    const [owner] = ownersIn(stateDir);
    const ownerVersion = () =>
      JSON.parse(readFileSync(join(stateDir, 'owners', owner!), 'utf8').split('\n')[0]!).version;
    expect([versionOf(stateDir), ownerVersion()]).toEqual([3, 3]);
    await keeper.tell('acquire', { cpu: 1 });
    expect(versionOf(stateDir)).toBe(3);
    await keeper.tell('recordKubelet', null);
    expect([versionOf(stateDir), ownerVersion()]).toEqual([2, 2]);
  });

  it('is followed line by line by processes that have read it', async () => {
    const stateDir = makeStateDir();
    const [keeper, other] = [await agentOn(stateDir), await agentOn(stateDir)];
    for (const cpus of ['1-2', '3', '3,5', '7']) {
      await keeper.tell('recordKubelet', pods(cpus));
      expect((await other.tell('kubelet')).cpus).toBe(cpus);
      const grant = await other.tell('acquire', { cpu: 1 });
      expect(grant.cpus).toBe('0');
      await other.tell('release', { uid: grant.uid });
    }
    const lines = readFileSync(join(stateDir, 'state.json'), 'utf8').trimEnd().split('\n');
    expect(lines.length).toBeGreaterThan(8);
  });

  it.each<[string, (stateDir: string) => void]>([
    ['its file is lost', (dir) => unlinkSync(join(dir, 'state.json'))],
    [
      'both its files are lost',
      (dir) => {
        for (const name of ['state.json', 'state.copy.json']) unlinkSync(join(dir, name));
      },
    ],
    [
      'both its files are damaged',
      (dir) => {
        for (const name of ['state.json', 'state.copy.json']) writeFileSync(join(dir, name), 'x');
      },
    ],
    [
      'its last line is lost, and the note of how far it went',
      (dir) => {
        unlinkSync(join(dir, 'lock'));
        for (const name of ['state.json', 'state.copy.json']) {
          const lines = readFileSync(join(dir, name), 'utf8').trimEnd().split('\n');
          if (lines.length > 2) writeFileSync(join(dir, name), `${lines.slice(0, -1).join('\n')}\n`);
        }
      },
    ],
    [
      'its last lines are lost',
      (dir) => {
        for (const name of ['state.json', 'state.copy.json']) {
          const lines = readFileSync(join(dir, name), 'utf8').trimEnd().split('\n');
          writeFileSync(join(dir, name), `${lines.slice(0, 2).join('\n')}\n`);
        }
      },
    ],
  ])('is recovered from the file of its keeper if %s', async (_, damage) => {
    const stateDir = makeStateDir();
    const keeper = await agentOn(stateDir);
    await keeper.tell('recordKubelet', pods('1-2'));
    await keeper.tell('recordKubelet', pods('4-6'));
    damage(stateDir);
    // It has seen nothing of the state before.
    const other = await agentOn(stateDir);
    expect(await other.tell('kubelet')).toMatchObject({
      cpus: '4-6',
      keeper: { pid: keeper.process.pid, alive: true },
    });
    expect((await other.tell('acquire', { cpu: 4 })).cpus).toBe('0-3');
    expect((await keeper.tell('kubelet')).cpus).toBe('4-6');
  });

  it('whose keeper has ended is recovered by a process that has read it', async () => {
    const stateDir = makeStateDir();
    const [keeper, other] = [await agentOn(stateDir), await agentOn(stateDir)];
    await keeper.tell('recordKubelet', pods('1-6'));
    await other.tell('sharedPool');
    await keeper.kill();
    for (const name of ['state.json', 'state.copy.json']) rmSync(join(stateDir, name));
    expect((await other.tell('acquire', { cpu: 1 })).cpus).toBe('0');
    expect(await other.tell('kubelet')).toMatchObject({ cpus: '1-6', keeper: { alive: false } });
  });
});
