import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openManager } from '../../lib/manager.js';
import { newFolder, numalign } from './numalign.js';

// A grant that outlives this test's manager, as a service manager would make one.
async function persistentGrant(stateDir: string, name: string) {
  const manager = await openManager({ stateDir, reservedSystemCPUs: '0' });
  const grant = await manager.acquire({ cpu: 1, name, owner: 'persistent' });
  manager.close();
  return grant;
}

describe('numalign status', { timeout: 30_000 }, () => {
  it('says that nothing is granted where there is no folder, and makes none', async () => {
    const folder = join(newFolder(), 'state');
    const { code, stdout } = await numalign(['status', '--state-dir', folder]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: `no state in ${folder}: nothing is granted\n` });
    expect(existsSync(folder)).toBe(false);
    const json = JSON.parse((await numalign(['status', '--state-dir', folder, '--output', 'json'])).stdout);
    expect(json).toEqual({
      stateDir: folder,
      scope: 'private',
      exists: false,
      grants: [],
      archives: [],
      quarantine: [],
    });
  });

  it('shows settings, shared pool, free CPUs and a table of grants, and changes nothing', async () => {
    const folder = newFolder();
    const { id, cpus } = await persistentGrant(folder, 'gateway');
    const before = readFileSync(join(folder, 'state.json'), 'utf8');
    const { code, stdout } = await numalign(['status', '--state-dir', folder]);
    expect(code).toBe(0);
    expect(stdout).toContain(`${folder} (private), generation 2`);
    expect(stdout).toMatch(/^reserved: +0 \(shared, never exclusive\)$/m);
    expect(stdout).toMatch(/^shared: +0/m);
    expect(stdout).toMatch(/^ID {8}NAME {5}CPUS {2}NUMA {2}OWNER {7}STATE {2}ENFORCEMENT {2}SINCE$/m);
    expect(stdout).toMatch(
      new RegExp(
        `^${id.slice(0, 8)} {2}gateway {2}${cpus} +0 +persistent +alive +recorded +\\d{4}-\\d\\d-\\d\\d .*Z$`,
        'm',
      ),
    );
    expect(readFileSync(join(folder, 'state.json'), 'utf8')).toBe(before);
  });

  it('gives the same as JSON', async () => {
    const folder = newFolder();
    const { id, cpus } = await persistentGrant(folder, 'gateway');
    const status = JSON.parse((await numalign(['status', '--state-dir', folder, '--output', 'json'])).stdout);
    expect(status).toMatchObject({
      stateDir: folder,
      scope: 'private',
      exists: true,
      generation: 2,
      settings: { managesAll: true, reservedSystemCPUs: '0', strictCPUReservation: false },
      grants: [
        {
          id,
          name: 'gateway',
          cpus: cpus.toString(),
          numaNodes: '0',
          alive: true,
          enforcement: 'recorded',
          owner: { kind: 'persistent', pid: null },
        },
      ],
    });
  });

  it('refuses a damaged state, and a folder that is none', async () => {
    const folder = newFolder();
    await persistentGrant(folder, 'gateway');
    const file = join(folder, 'state.json');
    writeFileSync(file, readFileSync(file, 'utf8').replace('gateway', 'getaway'));
    const damaged = await numalign(['status', '--state-dir', folder]);
    expect(damaged.code).toBe(1);
    expect(damaged.stderr).toContain('[ERR_STATE_CORRUPT]');
    const none = await numalign(['status', '--state-dir', file]);
    expect(none.code).toBe(1);
    expect(none.stderr).toContain('[ERR_STATE_FOLDER]');
  });
});

