// The whole of what a state says at one moment, as managers answer it.
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { discover } from '../../lib/entries/topology.js';
import { type ManagerView, openManager } from '../../lib/index.js';
import { Agent } from '../support/agent.js';
import { thrownBy } from '../support/error-of.js';
import { makeStateDir } from '../support/state-dir.js';

const SYNTHETIC = 'numa:2 core:2 pu:2';
const simulated = () => discover({ synthetic: SYNTHETIC });

const managers: ManagerView[] = [];
afterEach(() => {
  for (const manager of managers.splice(0)) manager.close();
});

async function viewOf(stateDir: string) {
  const view = await openManager({ stateDir, topology: await simulated(), readOnly: true });
  managers.push(view);
  return view;
}

async function managerOf(stateDir?: string) {
  const topology = await simulated();
  const options = { topology, reservedSystemCPUs: '0', strictCPUReservation: true };
  const manager = await openManager({ ...options, ...(stateDir !== undefined && { stateDir }) });
  managers.push(manager);
  return manager;
}

describe('the status of a state', () => {
  it('agrees with what the manager answers to each question', async () => {
    const manager = await managerOf(makeStateDir());
    await manager.acquire({ cpu: 2, name: 'gateway' });
    const status = manager.status();
    expect(status).toMatchObject({
      ...{ stateDir: manager.stateDir, scope: manager.scope, generation: manager.generation() },
      settings: { ...manager.settings(), managesAll: true, isolatedByKernel: true },
      sharedPool: manager.sharedPool(),
      free: manager.freeCpus(),
      freeIsolated: manager.freeIsolatedCpus(),
      memory: manager.memory(),
      grants: manager.grants(),
      ...{ exists: true, isOfEarlierBoot: false, damage: null, refusal: null },
    });
    expect(String(status.settings.reservedSystemCPUs)).toBe('0');
  });

  it('is the same to those who only look', async () => {
    const stateDir = makeStateDir();
    const manager = await managerOf(stateDir);
    await manager.acquire({ cpu: 1 });
    expect((await viewOf(stateDir)).status()).toEqual(manager.status());
  });

  it('has the containers of each grant', async () => {
    const manager = await managerOf(makeStateDir());
    const pod = await manager.admit({
      containers: [
        { name: 'main', limits: { cpu: 2, memory: '1Mi' } },
        { name: 'log', limits: { cpu: '500m', memory: '1Mi' } },
      ],
    });
    const [grant] = manager.status().grants;
    expect(grant!.containers).toEqual(pod.containers);
    expect(grant).toMatchObject({ uid: pod.uid, survivors: [], cgroups: [] });
  });

  it('tells a folder that nobody has used from one without grants', async () => {
    const stateDir = makeStateDir();
    const view = await viewOf(stateDir);
    expect(view.status()).toMatchObject({ exists: false, generation: 0, grants: [], stateDir });
    await managerOf(stateDir);
    expect(view.status()).toMatchObject({ exists: true, generation: 1, grants: [], stateDir });
  });

  it('is also that of a state in memory', async () => {
    const manager = await managerOf();
    const { uid } = await manager.acquire({ cpu: 1 });
    expect(manager.status()).toMatchObject({
      ...{ stateDir: '', scope: 'memory', exists: true },
      grants: [{ uid, alive: true }],
    });
    expect(manager.keptFiles()).toEqual({ archives: [], quarantine: [] });
  });

  it('tells the grants of the dead from those of the living', async () => {
    const stateDir = makeStateDir();
    const agent = new Agent();
    await agent.tell('open', { stateDir, simulate: SYNTHETIC });
    await agent.tell('acquire', { cpu: 1 });
    const view = await viewOf(stateDir);
    expect(view.status().grants).toMatchObject([{ alive: true }]);
    await agent.kill();
    expect(view.status().grants).toMatchObject([{ alive: false }]);
  });

  it('tells what is left of a damaged file, and what is wrong with it', async () => {
    const stateDir = makeStateDir();
    const { uid } = await (await managerOf(stateDir)).acquire({ cpu: 1 });
    writeFileSync(join(stateDir, 'state.json'), 'nonsense');
    const { damage, grants } = (await viewOf(stateDir)).status();
    expect(damage).toBe('the state file is damaged: it does not begin like the state file');
    expect(grants).toMatchObject([{ uid, alive: true }]);
  });

  it('leaves no file open', async () => {
    const stateDir = makeStateDir();
    await managerOf(stateDir);
    mkdirSync(join(stateDir, 'quarantine'), { recursive: true });
    const view = await viewOf(stateDir);
    const open = () => readdirSync('/proc/self/fd').length;
    const before = open();
    for (let i = 0; i < 10; i++) {
      view.status();
      view.keptFiles();
    }
    expect(open()).toBe(before);
  });

  it('is not told once the manager is closed', async () => {
    const view = await viewOf(makeStateDir());
    view.close();
    expect(thrownBy(() => view.status())).toMatchObject({ code: 'ERR_MANAGER_CLOSED' });
    expect(thrownBy(() => view.keptFiles())).toMatchObject({ code: 'ERR_MANAGER_CLOSED' });
  });
});

describe('what a state folder keeps beside the state', () => {
  it('is listed: files that were put aside by name, archives by what is in them', async () => {
    const stateDir = makeStateDir();
    await managerOf(stateDir);
    for (const [folder, name] of [
      ['quarantine', '2026-01-02-b'],
      ['quarantine', '2026-01-01-a'],
      ['archive', 'no-state.json'],
    ] as const) {
      mkdirSync(join(stateDir, folder), { recursive: true });
      writeFileSync(join(stateDir, folder, name), 'nonsense');
    }
    expect((await viewOf(stateDir)).keptFiles()).toEqual({
      archives: [{ file: 'archive/no-state.json', generation: null, writtenAt: null, lapsed: [] }],
      quarantine: ['quarantine/2026-01-01-a', 'quarantine/2026-01-02-b'],
    });
  });
});
