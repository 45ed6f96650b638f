// needs: folders
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CpuSet, openManager } from 'numalign';
import { discover } from 'numalign/topology';
import { describe, expect, it } from 'vitest';
import { rewrite } from '../../../test/conformance/state-file.js';
import { hierarchies, makeCgroup, populate } from '../../../test/support/owner-cgroups.js';
import { newFolder, numalign, start } from './numalign.js';
import { newFile, pod } from './pods.js';

// A grant that outlives this test's manager, like one of a service manager.
async function persistentGrant(stateDir: string, name: string) {
  const manager = await openManager({ stateDir, reservedSystemCPUs: '0' });
  const grant = await manager.acquire({ cpu: 1, name, owner: 'persistent' });
  manager.close();
  return grant;
}

async function persistentPod(stateDir: string) {
  const manager = await openManager({ stateDir, reservedSystemCPUs: '0' });
  const containers = [{ name: 'log', resources: { limits: { cpu: '100m' } } }];
  const pod = await manager.admit({ containers }, { owner: 'persistent' });
  manager.close();
  return pod;
}

describe('numalign status', () => {
  it('says that nothing is granted if there is no folder, and makes none', async () => {
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
      agent: null,
    });
  });

  it('says that one of the free CPUs stays shared if no other is shared', async () => {
    const folder = newFolder();
    await numalign(['configure', '--managed', '0-1', '--state-dir', folder]);
    const freeLine = async () =>
      /^free: +(.*)$/m.exec((await numalign(['status', '--state-dir', folder])).stdout)?.[1];
    expect(await freeLine()).toBe('CPUs 0-1 (one of them stays shared)');
    await numalign(['admit', '-f', newFile(pod('one', 1)), '--state-dir', folder]);
    expect(await freeLine()).toBe('CPU 1 (it stays shared)');
  });

  it('shows settings, shared pool, free CPUs and a table of grants, and changes nothing', async () => {
    const folder = newFolder();
    const { uid, cpus } = await persistentGrant(folder, 'gateway');
    const before = readFileSync(join(folder, 'state.json'), 'utf8');
    const { code, stdout } = await numalign(['status', '--state-dir', folder]);
    expect(code).toBe(0);
    expect(stdout).toContain(`${folder} (private), generation 2`);
    expect(stdout).toMatch(/^reserved: +CPU 0 \(shared, never exclusive\)$/m);
    expect(stdout).toMatch(/^shared: +CPUs? 0/m);
    // Another CPU is shared.
    expect(stdout).not.toContain('stays shared');
    expect(stdout).toMatch(/^ID {8}NAME {5}CPUS {2}NUMA {2}OWNER {7}STATE {2}ENFORCEMENT {2}SINCE$/m);
    expect(stdout).toMatch(
      new RegExp(
        `^${uid.slice(0, 8)} {2}gateway {2}${cpus} +0 +persistent +alive +members +\\d{4}-\\d\\d-\\d\\d .*Z$`,
        'm',
      ),
    );
    expect(readFileSync(join(folder, 'state.json'), 'utf8')).toBe(before);
  });

  it('prints the same as JSON', async () => {
    const folder = newFolder();
    const { uid, cpus } = await persistentGrant(folder, 'gateway');
    const status = JSON.parse((await numalign(['status', '--state-dir', folder, '--output', 'json'])).stdout);
    expect(status).toMatchObject({
      stateDir: folder,
      scope: 'private',
      exists: true,
      generation: 2,
      settings: { managesAll: true, reservedSystemCPUs: '0', strictCPUReservation: false },
      grants: [
        {
          uid,
          name: 'gateway',
          cpus: cpus.toString(),
          numaNodes: '0',
          alive: true,
          enforcement: 'members',
          owner: { kind: 'persistent', pid: null },
        },
      ],
    });
  });

  it.each(hierarchies())('says that a grant belongs to a cgroup (%s)', async (_, mount) => {
    const folder = newFolder();
    const { uid } = await persistentGrant(folder, 'gateway');
    const cgroup = makeCgroup(mount);
    populate(cgroup);
    using manager = await openManager({ stateDir: folder });
    await manager.pod(uid).setOwner({ cgroup });
    const { stdout } = await numalign(['status', '--state-dir', folder]);
    expect(stdout).toMatch(new RegExp(`^${uid.slice(0, 8)} {2}gateway .* cgroup +alive `, 'm'));
    const json = JSON.parse((await numalign(['status', '--state-dir', folder, '--output', 'json'])).stdout);
    expect(json.grants).toMatchObject([{ uid, owner: { kind: 'cgroup', cgroup } }]);
  });

  it('shows the readable part of a damaged state, says so, and changes nothing', async () => {
    const folder = newFolder();
    const { uid } = await persistentGrant(folder, 'gateway');
    const file = join(folder, 'state.json');
    const damaged = readFileSync(file, 'utf8').replace('gateway', 'getaway');
    writeFileSync(file, damaged);
    const { code, stdout } = await numalign(['status', '--state-dir', folder]);
    expect({ code, stdout }).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('The state file cannot be used: the state file is damaged:'),
    });
    expect(stdout).toContain('gateway');
    const { stdout: json } = await numalign(['status', '--output', 'json', '--state-dir', folder]);
    expect(JSON.parse(json)).toMatchObject({
      damage: expect.stringContaining('damaged'),
      refusal: null,
      grants: [{ uid }],
    });
    expect(readFileSync(file, 'utf8')).toBe(damaged);
  });

  it('refuses a file in place of a folder', async () => {
    const folder = newFolder();
    await persistentGrant(folder, 'gateway');
    const none = await numalign(['status', '--state-dir', join(folder, 'state.json')]);
    expect(none.code).toBe(1);
    expect(none.stderr).toContain('[ERR_STATE_FOLDER]');
  });
});