describe('numalign release', { timeout: 30_000 }, () => {
  it.each([
    ['its id', (id: string) => id],
    ['the first characters of its id', (id: string) => id.slice(0, 4)],
    ['its name', () => 'gateway'],
  ])('releases a grant by %s', async (_, text) => {
    const folder = newFolder();
    const { id, cpus } = await persistentGrant(folder, 'gateway');
    const { code, stdout } = await numalign(['release', text(id), '--state-dir', folder]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: `released grant ${id} (gateway): CPUs ${cpus}\n` });
    expect((await numalign(['status', '--state-dir', folder])).stdout).toContain('No grants.');
  });

  it('lists what there is where the grant is unknown', async () => {
    const folder = newFolder();
    const { id } = await persistentGrant(folder, 'gateway');
    const { code, stderr } = await numalign(['release', id.slice(0, 3), '--state-dir', folder]);
    expect(code).toBe(1);
    expect(stderr).toContain(`there is ${id} (gateway) [ERR_UNKNOWN_GRANT]`);
  });

  it('makes no folder where there is none', async () => {
    const folder = join(newFolder(), 'state');
    const { code, stderr } = await numalign(['release', 'gateway', '--state-dir', folder]);
    expect(code).toBe(1);
    expect(stderr).toContain('nothing is granted [ERR_UNKNOWN_GRANT]');
    expect(existsSync(folder)).toBe(false);
  });

  it('does not take CPUs from a process that runs on them', async () => {
    const folder = newFolder();
    const manager = await openManager({ stateDir: folder, reservedSystemCPUs: '0' });
    const grant = await manager.acquire({ cpu: 1, name: 'mine' });
    const { code, stderr } = await numalign(['release', 'mine', '--state-dir', folder]);
    expect(code).toBe(1);
    expect(stderr).toContain('[ERR_OWNER_ALIVE]');
    await grant.release();
    manager.close();
  });
});

describe('numalign configure', { timeout: 30_000 }, () => {
  it('changes settings and prints them before and after', async () => {
    const folder = newFolder();
    const first = await numalign([
      'configure',
      '--managed',
      '0-1',
      '--reserved',
      '0',
      '--strict',
      '--state-dir',
      folder,
    ]);
    expect(first.code).toBe(0);
    expect(first.stdout).toMatch(/BEFORE +AFTER\n/);
    expect(first.stdout).toMatch(/^managed: +all \(0.*\) +0-1$/m);
    expect(first.stdout).toMatch(/^reserved: +none +0 \(strictly: not shared\)$/m);
    expect(first.stdout).toMatch(/^strict: +no +yes$/m);
    const second = await numalign([
      'configure',
      '--managed',
      'all',
      '--reserved',
      'none',
      '--no-strict',
      '--state-dir',
      folder,
    ]);
    expect(second.stdout).toMatch(/^managed: +0-1 +all \(0.*\)$/m);
    expect(second.stdout).toMatch(/^strict: +yes +no$/m);
  });

  it('reserves memory, which status then shows beside what is free and held', async () => {
    const folder = newFolder();
    const reserve = ['--reserved-memory', '0:memory=64Mi', '--state-dir', folder];
    const first = await numalign(['configure', ...reserve]);
    expect(first.code).toBe(0);
    expect(first.stdout).toMatch(/^reserved memory: +none +64 MiB on 0$/m);
    const manager = await openManager({ stateDir: folder, devices: { 'example.com/nic': [{ id: 'eth0' }] } });
    const limits = { cpu: '500m', memory: '32Mi', 'example.com/nic': 1 };
    const pod = await manager.admit({ name: 'web', containers: [{ name: 'main', limits }] });
    const { stdout } = await numalign(['status', '--state-dir', folder]);
    expect(stdout).toMatch(/^reserved memory: +64 MiB on 0$/m);
    expect(stdout).toMatch(/^free memory: .* on 0/m);
    expect(stdout).toMatch(/MEMORY AND DEVICES/);
    expect(stdout).toMatch(/ web .* 32 MiB on 0, example.com\/nic eth0 /);
    await pod.release();
    manager.close();
    for (const bad of ['0', '0:memory', 'x:memory=1', '0:cpu=1', '0:memory=-1']) {
      expect((await numalign(['configure', '--reserved-memory', bad, '--state-dir', folder])).code).toBe(2);
    }
    const none = await numalign(['configure', '--reserved-memory', 'none', '--state-dir', folder]);
    expect(none.stdout).toMatch(/^reserved memory: +64 MiB on 0 +none$/m);
  });

  it('refuses CPUs that the machine does not have, and an order to change nothing', async () => {
    const folder = newFolder();
    const beyond = await numalign(['configure', '--reserved', '60000', '--state-dir', folder]);
    expect(beyond.code).toBe(1);
    expect(beyond.stderr).toContain('[ERR_INVALID_OPTION]');
    const nothing = await numalign(['configure', '--state-dir', folder]);
    expect(nothing.code).toBe(2);
    expect(nothing.stderr).toContain('nothing to change');
  });
});
