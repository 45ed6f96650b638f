// needs: agents
// State folders are open as long as this process needs them.
import { spawnSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { native } from '../../lib/base/native.js';
import { discover } from '../../lib/entries/topology.js';
import { type Manager, type ManagerOptions, openManager } from '../../lib/index.js';
import { Agent } from '../support/agent.js';
import { budget } from '../support/budget.mjs';
import { errorOf } from '../support/error-of.js';
import { openFilesIn } from '../support/open-files.js';
import { makeStateDir } from '../support/state-dir.js';

const SYNTHETIC = 'numa:2(memory=8GiB) core:8 pu:1';
const dist = (file: string) => new URL(`../../dist/${file}`, import.meta.url);
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

async function open(stateDir: string, options: ManagerOptions = {}): Promise<Manager> {
  const manager = await openManager({
    topology: await discover({ synthetic: SYNTHETIC }),
    stateDir,
    ...options,
  });
  onTestFinished(() => manager.close());
  return manager;
}

const openHere = async (stateDir: string) =>
  open(stateDir, { topology: await discover(), sharedMember: false });

describe('a state folder', () => {
  it('is open while a manager is open, and closed with the last', async () => {
    const stateDir = makeStateDir();
    const [first, second] = [await open(stateDir), await open(stateDir)];
    first.close();
    expect(openFilesIn(stateDir)).not.toEqual([]);
    second.close();
    expect(openFilesIn(stateDir)).toEqual([]);
  });

  it('is closed again if the opening fails', async () => {
    const stateDir = makeStateDir();
    (await open(stateDir, { reservedSystemCPUs: '0' })).close();
    const error = await errorOf(() => open(stateDir, { reservedSystemCPUs: '1' }));
    expect(error).toMatchObject({ code: 'ERR_CONFIG_CONFLICT' });
    expect(openFilesIn(stateDir)).toEqual([]);
  });

  it('stays open for a grant of this process, which its owner’s lock shows to others', async () => {
    const stateDir = makeStateDir();
    const manager = await open(stateDir);
    const grant = await manager.acquire({ cpu: 2 });
    manager.close();
    const agent = new Agent();
    await agent.tell('open', { stateDir, simulate: SYNTHETIC });
    const request = { cpu: 14 };
    expect((await agent.ask('acquire', request)).error?.code).toBe('ERR_INSUFFICIENT_CPUS');
    await grant.release();
    expect(openFilesIn(stateDir)).toEqual([]);
    await agent.tell('acquire', request);
  });

  it('is the same state when it is opened again beside a grant of this process', async () => {
    const stateDir = makeStateDir();
    const manager = await open(stateDir);
    const grant = await manager.acquire({ cpu: 2 });
    manager.close();
    const again = await open(stateDir);
    expect(again.grants()).toMatchObject([{ uid: grant.uid, alive: true }]);
    await again.release(grant.uid);
    again.close();
    expect(openFilesIn(stateDir)).toEqual([]);
  });

  it('that was closed opens again with its grants', async () => {
    const stateDir = makeStateDir();
    const manager = await open(stateDir);
    const { uid } = await manager.acquire({ cpu: 2, owner: 'persistent' });
    manager.close();
    const again = await open(stateDir);
    expect(again.grants()).toMatchObject([{ uid }]);
    await again.acquire({ cpu: 2 });
    expect(again.generation()).toBe(3);
  });

  it('is opened by the handle of a persistent grant for as long as a call takes', async () => {
    const stateDir = makeStateDir();
    const manager = await open(stateDir);
    const grant = await manager.acquire({ cpu: 2, owner: 'persistent' });
    manager.close();
    expect(grant.cpus.size).toBe(2);
    await nextTurn();
    expect(openFilesIn(stateDir)).toEqual([]);
    await grant.resize({ cpu: 3, noticeMs: 0 });
    expect(grant.cpus.size).toBe(3);
    await grant.release();
    await nextTurn();
    expect(openFilesIn(stateDir)).toEqual([]);
    expect((await open(stateDir)).grants()).toEqual([]);
  });

  it('that was removed is not made again by a handle that only reads', async () => {
    const stateDir = makeStateDir();
    const manager = await open(stateDir);
    const grant = await manager.acquire({ cpu: 2, owner: 'persistent' });
    manager.close();
    rmSync(stateDir, { recursive: true });
    expect(grant.cpus.size).toBe(2);
    expect(await errorOf(() => grant.audit())).toMatchObject({ code: 'ERR_STATE_FOLDER' });
    expect(existsSync(stateDir)).toBe(false);
  });

  it('stays open for an announced resize', async () => {
    const stateDir = makeStateDir();
    const manager = await open(stateDir);
    const grant = await manager.acquire({ cpu: 2, owner: 'persistent' });
    const resized = grant.resize({ cpu: 3, noticeMs: 1000 });
    await expect.poll(() => grant.upcoming?.size).toBe(3);
    manager.close();
    // No other process calls it off: the process that announced it lives.
    const agent = new Agent();
    await agent.tell('open', { stateDir, simulate: SYNTHETIC });
    await agent.tell('acquire', { cpu: 1 });
    await resized;
    expect(grant.cpus.size).toBe(3);
    await nextTurn();
    expect(openFilesIn(stateDir)).toEqual([]);
  });

  it('stays open for the child of a grant until it ends', async () => {
    const stateDir = makeStateDir();
    const manager = await openHere(stateDir);
    const grant = await manager.acquire({ cpu: 1, owner: 'persistent' });
    const child = grant.spawn('sleep', ['1000']);
    const ended = new Promise((resolve) => child.once('exit', resolve));
    onTestFinished(() => void child.kill('SIGKILL'));
    manager.close();
    const again = await openHere(stateDir);
    expect(await errorOf(() => again.release(grant.uid))).toMatchObject({ code: 'ERR_CHILD_ALIVE' });
    again.close();
    expect(openFilesIn(stateDir)).not.toEqual([]);
    child.kill('SIGKILL');
    await ended;
    await nextTurn();
    expect(openFilesIn(stateDir)).toEqual([]);
    await grant.release();
  });

  it('is not forgotten while an audit runs', async () => {
    const stateDir = makeStateDir();
    const manager = await openHere(stateDir);
    const { uid } = await manager.acquire({ cpu: 1, owner: 'persistent' });
    const { since } = manager.audit(uid, { foreign: false });
    manager.close();
    const again = await openHere(stateDir);
    expect(again.audit(uid, { foreign: false }).since).toBe(since);
    await again.release(uid);
  });

  it('may be one of thousands, with few descriptors', { timeout: 300_000 }, () => {
    const program = `
      import { rmSync } from 'node:fs';
      import { openManager } from '${dist('index.js')}';
      import { discover } from '${dist('entries/topology.js')}';
      const topology = await discover({ synthetic: '${SYNTHETIC}' });
      for (let i = 0; i < ${budget({ all: 2000, usual: 300 })}; i++) {
        const stateDir = process.argv[1] + i;
        const manager = await openManager({ topology, stateDir });
        const grant = await manager.acquire({ cpu: 1 });
        await grant.release();
        manager.close();
        rmSync(stateDir, { recursive: true });
      }`;
    const node = [process.execPath, '--input-type=module', '-e', program, makeStateDir('/dev/shm')];
    const { status, stderr } = spawnSync('bash', ['-c', 'ulimit -n 48; exec "$@"', 'bash', ...node]);
    expect(stderr.toString()).toBe('');
    expect(status).toBe(0);
  });
});

describe('a folder of the addon that is closed', () => {
  it('returns nothing until it stands for another', () => {
    const folder = native.Folder.open('/tmp', false, 0o700, -1);
    folder.close();
    folder.close();
    expect(folder.isCurrent()).toBe(false);
    expect(() => folder.list()).toThrow(expect.objectContaining({ errnoName: 'EBADF' }));
    folder.become(native.Folder.open('/tmp', false, 0o700, -1));
    expect(folder.isCurrent()).toBe(true);
  });

  it('leaves another that stands for the same one open', () => {
    const folder = native.Folder.open('/tmp', false, 0o700, -1);
    const other = native.Folder.open('/', false, 0o700, -1);
    other.become(folder);
    folder.close();
    expect(other.isCurrent()).toBe(true);
  });
});
