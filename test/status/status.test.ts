// needs: machine
// The whole content of a state at one moment, as managers return it.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { discover } from '../../lib/entries/topology.js';
import { openManager } from '../../lib/index.js';
import { Agent } from '../support/agent.js';
import { thrownBy } from '../support/error-of.js';
import { openFilesIn } from '../support/open-files.js';
import { simulate, view } from '../support/simulated.js';
import { makeStateDir } from '../support/state-dir.js';

const SYNTHETIC = 'numa:2 core:2 pu:2';

describe('the status of a state', () => {
  it('agrees with the manager’s single answers', async () => {
    const manager = await simulate(SYNTHETIC, { reservedSystemCPUs: '0' });
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

  it('is the same for read-only managers', async () => {
    const stateDir = makeStateDir();
    const manager = await simulate(SYNTHETIC, { stateDir, reservedSystemCPUs: '0' });
    await manager.acquire({ cpu: 1 });
    expect((await view(SYNTHETIC, stateDir)).status()).toEqual(manager.status());
  });

  it('has the containers of each grant', async () => {
    const manager = await simulate(SYNTHETIC, { reservedSystemCPUs: '0' });
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

  it('distinguishes an unused folder from one without grants', async () => {
    const stateDir = makeStateDir();
    const looking = await view(SYNTHETIC, stateDir);
    expect(looking.status()).toMatchObject({ exists: false, generation: 0, grants: [], stateDir });
    await simulate(SYNTHETIC, { stateDir, reservedSystemCPUs: '0' });
    expect(looking.status()).toMatchObject({ exists: true, generation: 1, grants: [], stateDir });
  });

  it('is also that of a state in memory', async () => {
    const manager = await openManager({ topology: await discover({ synthetic: SYNTHETIC }) });
    onTestFinished(() => manager.close());
    const { uid } = await manager.acquire({ cpu: 1 });
    expect(manager.status()).toMatchObject({
      ...{ stateDir: '', scope: 'memory', exists: true },
      grants: [{ uid, alive: true }],
    });
    expect(manager.keptFiles()).toEqual({ archives: [], quarantine: [] });
  });

  it('distinguishes grants of dead and living owners', async () => {
    const stateDir = makeStateDir();
    const agent = new Agent();
    await agent.tell('open', { stateDir, simulate: SYNTHETIC });
    await agent.tell('acquire', { cpu: 1 });
    const looking = await view(SYNTHETIC, stateDir);
    expect(looking.status().grants).toMatchObject([{ alive: true }]);
    await agent.kill();
    expect(looking.status().grants).toMatchObject([{ alive: false }]);
  });

  it('reports the readable part of a damaged file, and the damage', async () => {
    const stateDir = makeStateDir();
    const { uid } = await (await simulate(SYNTHETIC, { stateDir, reservedSystemCPUs: '0' })).acquire({
      cpu: 1,
    });
    writeFileSync(join(stateDir, 'state.json'), 'nonsense');
    const { damage, grants } = (await view(SYNTHETIC, stateDir)).status();
    expect(damage).toBe('the state file is damaged: it does not begin like the state file');
    expect(grants).toMatchObject([{ uid, alive: true }]);
  });

  it('finds damage that leaves the file as long and as old as it was', async () => {
    const stateDir = makeStateDir();
    await (await simulate(SYNTHETIC, { stateDir, reservedSystemCPUs: '0' })).acquire({ cpu: 1 });
    const looking = await view(SYNTHETIC, stateDir);
    expect(looking.status().damage).toBeNull();
    const [file, original] = [join(stateDir, 'state.json'), join(stateDir, 'original')];
    execFileSync('cp', ['--preserve=timestamps', file, original]);
    writeFileSync(file, readFileSync(file, 'utf8').replace('"writtenAt"', '"writtenat"'));
    execFileSync('touch', [`--reference=${original}`, file]);
    expect(looking.status().damage).toMatch(/^the state file is damaged: /);
  });

  it('leaves no file open', async () => {
    const stateDir = makeStateDir();
    await simulate(SYNTHETIC, { stateDir, reservedSystemCPUs: '0' });
    mkdirSync(join(stateDir, 'quarantine'), { recursive: true });
    const looking = await view(SYNTHETIC, stateDir);
    const open = () => readdirSync('/proc/self/fd').length;
    const [before, files] = [open(), openFilesIn(stateDir)];
    for (let i = 0; i < 10; i++) {
      looking.status();
      looking.keptFiles();
    }
    expect(openFilesIn(stateDir)).toEqual(files);
    // What earlier tests have left may close meanwhile.
    expect(open()).toBeLessThanOrEqual(before);
  });

  it('is unavailable once the manager is closed', async () => {
    const looking = await view(SYNTHETIC, makeStateDir());
    looking.close();
    expect(thrownBy(() => looking.status())).toMatchObject({ code: 'ERR_MANAGER_CLOSED' });
    expect(thrownBy(() => looking.keptFiles())).toMatchObject({ code: 'ERR_MANAGER_CLOSED' });
  });
});

describe('other files of a state folder', () => {
  it('are listed: quarantined files by name, archives by content', async () => {
    const stateDir = makeStateDir();
    await simulate(SYNTHETIC, { stateDir, reservedSystemCPUs: '0' });
    for (const [folder, name] of [
      ['quarantine', '2026-01-02-b'],
      ['quarantine', '2026-01-01-a'],
      ['archive', 'no-state.json'],
    ] as const) {
      mkdirSync(join(stateDir, folder), { recursive: true });
      writeFileSync(join(stateDir, folder, name), 'nonsense');
    }
    expect((await view(SYNTHETIC, stateDir)).keptFiles()).toEqual({
      archives: [{ file: 'archive/no-state.json', generation: null, writtenAt: null, lapsed: [] }],
      quarantine: ['quarantine/2026-01-01-a', 'quarantine/2026-01-02-b'],
    });
  });
});