describe('numalign status, after changes of the machine or the settings', () => {
  const status = async (folder: string, output: 'text' | 'json') =>
    (await numalign(['status', '--state-dir', folder, '--output', output])).stdout;

  it('shows flags of grants below them, and as JSON', async () => {
    const folder = newFolder();
    const { uid, cpus } = await persistentGrant(folder, 'gateway');
    const configured = await numalign(['configure', '--reserved', `${cpus}`, '--state-dir', folder]);
    const line = `  ${uid.slice(0, 8)} gateway: CPU ${cpus} is now reserved for the system\n`;
    expect(configured.stdout).toContain(`\nflagged: kept until released\n${line}`);
    const text = await status(folder, 'text');
    expect(text).toMatch(/persistent +alive, flagged +members/);
    expect(text).toContain(`\nflagged: kept until released\n${line}`);
    expect(JSON.parse(await status(folder, 'json')).grants).toMatchObject([
      { uid, flags: [{ code: 'CPU_RESERVED', cpus: `${cpus}` }] },
    ]);
  });

  it('numalign configure prints the settings before and after as JSON, like status, and the new flags', async () => {
    const folder = newFolder();
    const { uid, cpus } = await persistentGrant(folder, 'gateway');
    const configured = ['configure', '--reserved', `${cpus}`, '--state-dir', folder, '--output', 'json'];
    const { before, after, flagged } = JSON.parse((await numalign(configured)).stdout);
    expect(after).toEqual({ ...before, reservedSystemCPUs: `${cpus}` });
    expect(JSON.parse(await status(folder, 'json')).settings).toEqual(after);
    expect(flagged).toMatchObject([{ uid, name: 'gateway', flags: [{ code: 'CPU_RESERVED' }] }]);
  });

  it('shows CPUs that are offline or elsewhere now, and settings that name missing CPUs', async () => {
    const folder = newFolder();
    const { uid } = await persistentGrant(folder, 'gateway');
    const online = CpuSet.from((await discover()).cpus);
    // Like the state of a machine that had more CPUs.
    rewrite(folder, (state) => ({
      ...state,
      pods: state.pods.map((pod) => ({
        ...pod,
        containers: pod.containers.map((c) => ({ ...c, cpus: '1000-1001' })),
      })),
      settings: { ...(state.settings as object), reservedSystemCPUs: '0,1002' },
      cpus: [1000, 1001].map((cpu) => [cpu, cpu, 1, 0]),
    }));
    const text = await status(folder, 'text');
    expect(text).toContain('warning: reservedSystemCPUs names CPU 1002, not online at present\n');
    expect(text).toContain(`${uid.slice(0, 8)} gateway: CPUs 1000-1001 are offline\n`);
    const json = JSON.parse(await status(folder, 'json'));
    expect(json.warnings).toMatchObject([{ code: 'SETTING_UNMET', option: 'reservedSystemCPUs' }]);
    expect(json.free).toBe(String(online.difference(CpuSet.of(0))));
  });

  it('lists persistent grants that ended with an earlier boot, before and after it is archived', async () => {
    const folder = newFolder();
    const { uid, cpus } = await persistentGrant(folder, 'gateway');
    rewrite(folder, (state) => ({ ...state, bootId: 'another-boot' }));
    const before = await status(folder, 'text');
    expect(before).toContain('The state is of an earlier boot: its grants are void.\n');
    expect(before).toContain(`Persistent ones among them, not granted again: gateway (${uid}): ${cpus}\n`);
    expect(existsSync(join(folder, 'archive'))).toBe(false);

    const { stderr } = await numalign(['configure', '--no-strict', '--state-dir', folder]);
    expect(stderr).toMatch(
      /^numalign: warning: the state was of an earlier boot and is kept as archive\/another-boot-/,
    );
    const after = await status(folder, 'text');
    expect(after).toContain('No grants.');
    const heading = 'states of earlier boots, with the persistent grants that ended with them:';
    expect(after).toMatch(
      new RegExp(`^${heading}\n  archive/another-boot-3.json, .*Z: gateway \\(${uid}\\): ${cpus}$`, 'm'),
    );
    const { archives, lapsed } = JSON.parse(await status(folder, 'json'));
    expect(lapsed).toEqual([]);
    expect(archives).toMatchObject([
      {
        file: 'archive/another-boot-3.json',
        generation: 3,
        lapsed: [{ uid, name: 'gateway', cpus: `${cpus}` }],
      },
    ]);
  });

  it('lists quarantined states, and unreadable archives, whatever is in them', async () => {
    const folder = newFolder();
    await persistentGrant(folder, 'gateway');
    for (const [sub, name] of [
      ['quarantine', '1-state.json'],
      ['quarantine', '2-state.json'],
      ['quarantine', '3-state.json'],
      ['quarantine', '4-\u001bstate.json'],
      ['archive', 'odd.json'],
    ] as const) {
      mkdirSync(join(folder, sub), { recursive: true });
      writeFileSync(join(folder, sub, name), 'nothing');
    }
    const text = await status(folder, 'text');
    expect(text).toContain(
      'put aside as damaged:\n  quarantine/4-?state.json\n  quarantine/3-state.json\n  quarantine/2-state.json\n  and 1 more\n',
    );
    expect(text).toContain('  archive/odd.json, not readable\n');
    const { archives, quarantine } = JSON.parse(await status(folder, 'json'));
    expect(archives).toEqual([{ file: 'archive/odd.json', generation: null, writtenAt: null, lapsed: [] }]);
    expect(quarantine).toHaveLength(4);
  });
});

