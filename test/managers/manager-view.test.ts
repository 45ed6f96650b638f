// needs: agents
// Read-only managers: they answer like others, change nothing, and need only the right to read.
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, lstatSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, expectTypeOf, it, onTestFinished } from 'vitest';
import { discover } from '../../lib/entries/topology.js';
import { CpuSet, Manager, type ManagerView, openManager, type StateChange } from '../../lib/index.js';
import { Agent } from '../support/agent.js';
import { errorOf, thrownBy } from '../support/error-of.js';
import { fragment, openTwoNodes } from '../support/fragmented.js';
import { openFilesIn } from '../support/open-files.js';
import { simulate, view } from '../support/simulated.js';
import { makeStateDir } from '../support/state-dir.js';
import { AGENT, canBeStranger, forStrangers } from '../support/strangers.js';

/**
 * Everything that stat and read return for a folder and its files: names, modes, owners, times,
 * bytes.
 */
function snapshot(folder: string): string[] {
  const names = ['.', ...readdirSync(folder, { recursive: true }).map(String).sort()];
  return names.map((name) => {
    const { mode, uid, gid, mtimeNs, ctimeNs, ino } = lstatSync(join(folder, name), { bigint: true });
    return [name, mode, uid, gid, mtimeNs, ctimeNs, ino].join(' ');
  });
}

const SYNTHETIC = 'numa:2 core:2 pu:2';

