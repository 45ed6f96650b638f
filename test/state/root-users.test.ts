// needs: machine
// Which state folder may use a cgroup root: one at a time, for as long as it has grants there.
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { diagnose } from '../../lib/entries/diagnostics.js';
import { CpuSet, openManager } from '../../lib/index.js';
import { cgroupRootRefusal, forgetFolder, RootUsers } from '../../lib/state/root-users.js';
import { hierarchy, isUsable, ownRoot, ROOT, removeAll } from '../cgroups/own-root.js';
import { agentOf, BOB } from '../enforcement/users.js';
import { Agent } from '../support/agent.js';
import { makeStateDir } from '../support/state-dir.js';
import { canBeStranger } from '../support/strangers.js';

const CHOICES = '/run/numalign-root';
const FILE = join(CHOICES, `user-of-${encodeURIComponent(ROOT)}`);
const RESERVED = { reservedSystemCPUs: '0', cgroupRoot: ROOT } as const;

const CLAIM = { cgroupRoot: ROOT, managedCPUs: null };

async function opened(stateDir = makeStateDir(), options = {}) {
  const manager = await openManager({ stateDir, ...RESERVED, sharedMember: false, ...options });
  onTestFinished(() => {
    manager.close();
    forgetFolder(stateDir);
  });
  return manager;
}

const groupOf = (uid: string) => join(hierarchy!.mount.point, ROOT, `${uid}%2Fmain`);

const sharedCpus = () =>
  readFileSync(join(hierarchy!.mount.point, ROOT, 'shared/cpuset.cpus'), 'utf8').trim();

describe.runIf(isUsable)('two state folders of root with one cgroup root', () => {
  it('get levels above members one after the other', async () => {
    ownRoot();
    const [first, second] = [await opened(), await opened()];
    const member = { sharedMember: true };
    const [agent, other] = [new Agent(), new Agent()];
    await agent.tell('open', { stateDir: first.stateDir, ...RESERVED, ...member });
    await other.tell('open', { stateDir: second.stateDir, ...RESERVED, ...member });
    const grant = await first.acquire({ cpu: 1 });
    expect([grant.enforcement, sharedCpus()]).toEqual(['cpuset', '0']);
    expect(readFileSync(FILE, 'utf8')).toBe(first.stateDir);

    const why = `the state folder ${first.stateDir} uses the cgroup root ${ROOT}, and does not know of grants in ${second.stateDir}: use one state folder for both, or other CPUs and another root: \`numalign configure --cgroup-root ${ROOT}-2 --managed LIST --state-dir ${second.stateDir}\``;
    await expect(second.acquire({ cpu: 1, require: 'cpuset' })).rejects.toMatchObject({
      code: 'ERR_ENFORCEMENT',
      message: expect.stringContaining(why),
    });
    const weak = await second.acquire({ cpu: 1 });
    expect(weak.enforcement).toBe('members');
    await second.reconcile();
    await weak.release();
    expect(sharedCpus()).toBe('0');
    const { findings } = await diagnose({ stateDir: second.stateDir });
    expect(findings.find(({ check }) => check === 'cgroups')).toMatchObject({
      status: 'warning',
      found: expect.stringContaining(`the state folder ${first.stateDir} uses the cgroup root`),
      advice: expect.stringContaining(`--cgroup-root ${ROOT}-2`),
    });

    await grant.release();
    const strong = await second.acquire({ cpu: 1 });
    expect(strong.enforcement).toBe('cpuset');
    await expect(first.acquire({ cpu: 1, require: 'cpuset' })).rejects.toThrow(second.stateDir);
    await strong.release();
  });

  it('leave the root to the other with their last grant, to which a process belongs or none', async () => {
    ownRoot();
    const [first, second] = [await opened(), await opened()];
    const agent = new Agent();
    await agent.tell('open', { stateDir: first.stateDir, ...RESERVED });
    await agent.tell('acquire', { cpu: 1 });
    expect(new RootUsers(second.stateDir).refusal(CLAIM)?.why).toContain(first.stateDir);
    first.close();
    await agent.kill();
    expect(new RootUsers(second.stateDir).refusal(CLAIM)).toBeUndefined();
    await second.acquire({ cpu: 1, owner: 'persistent', name: 'kept' });
    expect(readFileSync(FILE, 'utf8')).toBe(second.stateDir);
    second.close();
    expect(new RootUsers(first.stateDir).refusal(CLAIM)?.why).toContain(second.stateDir);
    rmSync(second.stateDir, { recursive: true });
    expect(new RootUsers(first.stateDir).refusal(CLAIM)).toBeUndefined();
  });

  it('are told alike to synchronous code, and as they are now after it', async () => {
    ownRoot();
    const [first, second] = [await opened(), await opened()];
    await new Agent().tell('open', { stateDir: first.stateDir, ...RESERVED, sharedMember: true });
    await first.acquire({ cpu: 1 });
    const users = new RootUsers(second.stateDir);
    expect(users.refusal(CLAIM)?.why).toContain(first.stateDir);
    rmSync(FILE);
    expect(users.refusal(CLAIM)?.why).toContain(first.stateDir);
    await Promise.resolve();
    expect(users.refusal(CLAIM)).toBeUndefined();
  });

  it('are rivals on the same CPUs below roots of their own too, and none on others', async () => {
    ownRoot();
    const OTHER = `${ROOT}-2`;
    onTestFinished(() => removeAll(join(hierarchy!.mount.point, OTHER)));
    const first = await opened(undefined, { managedCPUs: '0-1' });
    const second = await opened(undefined, { cgroupRoot: OTHER });
    for (const { stateDir } of [first, second])
      await new Agent().tell('open', { stateDir, sharedMember: true });
    const grant = await first.acquire({ cpu: 1 });
    const why = `the state folder ${first.stateDir} enforces on the same CPUs, and does not know of grants in ${second.stateDir}: use one state folder for both, or other CPUs and another root: \`numalign configure --cgroup-root ${OTHER}-2 --managed LIST --state-dir ${second.stateDir}\``;
    await expect(second.acquire({ cpu: 1, require: 'cpuset' })).rejects.toThrow(why);
    const weak = await second.acquire({ cpu: 1 });
    expect(weak.enforcement).toBe('members');
    await weak.release();
    expect(cgroupRootRefusal(second.stateDir, OTHER, null)).toBe(why);
    expect(cgroupRootRefusal(second.stateDir, OTHER, CpuSet.of(2))).toBeUndefined();
    // It keeps its place, and leaves it with its last grant.
    expect(cgroupRootRefusal(first.stateDir, ROOT, null)).toBeUndefined();
    await grant.release();
    const strong = await second.acquire({ cpu: 1 });
    expect(strong.enforcement).toBe('cpuset');
    expect(existsSync(FILE)).toBe(false);
    await expect(first.acquire({ cpu: 1, require: 'cpuset' })).rejects.toThrow(second.stateDir);
    await strong.release();
  });

  it('leave nothing on record when they are removed', async () => {
    ownRoot();
    const manager = await opened();
    await (await manager.acquire({ cpu: 1 })).release();
    expect(existsSync(FILE)).toBe(true);
    forgetFolder(manager.stateDir);
    expect(existsSync(CHOICES) && readdirSync(CHOICES).includes(FILE)).toBe(false);
    expect(existsSync(FILE)).toBe(false);
  });

  it('find processes on grants of a build that leaves no record, until they have left', async () => {
    ownRoot();
    const manager = await opened();
    await new Agent().tell('open', { stateDir: manager.stateDir, ...RESERVED });
    const older = new Agent();
    const folder = makeStateDir();
    await older.tell('open', { stateDir: folder, ...RESERVED });
    const { uid } = await older.tell('acquire', { cpu: 1 });
    await older.tell('pin', { uid });
    rmSync(FILE);

    const why = `processes run in ${groupOf(uid)}, the cgroup of a grant that is not on record in ${manager.stateDir}: use one state folder for both`;
    await expect(manager.acquire({ cpu: 1, require: 'cpuset' })).rejects.toThrow(why);
    const weak = await manager.acquire({ cpu: 1 });
    expect(weak.enforcement).toBe('members');
    await weak.release();
    expect([sharedCpus(), existsSync(FILE)]).toEqual(['0', false]);
    expect(cgroupRootRefusal(manager.stateDir, ROOT, null)).toContain(why);
    const { findings } = await diagnose({ stateDir: manager.stateDir });
    expect(findings.find(({ check }) => check === 'cgroups')?.found).toContain(groupOf(uid));
    // Its own state knows the grant.
    expect(cgroupRootRefusal(folder, ROOT, null)).toBeUndefined();

    await older.kill();
    const strong = await manager.acquire({ cpu: 1, require: 'cpuset' });
    expect(readFileSync(FILE, 'utf8')).toBe(manager.stateDir);
    await strong.release();
  });
});