describe('numalign release', () => {
  it.each([
    ['its id', (id: string) => id],
    ['the first characters of its id', (id: string) => id.slice(0, 4)],
    ['its name', () => 'gateway'],
  ])('releases a grant by %s', async (_, text) => {
    const folder = newFolder();
    const { uid, cpus } = await persistentGrant(folder, 'gateway');
    const { code, stdout } = await numalign(['release', text(uid), '--state-dir', folder]);
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: `released grant ${uid} (gateway): ${cpus.size === 1 ? 'CPU' : 'CPUs'} ${cpus}\n`,
    });
    expect((await numalign(['status', '--state-dir', folder])).stdout).toContain('No grants.');
  });

  it('prints the released grants as JSON', async () => {
    const folder = newFolder();
    const { uid, cpus } = await persistentGrant(folder, 'gateway');
    const { code, stdout } = await numalign([
      'release',
      'gateway',
      '--state-dir',
      folder,
      '--output',
      'json',
    ]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      stateDir: folder,
      grant: uid,
      name: 'gateway',
      cpus: `${cpus}`,
      alive: true,
    });
  });

  it('lists the grants if the requested one is unknown', async () => {
    const folder = newFolder();
    const { uid } = await persistentGrant(folder, 'gateway');
    const { code, stderr } = await numalign(['release', uid.slice(0, 3), '--state-dir', folder]);
    expect(code).toBe(1);
    expect(stderr).toContain(`there is ${uid} (gateway) [ERR_UNKNOWN_GRANT]`);
  });

  it('makes no folder if there is none', async () => {
    const folder = join(newFolder(), 'state');
    const { code, stderr } = await numalign(['release', 'gateway', '--state-dir', folder]);
    expect(code).toBe(1);
    expect(stderr).toContain('nothing is granted [ERR_UNKNOWN_GRANT]');
    expect(existsSync(folder)).toBe(false);
  });

  it('releases with --dead the grants of dead owners, and nothing else', async () => {
    const folder = newFolder();
    const dead = ['release', '--dead', '--state-dir', folder];
    const grants = async () =>
      JSON.parse((await numalign(['status', '--state-dir', folder, '--output', 'json'])).stdout).grants;
    const kept = await persistentPod(folder);
    // Not a command of `numalign run`, whose reaper would free its CPU.
    const program = `
      import { openManager } from 'numalign';
      const manager = await openManager({ stateDir: process.argv[1], reservedSystemCPUs: '0' });
      await manager.acquire({ cpu: 1, name: 'job' });
      process.kill(process.pid, 'SIGKILL');`;
    spawnSync(process.execPath, ['--input-type=module', '--eval', program, folder]);
    const left = (await grants()).find(({ name }: { name: string }) => name === 'job');
    const released = await numalign(dead);
    expect(released).toMatchObject({ code: 0, stderr: '' });
    expect(released.stdout).toBe(`released grant ${left.uid} (job): CPU ${left.cpus}; its owner was dead\n`);
    expect(await grants()).toMatchObject([{ uid: kept.uid, alive: true }]);
    const { stdout } = await numalign([...dead, '--output', 'json']);
    expect(JSON.parse(stdout)).toEqual({ stateDir: folder, grants: [] });
  });

  it('makes no folder with --dead if there is nothing to release', async () => {
    const folder = join(newFolder(), 'state');
    expect(await numalign(['release', '--dead', '--state-dir', folder])).toMatchObject({
      code: 0,
      stdout: '',
    });
    expect(existsSync(folder)).toBe(false);
  });

  it.each([
    [[], /missing required argument 'id'/],
    [['--dead', 'gateway'], /'gateway' cannot be used with option '--dead'/],
  ])('takes either a grant or --dead: %s', async (args, message) => {
    const { code, stderr } = await numalign(['release', ...args]);
    expect([code, stderr]).toEqual([2, expect.stringMatching(message)]);
  });

  it('does not take CPUs from a process that runs on them', async () => {
    const folder = newFolder();
    const manager = await openManager({ stateDir: folder, reservedSystemCPUs: '0' });
    const grant = await manager.acquire({ cpu: 1, name: 'mine' });
    const { code, stderr } = await start(['release', 'mine', '--state-dir', folder]).ended;
    expect(code).toBe(1);
    expect(stderr).toContain('[ERR_OWNER_ALIVE]');
    const attached = await start(['attach', 'mine', String(process.pid), '--state-dir', folder]).ended;
    expect(attached.code).toBe(1);
    expect(attached.stderr).toMatch(/: only that process starts others on its CPUs \[ERR_OWNER_ALIVE\]\n$/);
    await grant.release();
    manager.close();
  });
});

