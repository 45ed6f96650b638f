// needs: machine
// Levels of enforcement on the real kernel.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openManager } from '../../lib/index.js';
import { ALL, idler, isUsable } from '../cgroups/own-root.js';
import { Agent } from '../support/agent.js';
import { errorOf } from '../support/error-of.js';
import { makeStateDir } from '../support/state-dir.js';
import { cgroupOf, choose, groupPath, masksOf, opened, ownCgroups, strangeGroup } from './members.js';

// The files on disk, except for the lock by which this process lives.
const filesIn = (stateDir: string) =>
  readdirSync(stateDir, { recursive: true })
    .map(String)
    .filter((name) => !name.startsWith('owners/'))
    .sort();

describe.skipIf(!isUsable)('CPUs out of reach', () => {
  // The first opener writes the settings, and each later one checks the CPUs that it could get.
  it.each(['the first', 'a later'])(
    'are those that a foreign cgroup keeps from %s opener',
    async (opener) => {
      const [first, last] = [String(ALL.first), String(ALL.toArray().at(-1))];
      const options = { stateDir: makeStateDir(), ...ownCgroups(), reservedSystemCPUs: first };
      if (opener === 'a later') await opened({ ...options, sharedMember: false });
      const path = strangeGroup(first);
      const agent = new Agent();
      writeFileSync(join(path, 'cgroup.procs'), String(agent.process.pid));
      await agent.tell('open', options);
      const { error } = await agent.ask('acquire', { cpu: 1 });
      expect(error).toMatchObject({
        code: 'ERR_INSUFFICIENT_CPUS',
        message: expect.stringContaining(`outside the cpuset or mask of this process: ${last}`),
      });
    },
  );
});

describe.skipIf(!isUsable)('the level of enforcement', () => {
  it('is recorded if nothing is registered', async () => {
    const manager = await opened({ stateDir: makeStateDir(), sharedMember: false });
    const grant = await manager.acquire({ cpu: 1 });
    expect(grant.enforcement).toBe('recorded');
    expect(manager.grants()[0]!.enforcement).toBe('recorded');
    expect(manager.sharedMembers()).toEqual([]);
    expect(masksOf(process.pid)).toEqual([`${ALL}`]);
    await grant.release();
  });

  it('is members if all members, this process included, have left by their masks', async () => {
    const manager = await opened({ stateDir: makeStateDir() });
    const pid = idler();
    await manager.addSharedMember({ pid });
    const grant = await manager.acquire({ cpu: 1 });
    expect(grant.enforcement).toBe('members');
    expect(grant.warnings).toEqual([]);
    for (const each of [pid, process.pid]) expect(masksOf(each)).toEqual([String(manager.sharedPool())]);
    await grant.release();
    for (const each of [pid, process.pid]) expect(masksOf(each)).toEqual([`${ALL}`]);
  });

  it('belongs to each grant, whatever was admitted before', async () => {
    const manager = await opened({ stateDir: makeStateDir() });
    const ordinary = await manager.admit({ containers: [{ name: 'app' }] });
    const grant = await manager.acquire({ cpu: 1 });
    expect(grant.enforcement).toBe('members');
    await grant.release();
    await ordinary.release();
  });

  it('is cpuset if a cgroup keeps all of them off', async () => {
    const manager = await opened({ stateDir: makeStateDir(), ...ownCgroups() });
    const pid = idler();
    await manager.addSharedMember({ pid });
    const grant = await manager.acquire({ cpu: 1 });
    expect(grant.enforcement).toBe('cpuset');
    for (const each of [pid, process.pid]) expect(cgroupOf(each)).toMatch(/\/shared$/);
    expect(readFileSync(groupPath('shared', 'cpuset.cpus'), 'utf8').trim()).toBe(
      String(manager.sharedPool()),
    );
    // A mask cannot let it out.
    expect(() => choose(pid, String(grant.cpus))).toThrow();
    choose(pid, `${ALL}`);
    expect(masksOf(pid)).toEqual([String(manager.sharedPool())]);
    await grant.release();
    expect(readFileSync(groupPath('shared', 'cpuset.cpus'), 'utf8').trim()).toBe(`${ALL}`);
  });

  it('is members if one is in a cgroup outside, so that only a mask can move it', async () => {
    const manager = await opened({ stateDir: makeStateDir(), ...ownCgroups() });
    const path = strangeGroup();
    const pid = idler();
    writeFileSync(join(path, 'cgroup.procs'), String(pid));
    await manager.addSharedMember({ pid });
    const grant = await manager.acquire({ cpu: 1 });
    expect(grant.enforcement).toBe('members');
    expect(path).toContain(cgroupOf(pid));
    expect(masksOf(pid)).toEqual([String(manager.sharedPool())]);
    await grant.release();
  });

  it('is no stronger than the requested one', async () => {
    const manager = await opened({ stateDir: makeStateDir(), ...ownCgroups(), enforcement: 'members' });
    const grant = await manager.acquire({ cpu: 1 });
    expect(grant.enforcement).toBe('members');
    await grant.release();
    const recorded = await manager.acquire({ cpu: 1, enforcement: 'cpuset' });
    expect(recorded.enforcement).toBe('cpuset');
    await recorded.release();
  });
});