describe.runIf(isUsable && canBeStranger)('root and a user with one cgroup root', () => {
  it('find each other’s processes on grants', async () => {
    ownRoot();
    const root = join(hierarchy!.mount.point, ROOT);
    mkdirSync(root);
    for (const file of ['cpuset.cpus', 'cpuset.mems'])
      writeFileSync(join(root, file), readFileSync(join(hierarchy!.mount.point, file)));
    for (const file of ['', 'cgroup.procs', 'cpuset.cpus', 'cpuset.mems', 'tasks'])
      chownSync(join(root, file), BOB, BOB);
    const bobsFolder = makeStateDir();
    mkdirSync(bobsFolder, { mode: 0o700 });
    chownSync(bobsFolder, BOB, BOB);
    chmodSync(join(bobsFolder, '..'), 0o755);
    const bob = await agentOf(BOB, bobsFolder, RESERVED);
    const stateDir = makeStateDir();
    onTestFinished(() => forgetFolder(stateDir));
    const ours = new Agent();
    await ours.tell('open', { stateDir, ...RESERVED });
    const { uid, enforcement } = await bob.tell('acquire', { cpu: 1 });
    expect(enforcement).toBe('cpuset');
    await bob.tell('pin', { uid });
    expect(readFileSync(join(groupOf(uid), 'cgroup.procs'), 'utf8')).toBe(`${bob.pid}\n`);

    const refused = await ours.ask('acquire', { cpu: 1, require: 'cpuset' });
    expect(refused.error?.message).toContain(groupOf(uid));
    await bob.tell('release', { uid });
    const strong = await ours.tell('acquire', { cpu: 1, require: 'cpuset' });
    await ours.tell('pin', { uid: strong.uid });
    const { error } = await bob.agent.ask('acquire', { cpu: 1, require: 'cpuset' });
    expect(error?.message).toContain(groupOf(strong.uid));
  });
});