describe('numalign configure', () => {
  it('warns if its settings leave no CPU to grant', async () => {
    const folder = newFolder();
    const warningOf = async (...args: string[]) =>
      (await numalign(['configure', ...args, '--state-dir', folder])).stderr;
    const warning = 'numalign: warning: with these settings no CPU can be granted: ';
    expect(await warningOf('--managed', '0-1', '--reserved', '0-1')).toBe(
      `${warning}all that are managed (0-1) are reserved\n`,
    );
    expect(await warningOf('--reserved', '0')).toBe('');
    expect(await warningOf('--managed', '0', '--reserved', 'none')).toBe(
      `${warning}CPU 0 is all that is shared, and stays so\n`,
    );
  });

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
    expect(first.stdout).toMatch(/^managed: +all \(0.*\) +CPUs 0-1$/m);
    expect(first.stdout).toMatch(/^reserved: +none +CPU 0 \(strictly: not shared\)$/m);
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
    expect(second.stdout).toMatch(/^managed: +CPUs 0-1 +all \(0.*\)$/m);
    expect(second.stdout).toMatch(/^strict: +yes +no$/m);
  });

  it('reserves memory, which status shows beside free and held memory', async () => {
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

  it('refuses CPUs that the machine does not have, and a call without a change', async () => {
    const folder = newFolder();
    const beyond = await numalign(['configure', '--reserved', '60000', '--state-dir', folder]);
    expect(beyond.code).toBe(1);
    expect(beyond.stderr).toContain('[ERR_INVALID_OPTION]');
    const nothing = await numalign(['configure', '--state-dir', folder]);
    expect(nothing.code).toBe(2);
    expect(nothing.stderr).toContain('nothing to change');
  });
});