describe('a read-only manager', () => {
  it('answers like a manager', async () => {
    const stateDir = makeStateDir();
    const manager = await simulate(SYNTHETIC, { stateDir, reservedSystemCPUs: '0' });
    const grant = await manager.acquire({ cpu: 2, name: 'gateway' });
    const looking = await view(SYNTHETIC, stateDir);
    const answers = (each: ManagerView) => ({
      ...{ scope: each.scope, stateDir: each.stateDir, generation: each.generation() },
      ...{ settings: each.settings(), memory: each.memory(), refusal: each.refusal(), grants: each.grants() },
      ...{ sharedPool: each.sharedPool(), freeCpus: each.freeCpus(), freeIsolated: each.freeIsolatedCpus() },
      ...{ placement: each.placement },
      ...{ members: each.sharedMembers(), kubelet: each.exportKubelet() },
    });
    expect(answers(looking)).toEqual(answers(manager));
    expect(looking.grants()).toMatchObject([{ uid: grant.uid, name: 'gateway', alive: true }]);
    await grant.release();
    expect(answers(looking)).toEqual(answers(manager));
    expect(looking.grants()).toEqual([]);
  });

  it('returns the same for one grant as among all', async () => {
    const stateDir = makeStateDir();
    const manager = await simulate(SYNTHETIC, { stateDir });
    for (const name of ['gateway', 'index']) await manager.acquire({ cpu: 2, name });
    const looking = await view(SYNTHETIC, stateDir);
    const all = looking.grants();
    expect(all).toHaveLength(2);
    expect(all.map(({ uid }) => looking.grantInfo(uid))).toEqual(all);
    expect(() => looking.grantInfo('x')).toThrow(expect.objectContaining({ code: 'ERR_UNKNOWN_GRANT' }));
  });

  it('plans like an admission now', async () => {
    const stateDir = makeStateDir();
    const manager = await simulate(SYNTHETIC, { stateDir, reservedSystemCPUs: '0' });
    await manager.acquire({ cpu: 2 });
    const looking = await view(SYNTHETIC, stateDir);
    const resources = { requests: { cpu: '2', memory: '1Mi' }, limits: { cpu: '2', memory: '1Mi' } };
    const pod = { name: 'job', containers: [{ name: 'main', ...resources }] };
    const planned = looking.plan(pod);
    expect(planned).toEqual(manager.plan(pod));
    const { containers } = await manager.admit(pod);
    expect(planned.containers.map(({ cpus }) => cpus)).toEqual(containers.map(({ cpus }) => cpus));
    expect(looking.plan({ containers: [{ name: 'big', limits: { cpu: 8, memory: '1Mi' } }] })).toMatchObject({
      admitted: false,
      code: 'ERR_INSUFFICIENT_CPUS',
    });
  });

  it('says what a manager would defragment', async () => {
    const manager = await openTwoNodes({});
    await fragment(manager);
    const looking = await view(manager.topology, manager.stateDir);
    const planned = await looking.defragment({ dryRun: true });
    expect(planned).toMatchObject({ dryRun: true, moves: [{ name: 'mover' }] });
    expect(planned).toEqual(await manager.defragment({ dryRun: true }));
  });

  it('refuses to defragment', async () => {
    const looking = await view(SYNTHETIC, makeStateDir());
    const error = await errorOf(() => looking.defragment({} as { dryRun: true }));
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', details: { option: 'dryRun', value: false } });
  });

  it('has no method that changes anything', async () => {
    const looking = await view(SYNTHETIC, makeStateDir());
    expectTypeOf(looking).toEqualTypeOf<ManagerView>();
    expect(looking).not.toBeInstanceOf(Manager);
    const verbs = [
      'acquire',
      'admit',
      'release',
      'configure',
      'use',
      'takeOver',
      'grant',
      'pod',
      'reconcile',
    ];
    const others = ['addSharedMember', 'removeSharedMember', 'importKubelet'];
    expect([...verbs, ...others].filter((name) => name in looking)).toEqual([]);
    expect([...verbs, ...others].filter((name) => !(name in Manager.prototype))).toEqual([]);
  });

  it('changes nothing in the folder, whatever is called', async () => {
    const stateDir = makeStateDir();
    const owner = new Agent();
    await owner.tell('open', { stateDir, reservedSystemCPUs: '' });
    const before = snapshot(stateDir);
    const looking = await openManager({ stateDir, readOnly: true });
    onTestFinished(() => looking.close());
    looking.on('change', () => {});
    looking.plan({ containers: [{ name: 'main', limits: { cpu: 1, memory: '1Mi' } }] });
    expect([looking.generation(), looking.grants(), looking.sharedPool().isEmpty]).toEqual([1, [], false]);
    expect(looking.sharedMembers()).toMatchObject([{ kind: 'process', pid: owner.process.pid }]);
    looking.exportKubelet();
    looking.close();
    expect(snapshot(stateDir)).toEqual(before);
  });

  it('makes no folder if there is none, and answers like for the first opener', async () => {
    const stateDir = makeStateDir();
    const looking = await openManager({
      ...{ stateDir, topology: await discover({ synthetic: SYNTHETIC }), reservedSystemCPUs: '0-1' },
      readOnly: true,
    });
    onTestFinished(() => looking.close());
    expect([looking.generation(), looking.grants(), looking.sharedMembers(), looking.refusal()]).toEqual([
      0,
      [],
      [],
      null,
    ]);
    expect([looking.sharedPool(), looking.freeCpus()].map(String)).toEqual(['0-7', '2-7']);
    expect(existsSync(stateDir)).toBe(false);
  });

  it('sees a folder that is made later, and one that replaces it', async () => {
    const stateDir = makeStateDir();
    const looking = await view(SYNTHETIC, stateDir);
    const agent = new Agent();
    await agent.tell('open', { stateDir, simulate: SYNTHETIC });
    await agent.tell('acquire', { cpu: 1 });
    expect(looking.grants()).toMatchObject([{ alive: true }]);
    await agent.kill();
    expect(looking.grants()).toMatchObject([{ alive: false }]);
    execFileSync('rm', ['-r', stateDir]);
    expect([looking.generation(), looking.grants()]).toEqual([0, []]);
    const next = new Agent();
    await next.tell('open', { stateDir, simulate: SYNTHETIC });
    const { uid } = await next.tell('acquire', { cpu: 2 });
    expect(looking.grants()).toMatchObject([{ uid, alive: true }]);
  });

  it('gets every commit, and takes nothing back', async () => {
    const stateDir = makeStateDir();
    const agent = new Agent();
    await agent.tell('open', { stateDir, simulate: SYNTHETIC });
    const looking = await view(SYNTHETIC, stateDir);
    const changes: StateChange[] = [];
    looking.on('change', (change) => changes.push(change));
    const { uid } = await agent.tell('acquire', { cpu: 1 });
    await expect.poll(() => changes.flatMap(({ added }) => added)).toMatchObject([{ uid }]);
    const generation = looking.generation();
    await agent.kill();
    await expect.poll(() => looking.grants()).toMatchObject([{ uid, alive: false }]);
    await new Promise((resolve) => setTimeout(resolve, 1500));
    expect([looking.generation(), looking.grants().length]).toEqual([generation, 1]);
  });

  it('neither waits for the lock, nor makes others wait for it', async () => {
    const stateDir = makeStateDir();
    const manager = await simulate(SYNTHETIC, { stateDir, reservedSystemCPUs: '0' });
    const looking = await view(SYNTHETIC, stateDir);
    let generation: number | undefined;
    manager.addHintProvider({
      name: 'example',
      // Called under the lock.
      hints: () => {
        generation = looking.generation();
        return {};
      },
      allocate: () => {},
      release: () => {},
    });
    await manager.acquire({ cpu: 1 });
    expect(generation).toBe(1);
  });

  it('reports the readable part of a damaged state, and does not repair it', async () => {
    const stateDir = makeStateDir();
    const manager = await simulate(SYNTHETIC, { stateDir, reservedSystemCPUs: '0' });
    const { uid } = await manager.acquire({ cpu: 1 });
    const file = join(stateDir, 'state.json');
    writeFileSync(file, 'nonsense');
    const before = snapshot(stateDir);
    const looking = await view(SYNTHETIC, stateDir);
    expect(looking.grants()).toMatchObject([{ uid, alive: true }]);
    expect(snapshot(stateDir)).toEqual(before);
    expect(readFileSync(file, 'utf8')).toBe('nonsense');
  });

  it('refuses settings that differ from the record, and another kind of machine', async () => {
    const stateDir = makeStateDir();
    await simulate(SYNTHETIC, { stateDir, reservedSystemCPUs: '0' });
    const options = { stateDir, topology: await discover({ synthetic: SYNTHETIC }), readOnly: true } as const;
    expect(await errorOf(() => openManager({ ...options, reservedSystemCPUs: '1' }))).toMatchObject({
      code: 'ERR_CONFIG_CONFLICT',
    });
    expect(await errorOf(() => openManager({ stateDir, readOnly: true }))).toMatchObject({
      code: 'ERR_SIMULATED_MACHINE',
    });
  });

  it('leaves nothing open if it is refused', async () => {
    const stateDir = makeStateDir();
    await simulate(SYNTHETIC, { stateDir });
    const open = () => readdirSync('/proc/self/fd').length;
    const [before, files] = [open(), openFilesIn(stateDir)];
    for (let i = 0; i < 5; i++) await errorOf(() => openManager({ stateDir, readOnly: true }));
    expect(openFilesIn(stateDir)).toEqual(files);
    // What earlier tests have left may close meanwhile.
    expect(open()).toBeLessThanOrEqual(before);
  });

  it('may work without a state, as if nothing were granted', async () => {
    const nothing = await openManager({ stateDir: null, readOnly: true });
    onTestFinished(() => nothing.close());
    expect(nothing.topology.isSimulated).toBe(false);
    expect(nothing.status()).toMatchObject({ scope: 'memory', stateDir: '', grants: [] });
    expect(nothing.sharedPool()).toEqual(nothing.topology.cpus.difference(nothing.settings().isolatedCPUs));
  });

  it('takes a stateDir of null only for reading', async () => {
    const error = await errorOf(() => openManager({ stateDir: null as never }));
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', details: { value: null } });
  });

  it('can read a machine on which the policies place nothing', async () => {
    const topology = await discover({ synthetic: 'numa:70 core:1 pu:1' });
    const large = await openManager({ topology, readOnly: true });
    onTestFinished(() => large.close());
    expect(large.status().settings.managedCPUs.size).toBe(70);
    const pod = { containers: [{ name: 'main', limits: { cpu: 1, memory: '1Mi' } }] };
    expect(thrownBy(() => large.plan(pod))).toMatchObject({ code: 'ERR_INVALID_OPTION' });
    expect(large.plan(pod, { policy: 'none' })).toMatchObject({ admitted: true });
  });

  it('is refused with a value other than true or false', async () => {
    expect(await errorOf(() => openManager({ readOnly: 'yes' as never }))).toMatchObject({
      code: 'ERR_INVALID_OPTION',
      details: { value: 'yes' },
    });
  });

  it('does not answer once it is closed', async () => {
    const looking = await view(SYNTHETIC, makeStateDir());
    looking.close();
    for (const ask of [() => looking.grants(), () => looking.sharedPool(), () => looking.sharedMembers()]) {
      expect(thrownBy(ask)).toMatchObject({ code: 'ERR_MANAGER_CLOSED' });
    }
    expect(looking.topology.cpus).toEqual(CpuSet.parse('0-7'));
  });

  it.runIf(canBeStranger)('needs neither the group of the folder nor the right to write it', async () => {
    const stateDir = makeStateDir();
    chmodSync(join(stateDir, '..'), 0o755);
    const owner = new Agent();
    await owner.tell('open', { stateDir, sharedMember: false });
    const { uid } = await owner.tell('acquire', { cpu: 1 });
    execFileSync('chmod', ['-R', 'a+rX,go-w', stateDir]);
    const before = snapshot(stateDir);
    const stranger = ['setpriv', '--reuid=12345', '--clear-groups', '--bounding-set=-all', '--inh-caps=-all'];
    const agent = new Agent(stranger, forStrangers(AGENT));
    await agent.tell('open', { stateDir, readOnly: true });
    expect(await agent.tell('grants')).toMatchObject([{ uid, alive: true }]);
    await agent.tell('watch');
    expect(snapshot(stateDir)).toEqual(before);
    await owner.tell('release', { uid });
    // The new state is closed to others until a process opens it.
    execFileSync('chmod', ['-R', 'a+rX,go-w', stateDir]);
    await expect.poll(() => agent.tell('changes')).toMatchObject([{ removed: [{ uid }] }]);
    expect((await agent.ask('acquire', { cpu: 1 })).error?.message).toContain('not a function');
    chmodSync(stateDir, 0o700);
    expect(
      await new Agent(stranger, forStrangers(AGENT)).ask('open', { stateDir, readOnly: true }),
    ).toMatchObject({
      error: { code: 'ERR_STATE_FOLDER' },
    });
  });

  it.runIf(existsSync('/sys/fs/cgroup'))('makes no cgroup', async () => {
    // A root of its own: other tests make and remove cgroups meanwhile.
    const name = `numalign-looked-at-${process.pid}`;
    const looking = await openManager({
      stateDir: makeStateDir(),
      readOnly: true,
      cgroupRoot: `/${name}`,
    });
    onTestFinished(() => looking.close());
    looking.plan({ containers: [{ name: 'main', limits: { cpu: 1, memory: '1Mi' } }] });
    // It goes on past one of theirs that is gone before it looks into it, and then ends with 1.
    const groups = spawnSync('find', ['/sys/fs/cgroup', '-type', 'd', '-name', name], { encoding: 'utf8' });
    expect(groups.stdout).toBe('');
  });
});
