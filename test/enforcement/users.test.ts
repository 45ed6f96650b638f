// needs: machine
// Members of several users in one folder, which a group shares: a member that a user may not move
// stays unchanged, and no process moves on the word of a user without the right to move it.
import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openManager } from '../../lib/index.js';
import { ALL, isUsable } from '../cgroups/own-root.js';
import { Agent } from '../support/agent.js';
import { canUnshare } from '../support/rights.js';
import { asUser, canBeStranger } from '../support/strangers.js';
import { child, filesOf, masksOf, opened, strangeGroup } from './members.js';
import { ALICE, agentOf, BOB, GROUP, sharedFolder, sleeper } from './users.js';

/** The files in members/, and their owners. */
const filesAndOwners = (stateDir: string) =>
  filesOf(stateDir).map((name) => {
    const path = join(stateDir, 'members', name);
    return [name, statSync(path).uid, readFileSync(path, 'utf8')];
  });

const processFile = (stateDir: string, pid: number) =>
  filesOf(stateDir).find((name) => name.startsWith(`p${pid}-`) && name.endsWith('-r'))!;

const run = (user: number, ...command: string[]) =>
  execFileSync('env', [...asUser(user, GROUP), ...command], { stdio: ['ignore', 'pipe', 'ignore'] });

const canTry = isUsable && canBeStranger;

describe.runIf(canTry)('a member of another user', () => {
  it.each([
    ['alice', ALICE],
    ['root', undefined],
  ])('has all its CPUs after a refused admission: %s', async (_, user) => {
    const stateDir = sharedFolder();
    const member = await agentOf(user, stateDir);
    const bob = await agentOf(BOB, stateDir, { sharedMember: false });
    const { error } = await bob.agent.ask('acquire', { cpu: 1, require: 'cpuset' });
    expect(error).toMatchObject({ code: 'ERR_ENFORCEMENT' });
    await expect.poll(() => masksOf(member.pid), { timeout: 20_000 }).toEqual([`${ALL}`]);
    // It comes back before its former place is forgotten.
    const written = () => filesOf(stateDir).filter((name) => name.endsWith('.masks'));
    await expect.poll(written, { timeout: 20_000 }).toEqual([]);
  });

  it.each([
    ['alice', ALICE],
    ['root', undefined],
  ])('leaves granted CPUs, and comes back after the release: %s', async (_, user) => {
    const stateDir = sharedFolder();
    const member = await agentOf(user, stateDir);
    const bob = await agentOf(BOB, stateDir, { sharedMember: false });
    const { uid } = await bob.tell('acquire', { cpu: 1, require: 'members' });
    expect(masksOf(member.pid)).toEqual([await bob.tell('sharedPool')]);
    await bob.tell('release', { uid });
    await expect.poll(() => masksOf(member.pid), { timeout: 20_000 }).toEqual([`${ALL}`]);
  });

  it('keeps its record if it cannot be moved, and is moved back by a user with the right to', async () => {
    const stateDir = sharedFolder();
    const root = await opened({ stateDir, sharedMember: false });
    const bob = await agentOf(BOB, stateDir, { sharedMember: false });
    const { uid } = await bob.tell('acquire', { cpu: 1 });
    const pid = sleeper(ALICE);
    await root.addSharedMember({ pid });
    expect(masksOf(pid)).toEqual([String(root.sharedPool())]);
    const before = filesAndOwners(stateDir);
    await bob.tell('release', { uid });
    const isRequest = ([name]: (string | number)[]) => name === 'clear';
    expect(filesAndOwners(stateDir).filter((file) => !isRequest(file))).toEqual(before);
    await root.reconcile();
    expect(masksOf(pid)).toEqual([`${ALL}`]);
  });

  it('stays registered by its own user if another user without rights registers it too', async () => {
    const stateDir = sharedFolder();
    const root = await opened({ stateDir, sharedMember: false });
    const pid = sleeper();
    await root.addSharedMember({ pid });
    const before = filesAndOwners(stateDir);
    const bob = await agentOf(BOB, stateDir, { sharedMember: false });
    await bob.tell('share', { pid });
    expect(filesAndOwners(stateDir)).toEqual(before);
    const { error } = await bob.agent.ask('share', { pid: sleeper() });
    expect(error).toMatchObject({ code: 'ERR_MEMBER_UNMOVABLE', message: expect.stringContaining("root's") });
    expect(filesAndOwners(stateDir)).toEqual(before);
    const grant = await root.acquire({ cpu: 1, require: 'members' });
    expect(masksOf(pid)).toEqual([String(root.sharedPool())]);
    await grant.release();
  });
});

