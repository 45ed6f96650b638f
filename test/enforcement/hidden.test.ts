// needs: machine
// Members that /proc hides or shows differently: hidepid, time namespaces, and pid namespaces
// without a /proc of their own. An invisible process has not ended.
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, it } from 'vitest';
import { ALL, isUsable } from '../cgroups/own-root.js';
import { Agent } from '../support/agent.js';
import { hierarchies, makeCgroup } from '../support/owner-cgroups.js';
import { canUnshare } from '../support/rights.js';
import { makeStateDir } from '../support/state-dir.js';
import { canBeStranger } from '../support/strangers.js';
import { child, ended, filesOf, masksOf, opened, strangeGroup } from './members.js';
import { ALICE, agentOf, BOB, sharedFolder, sleeper } from './users.js';

// A new /proc: remounting the old one would change it for every process.
const HIDING = ['unshare', '-m', 'sh', '-c', 'mount -t proc -o hidepid=2 proc /proc && exec "$@"', 'sh'];
const SHIFTED = ['unshare', '--time', '--fork', '--kill-child', '--boottime', '100000'];

// As a container has it: the hierarchy with cpusets begins at the container's own cgroup.
const isolated = (cgroup: string, mount: string) => {
  const remount = `umount ${mount} && mount -t cgroup -o cpuset cgroup ${mount}`;
  const enter = `echo $$ > ${cgroup}/cgroup.procs && exec unshare --cgroup --mount`;
  return ['sh', '-c', `${enter} sh -c '${remount} && exec "$@"' sh "$@"`, 'sh'];
};

// With v1's hierarchy of cpusets.
const isV1 = hierarchies()[0]?.[0] === 'v1';
const canTry = isUsable && canUnshare;
const hasTimeNamespaces = canTry && spawnSync(SHIFTED[0]!, [...SHIFTED.slice(1), 'true']).status === 0;
const outsider = { sharedMember: false };

describe.runIf(canTry && canBeStranger)('a member that /proc hides', () => {
  it('makes an admission fail if no manager can ask it, and stays registered', async () => {
    const stateDir = sharedFolder();
    const root = await opened({ stateDir, ...outsider });
    const pid = sleeper();
    await root.addSharedMember({ pid });
    const before = filesOf(stateDir);
    const bob = await agentOf(BOB, stateDir, outsider, HIDING);
    const { error } = await bob.agent.ask('acquire', { cpu: 1 });
    expect(error).toMatchObject({
      code: 'ERR_MEMBER_UNMOVABLE',
      message: expect.stringContaining('/proc hides it'),
    });
    const grant = await bob.tell('acquire', { cpu: 1, unmovableMembers: 'report' });
    expect(grant.enforcement).toBe('recorded');
    expect(filesOf(stateDir)).toEqual(expect.arrayContaining(before));
    expect(root.sharedMembers()).toMatchObject([{ pid }]);
  });

  it('is asked if it has a manager, leaves by itself, and comes back', async () => {
    const stateDir = sharedFolder();
    const alice = await agentOf(ALICE, stateDir);
    const bob = await agentOf(BOB, stateDir, outsider, HIDING);
    const { uid } = await bob.tell('acquire', { cpu: 1, require: 'members' });
    expect(masksOf(alice.pid)).toEqual([await bob.tell('sharedPool')]);
    await bob.tell('release', { uid });
    await expect.poll(() => masksOf(alice.pid), { timeout: 20_000 }).toEqual([`${ALL}`]);
  });

  it('is forgotten once it has ended', async () => {
    const stateDir = sharedFolder();
    const root = await opened({ stateDir, ...outsider });
    const alice = await agentOf(ALICE, stateDir);
    const registered = child('sleep', ['1000']);
    await root.addSharedMember({ pid: registered.pid! });
    const bob = await agentOf(BOB, stateDir, outsider, HIDING);
    await alice.agent.kill();
    await ended(registered);
    await bob.tell('acquire', { cpu: 1 });
    expect(filesOf(stateDir)).toEqual([]);
  });

  it('is none if another process has its pid now, by its own lock', async () => {
    const stateDir = sharedFolder();
    const alice = await agentOf(ALICE, stateDir);
    const [name] = filesOf(stateDir) as [string];
    const pid = sleeper();
    const text = readFileSync(join(stateDir, 'members', name), 'utf8').replace(/"pid":\d+/, `"pid":${pid}`);
    const path = join(stateDir, 'members', name.replace(/^p\d+/, `p${pid}`));
    writeFileSync(path, text);
    const bob = await agentOf(BOB, stateDir, outsider, HIDING);
    await bob.tell('acquire', { cpu: 1, require: 'members' });
    expect(masksOf(alice.pid)).toEqual([await bob.tell('sharedPool')]);
    expect(filesOf(stateDir)).not.toContain(name.replace(/^p\d+/, `p${pid}`));
  });

  it('makes an admission fail if it is in a registered cgroup', async () => {
    const stateDir = sharedFolder();
    const root = await opened({ stateDir, ...outsider });
    const path = strangeGroup();
    writeFileSync(join(path, 'cgroup.procs'), String(sleeper()));
    await root.addSharedMember({ cgroup: path });
    const bob = await agentOf(BOB, stateDir, outsider, HIDING);
    const { error } = await bob.agent.ask('acquire', { cpu: 1 });
    expect(error).toMatchObject({
      code: 'ERR_MEMBER_UNMOVABLE',
      message: expect.stringContaining('/proc hides'),
    });
  });

  it('cannot be registered', async () => {
    const stateDir = sharedFolder();
    const bob = await agentOf(BOB, stateDir, outsider, HIDING);
    const { error } = await bob.agent.ask('share', { pid: sleeper(ALICE) });
    expect(error).toMatchObject({
      code: 'ERR_UNKNOWN_MEMBER',
      message: expect.stringContaining('/proc shows'),
    });
    expect(filesOf(stateDir)).toEqual([]);
  });
});

