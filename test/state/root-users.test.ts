// needs: machine
// Which state folder root may use a cgroup root for, if others use it.
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { findHierarchy } from '../../lib/cgroups/files/hierarchies.js';
import { openManager } from '../../lib/index.js';
import { RootUsers } from '../../lib/state/root-users.js';
import { Agent } from '../support/agent.js';
import { makeStateDir } from '../support/state-dir.js';

const USERS = '/run/numalign-root/users';
const ROOT = '/numalign-users-test';
const isRoot = process.geteuid?.() === 0;

function usersOf(path = makeStateDir()): RootUsers {
  mkdirSync(path, { recursive: true });
  const users = new RootUsers(path, 'private');
  onTestFinished(() => users.release());
  return users;
}

/** The files of those who use cgroup roots. */
const files = () => (existsSync(USERS) ? readdirSync(USERS).filter((name) => name !== 'lock') : []);

describe.runIf(isRoot)('a cgroup root', () => {
  it('is one folder’s at a time, which every process of it may use', () => {
    const before = files();
    const folder = makeStateDir();
    const [first, second, other] = [usersOf(folder), usersOf(folder), usersOf()];
    expect([first.refusal(ROOT), second.refusal(ROOT)]).toEqual([undefined, undefined]);
    expect(other.refusal(ROOT)).toContain(`the state folder ${folder} uses the cgroup root ${ROOT}`);
    expect(other.refusal(`${ROOT}-2`)).toBeUndefined();
    first.release();
    expect(other.refusal(ROOT)).toContain(folder);
    second.release();
    expect(other.refusal(ROOT)).toBeUndefined();
    other.release();
    expect(files().filter((name) => !before.includes(name))).toEqual([]);
  });

  it('is free for the machine’s folder, which takes none, only without users', () => {
    const path = makeStateDir();
    mkdirSync(path);
    const machine = new RootUsers(path, 'machine');
    const user = usersOf();
    expect(machine.refusal(ROOT)).toBeUndefined();
    expect(user.refusal(ROOT)).toBeUndefined();
    expect(machine.refusal(ROOT)).toContain('uses the cgroup root');
  });

  it('is free again when a process with a folder has been killed', async () => {
    const agent = new Agent();
    await agent.tell('open', { stateDir: makeStateDir(), cgroupRoot: ROOT });
    const other = usersOf();
    expect(other.refusal(ROOT)).toContain('uses the cgroup root');
    await agent.kill();
    expect(other.refusal(ROOT)).toBeUndefined();
  });

  it('stays a folder’s that has grants, without a process', async () => {
    const stateDir = makeStateDir();
    const manager = await openManager({ stateDir, cgroupRoot: ROOT });
    const { uid } = await manager.acquire({ cpu: 1, owner: 'persistent' });
    manager.close();
    const other = usersOf();
    expect(other.refusal(ROOT)).toContain(stateDir);
    const later = await openManager({ stateDir });
    await later.release(uid);
    later.close();
    expect(other.refusal(ROOT)).toBeUndefined();
  });
});

describe.runIf(isRoot && findHierarchy('cpuset'))('a manager of another folder', () => {
  it('says whose the cgroup root is, and what to do', async () => {
    const [mine, yours] = [makeStateDir(), makeStateDir()];
    const first = await openManager({ stateDir: mine, cgroupRoot: ROOT, sharedMember: false });
    const second = await openManager({ stateDir: yours, cgroupRoot: ROOT });
    try {
      const request = second.acquire({ cpu: 1, require: 'cpuset' });
      await expect(request).rejects.toMatchObject({
        code: 'ERR_ENFORCEMENT',
        message: expect.stringMatching(
          `${mine} uses the cgroup root ${ROOT}, .* --cgroup-root /numalign-2 --state-dir ${yours}`,
        ),
      });
    } finally {
      first.close();
      second.close();
    }
  });
});