describe.runIf(canTry)('a file in members/ that is not what it seems', () => {
  // A registration of root's, and a process of root's that is not registered.
  const planted = async () => {
    const stateDir = sharedFolder();
    const root = await opened({ stateDir, sharedMember: false });
    const [member, victim] = [sleeper(), sleeper()];
    await root.addSharedMember({ pid: victim });
    const victimFile = processFile(stateDir, victim);
    const text = readFileSync(join(stateDir, 'members', victimFile), 'utf8');
    await root.removeSharedMember({ pid: victim });
    await root.addSharedMember({ pid: member });
    const memberPath = join(stateDir, 'members', processFile(stateDir, member));
    return { stateDir, root, victim, memberPath, victimPath: join(stateDir, 'members', victimFile), text };
  };

  it('makes root move no process if it is a second name of a file of root’s', async () => {
    const { root, victim, memberPath, victimPath } = await planted();
    chmodSync(memberPath, 0o660);
    run(BOB, 'ln', memberPath, victimPath);
    await root.acquire({ cpu: 1 }).catch(() => {});
    expect(masksOf(victim)).toEqual([`${ALL}`]);
  });

  it('makes root move no process if it is a file of root’s that another user has renamed', async () => {
    const { root, victim, memberPath, victimPath } = await planted();
    run(BOB, 'mv', memberPath, victimPath);
    await root.acquire({ cpu: 1 }).catch(() => {});
    expect(masksOf(victim)).toEqual([`${ALL}`]);
  });

  it('makes root move no process if it is a file of root’s that another user has written', async () => {
    const { root, victim, memberPath, victimPath, text } = await planted();
    chmodSync(memberPath, 0o660);
    run(BOB, 'sh', '-c', 'printf %s "$1" > "$2" && mv "$2" "$3"', 'sh', text, memberPath, victimPath);
    await root.acquire({ cpu: 1 }).catch(() => {});
    expect(masksOf(victim)).toEqual([`${ALL}`]);
  });

  it('cannot be written by the group if numalign makes it', async () => {
    const stateDir = sharedFolder();
    const root = await opened({ stateDir });
    await root.addSharedMember({ pid: sleeper() });
    const grant = await root.acquire({ cpu: 1 });
    expect(filesOf(stateDir)).toHaveLength(4);
    for (const name of filesOf(stateDir))
      expect(statSync(join(stateDir, 'members', name)).mode & 0o777).toBe(0o640);
    await grant.release();
  });

  it('gives no masks to a process that it was not written for', async () => {
    const stateDir = sharedFolder();
    const root = await opened({ stateDir, sharedMember: false });
    const [wide, narrow] = [sleeper(), sleeper()];
    await root.addSharedMember({ pid: wide });
    const grant = await root.acquire({ cpu: 1 });
    const pool = `${root.sharedPool()}`;
    execFileSync('taskset', ['-pc', pool, String(narrow)], { stdio: 'ignore' });
    await root.addSharedMember({ pid: narrow });
    const masksFile = (pid: number) =>
      join(stateDir, 'members', processFile(stateDir, pid).replace(/-r$/, '.masks'));
    run(BOB, 'mv', masksFile(wide), masksFile(narrow));
    await grant.release();
    expect(masksOf(narrow)).toEqual([pool]);
  });

  it('moves only those processes of another user’s cgroup that this user may move', async () => {
    const stateDir = sharedFolder();
    const root = await opened({ stateDir, sharedMember: false });
    const path = strangeGroup();
    chownSync(path, BOB, BOB);
    const [roots, bobs] = [sleeper(), sleeper(BOB)];
    for (const pid of [roots, bobs]) writeFileSync(join(path, 'cgroup.procs'), String(pid));
    const bob = await agentOf(BOB, stateDir, { sharedMember: false });
    await bob.tell('share', { cgroup: path });
    const grant = await root.acquire({ cpu: 1, require: 'members' });
    expect(masksOf(bobs)).toEqual([`${root.sharedPool()}`]);
    expect(masksOf(roots)).toEqual([`${ALL}`]);
    await grant.release();
  });

  it.runIf(canUnshare)('is no answer of a member if another user has written it', async () => {
    const stateDir = sharedFolder();
    const root = await opened({ stateDir, sharedMember: false });
    const far = new Agent(['unshare', '--pid', '--fork', '--mount-proc', '--kill-child']);
    await far.tell('open', { stateDir });
    const pid = Number(readFileSync(`/proc/${far.process.pid}/task/${far.process.pid}/children`, 'utf8'));
    process.kill(pid, 'SIGSTOP');
    const [name] = filesOf(stateDir) as [string];
    const forger = `cd "$1"; echo up; while :; do
      id=$(sed -n 's/.*"id":"\\([^"]*\\)".*/\\1/p' clear 2> /dev/null); echo -n "$id $3" > .forged && mv .forged "$2"
    done`;
    const answer = join(stateDir, 'members', `${name}.left`);
    child('env', [...asUser(BOB, GROUP), 'sh', '-c', forger, 'sh', join(stateDir, 'members'), answer, name]);
    await expect.poll(() => filesOf(stateDir)).toContain(`${name}.left`);
    await expect(root.acquire({ cpu: 1, require: 'members' })).rejects.toMatchObject({
      code: 'ERR_MEMBER_UNMOVABLE',
    });
  });
});

describe.runIf(canTry)('a registration that the group may write', () => {
  async function withWritable() {
    const stateDir = sharedFolder();
    const alice = await agentOf(ALICE, stateDir);
    const [name] = filesOf(stateDir) as [string];
    chmodSync(join(stateDir, 'members', name), 0o660);
    const root = await openManager({ stateDir, sharedMember: false });
    onTestFinished(() => root.close());
    return { root, alice, stateDir };
  }

  it('belongs to a process that is asked to leave, and not moved by others', async () => {
    const { root, alice, stateDir } = await withWritable();
    const grant = await root.acquire({ cpu: 1, require: 'members' });
    expect(masksOf(alice.pid)).toEqual([`${root.sharedPool()}`]);
    await grant.release();
    await expect.poll(() => masksOf(alice.pid), { timeout: 20_000 }).toEqual([`${ALL}`]);
    rmSync(join(stateDir, 'members', 'clear'), { force: true });
  });

  it('is ignored if the process has another sound one: it is moved', async () => {
    const { root, alice } = await withWritable();
    await root.addSharedMember({ pid: alice.pid });
    // It cannot answer.
    process.kill(alice.pid, 'SIGSTOP');
    const grant = await root.acquire({ cpu: 1, require: 'members' });
    expect(masksOf(alice.pid)).toEqual([`${root.sharedPool()}`]);
    await grant.release();
    expect(masksOf(alice.pid)).toEqual([`${ALL}`]);
    process.kill(alice.pid, 'SIGCONT');
  });
});