describe.skipIf(!isUsable)('a level that is required', () => {
  it.each([
    ['members', { sharedMember: false }, 'recorded', /no process or cgroup is registered/],
    ['cpuset', {}, 'members', /no cgroup root/],
    ['partition', { ...{ cgroups: true } }, 'cpuset', /cgroup v2.*here.*v1/],
    ['isolated', { ...{ cgroups: true } }, 'cpuset', /cgroup v2/],
  ] as const)(
    '%s, which cannot be had, is ERR_ENFORCEMENT with the reasons, and nothing is changed',
    async (require, given, reached, why) => {
      const { cgroups, ...options } = given as { cgroups?: boolean; sharedMember?: boolean };
      const stateDir = makeStateDir();
      const manager = await opened({ stateDir, ...options, ...(cgroups && ownCgroups()) });
      const before = {
        generation: manager.generation(),
        files: filesIn(stateDir),
        masks: masksOf(process.pid),
      };
      const error = await errorOf(() => manager.acquire({ cpu: 1, require }));
      expect(error).toMatchObject({ code: 'ERR_ENFORCEMENT', details: { value: reached } });
      expect(error.details.valid).toContain(require);
      expect(error.message).toMatch(why);
      expect({
        generation: manager.generation(),
        files: filesIn(stateDir),
        masks: masksOf(process.pid),
      }).toEqual(before);
      if (cgroups) expect(readFileSync(groupPath('shared', 'cpuset.cpus'), 'utf8').trim()).toBe(`${ALL}`);
      expect(manager.grants()).toEqual([]);
      const grant = await manager.acquire({ cpu: 1, require: reached });
      expect(grant.enforcement).toBe(reached);
      await grant.release();
    },
  );

  it('must not exceed the requested one, and both must be levels', async () => {
    const manager = await opened({ stateDir: makeStateDir() });
    const refused = [
      { enforcement: 'members', require: 'cpuset' },
      { require: 'total' },
      { enforcement: 'recorded!' },
      { unmovableMembers: 'ignore' },
    ];
    for (const options of refused) {
      expect(await errorOf(() => manager.acquire({ cpu: 1, ...options } as never))).toMatchObject({
        code: 'ERR_INVALID_OPTION',
      });
      expect(manager.grants()).toEqual([]);
    }
    expect(
      await errorOf(() => openManager({ stateDir: makeStateDir(), unmovableMembers: 'ignore' as never })),
    ).toMatchObject({ code: 'ERR_INVALID_OPTION' });
    expect(
      await errorOf(() => openManager({ stateDir: makeStateDir(), cgroupRoot: '/a/../b' })),
    ).toMatchObject({
      code: 'ERR_INVALID_OPTION',
    });
  });
});

describe.skipIf(!isUsable)('a manager that is closed', () => {
  it('takes its process out of the shared group if no CPU is exclusive', async () => {
    const before = cgroupOf(process.pid);
    const manager = await openManager({ stateDir: makeStateDir(), ...ownCgroups() });
    expect(cgroupOf(process.pid)).toMatch(/\/shared$/);
    manager.close();
    expect(cgroupOf(process.pid)).toBe(before);
  });

  it('leaves it there while CPUs are exclusive', async () => {
    const options = { stateDir: makeStateDir(), ...ownCgroups() };
    const holder = new Agent();
    await holder.tell('open', options);
    const manager = await openManager(options);
    const { cpus } = await holder.tell('acquire', { cpu: 1 });
    manager.close();
    expect(cgroupOf(process.pid)).toMatch(/\/shared$/);
    expect(masksOf(process.pid)).not.toContain(cpus);
    expect(masksOf(process.pid)).toHaveLength(1);
    const again = await openManager(options);
    await holder.kill();
    const grant = await again.acquire({ cpu: 1 });
    await grant.release();
    again.close();
    expect(cgroupOf(process.pid)).toBe('/');
    // The dying holder cannot be moved any more, and a warning may say so.
    const request = join(options.stateDir, 'members', 'clear');
    const names: string[] = existsSync(request) ? JSON.parse(readFileSync(request, 'utf8')).names : [];
    expect(names.filter((name) => name.startsWith(`p${process.pid}-`))).toEqual([]);
  });

  it('keeps it a member as long as another of its managers is open', async () => {
    const stateDir = makeStateDir();
    const first = await openManager({ stateDir });
    const second = await opened({ stateDir });
    first.close();
    expect(second.sharedMembers()).toMatchObject([{ kind: 'process', pid: process.pid }]);
    const grant = await second.acquire({ cpu: 1, require: 'members' });
    expect(masksOf(process.pid)).toEqual([String(second.sharedPool())]);
    await grant.release();
    second.close();
    expect(readdirSync(join(stateDir, 'members'))).toEqual([]);
  });
});