describe.runIf(hasTimeNamespaces)('a member that a process of another time namespace inspects', () => {
  it('is the same process, and is moved', async () => {
    const stateDir = makeStateDir();
    const root = await opened({ stateDir, ...outsider });
    const pid = sleeper();
    await root.addSharedMember({ pid });
    const shifted = new Agent(SHIFTED);
    await shifted.tell('open', { stateDir, ...outsider });
    const { uid } = await shifted.tell('acquire', { cpu: 1, require: 'members' });
    expect(masksOf(pid)).toEqual([await shifted.tell('sharedPool')]);
    expect(root.sharedMembers()).toMatchObject([{ pid }]);
    await shifted.tell('release', { uid });
    expect(masksOf(pid)).toEqual([`${ALL}`]);
  });

  it('is the same process if it has registered itself there', async () => {
    const stateDir = makeStateDir();
    const root = await opened({ stateDir, ...outsider });
    const shifted = new Agent(SHIFTED);
    const pid = await shifted.tell('open', { stateDir });
    const grant = await root.acquire({ cpu: 1, require: 'members' });
    expect(masksOf(pid)).toEqual([`${root.sharedPool()}`]);
    expect(root.sharedMembers()).toMatchObject([{ pid }]);
    await grant.release();
  });
});

describe.runIf(canTry)('a member of another pid namespace', () => {
  it('makes an admission fail if its /proc is not its own: its threads are invisible', async () => {
    const stateDir = makeStateDir();
    const root = await opened({ stateDir, ...outsider });
    const far = new Agent(['unshare', '--pid', '--fork', '--kill-child']);
    await far.tell('open', { stateDir });
    await expect(root.acquire({ cpu: 1, require: 'members' })).rejects.toMatchObject({
      code: 'ERR_MEMBER_UNMOVABLE',
      message: expect.stringMatching(/cannot be moved: it lives in another pid namespace$/),
    });
    expect(root.sharedMembers()).toHaveLength(1);
    expect(await far.tell('mask')).toBe(`${ALL}`);
  });

  it('blocks no other registration if it does not leave', async () => {
    const stateDir = makeStateDir();
    const root = await opened({ stateDir, ...outsider });
    const far = new Agent(['unshare', '--pid', '--fork', '--kill-child']);
    await far.tell('open', { stateDir });
    const grant = await root.acquire({ cpu: 1, unmovableMembers: 'report' });
    const pid = sleeper();
    await root.addSharedMember({ pid });
    expect(masksOf(pid)).toEqual([`${root.sharedPool()}`]);
    await grant.release();
    expect(masksOf(pid)).toEqual([`${ALL}`]);
  });

  it('blocks the registration of its cgroup by a process that cannot see it', async () => {
    const stateDir = makeStateDir();
    const path = strangeGroup();
    writeFileSync(join(path, 'cgroup.procs'), String(sleeper()));
    const far = new Agent(['unshare', '--pid', '--fork', '--mount-proc', '--kill-child']);
    await far.tell('open', { stateDir, ...outsider });
    expect((await far.ask('share', { cgroup: path })).error).toMatchObject({
      code: 'ERR_MEMBER_UNMOVABLE',
      message: expect.stringMatching(/other pid namespaces|\/proc hides process 0/),
    });
    expect(filesOf(stateDir)).toEqual([]);
  });

  it('outlives the process that registered it there, and is forgotten once it has ended', async () => {
    const stateDir = makeStateDir();
    const init = child('unshare', ['--pid', '--fork', '--mount-proc', '--kill-child', 'sh'], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const lines = createInterface({ input: init.stdout! })[Symbol.asyncIterator]();
    init.stdin!.write('sleep 1000 & echo $!\n');
    const pid = Number((await lines.next()).value);
    const inside = Number(readFileSync(`/proc/${init.pid}/task/${init.pid}/children`, 'utf8'));
    const registrar = new Agent(['nsenter', '--target', String(inside), '--pid', '--mount']);
    await registrar.tell('open', { stateDir, ...outsider });
    await registrar.tell('share', { pid });
    await registrar.kill();
    const root = await opened({ stateDir, ...outsider });
    await expect(root.acquire({ cpu: 1 })).rejects.toMatchObject({
      code: 'ERR_MEMBER_UNMOVABLE',
      message: expect.stringMatching(/another pid namespace: if it has ended, remove members\/p\d+-\S+$/),
    });
    expect(root.sharedMembers()).toMatchObject([{ pid }]);
    process.kill(inside, 'SIGKILL');
    await once(init, 'exit');
    await root.acquire({ cpu: 1 });
    expect(filesOf(stateDir).filter((name) => name.startsWith('p'))).toEqual([]);
  });
});

describe.runIf(canTry)('a registered cgroup', () => {
  it('is a member in another cgroup namespace, too, where the machine’s hierarchy is mounted', async () => {
    const stateDir = makeStateDir();
    const root = await opened({ stateDir, ...outsider });
    await root.addSharedMember({ cgroup: strangeGroup() });
    const far = new Agent(['unshare', '--cgroup']);
    await far.tell('open', { stateDir, ...outsider });
    expect((await far.ask('acquire', { cpu: 1 })).error).toBeUndefined();
  });

  it.runIf(isV1)(
    'makes an admission fail in another cgroup namespace, where its path may be another’s',
    async () => {
      const stateDir = makeStateDir();
      const root = await opened({ stateDir, ...outsider });
      await root.addSharedMember({ cgroup: strangeGroup() });
      const [[, mount]] = hierarchies() as [[string, string]];
      const far = new Agent(isolated(makeCgroup(mount), mount));
      await far.tell('open', { stateDir, ...outsider });
      expect((await far.ask('acquire', { cpu: 1 })).error).toMatchObject({
        code: 'ERR_MEMBER_UNMOVABLE',
        message: expect.stringContaining('its path belongs to another cgroup namespace'),
      });
      expect(root.sharedMembers()).toHaveLength(1);
    },
  );
});
