// needs: agents
// A grant that gets another owner: for example, it is admitted before its cgroup exists, and
// becomes the cgroup's once that has its first process.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { discover } from '../../lib/entries/topology.js';
import { type Manager, openManager } from '../../lib/index.js';
import { Agent } from '../support/agent.js';
import { errorOf } from '../support/error-of.js';
import { end, hierarchies, makeCgroup, populate } from '../support/owner-cgroups.js';
import { guaranteed } from '../support/simulated.js';
import { makeStateDir } from '../support/state-dir.js';

const MACHINE = 'core:8 pu:1';
const POD = { uid: 'p', name: 'job', containers: [guaranteed('main', { cpu: 2 })] };

async function open(stateDir = makeStateDir()): Promise<Manager> {
  const manager = await openManager({ topology: await discover({ synthetic: MACHINE }), stateDir });
  onTestFinished(() => manager.close());
  return manager;
}

async function agentAt(stateDir: string): Promise<Agent> {
  const agent = new Agent();
  await agent.tell('open', { stateDir, simulate: MACHINE });
  return agent;
}

const ownersIn = ({ stateDir }: Manager) =>
  readdirSync(join(stateDir, 'owners')).map(
    (name) => JSON.parse(readFileSync(join(stateDir, 'owners', name), 'utf8').split('\n')[0]!).kind,
  );

function damage({ stateDir }: Manager): void {
  for (const name of ['state.json', 'state.copy.json']) writeFileSync(join(stateDir, name), 'nonsense');
}

describe.each(hierarchies())('a grant that a cgroup (%s) gets', (version, mount) => {
  it('ends with the last process of the cgroup, and not before', async () => {
    const manager = await open();
    const pod = await manager.admit(POD, { owner: 'persistent' });
    const cgroup = makeCgroup(mount);
    const child = populate(makeCgroup(cgroup, 'inner'));
    await pod.setOwner({ cgroup });
    const later = await open(manager.stateDir);
    await (await later.acquire({ cpu: 1 })).release();
    expect(later.grants()).toMatchObject([{ uid: 'p', alive: true, owner: { kind: 'cgroup', pid: null } }]);
    await end(child);
    expect(later.grants()).toMatchObject([{ alive: false }]);
    await (await later.acquire({ cpu: 7 })).release();
    expect(later.grants()).toEqual([]);
  });

  it('keeps everything except its owner, whose file replaces the former one', async () => {
    const manager = await open();
    const pod = await manager.admit(POD, { owner: 'persistent' });
    const before = manager.status().grants;
    const cgroup = makeCgroup(mount);
    populate(cgroup);
    expect(ownersIn(manager)).toEqual(['persistent']);
    await pod.setOwner({ cgroup });
    expect(ownersIn(manager)).toEqual(['cgroup']);
    const owner = { kind: 'cgroup', pid: null, command: null, cgroup };
    expect(manager.status().grants).toMatchObject(before.map((grant) => ({ ...grant, owner })));
  });

  it('is followed by an earlier watcher, which stops checking the former owner', async () => {
    const manager = await open();
    const watcher = await open(manager.stateDir);
    const removed: string[] = [];
    watcher.on('change', (change) => removed.push(...change.removed.map(({ uid }) => uid)));
    const [first, second] = [makeCgroup(mount), makeCgroup(mount)];
    const [one, another] = [populate(first), populate(second)];
    const pod = await manager.admit(POD, { owner: { cgroup: first } });
    await pod.setOwner({ cgroup: second });
    await expect.poll(() => watcher.generation()).toBe(manager.generation());
    await end(one);
    await (await manager.acquire({ cpu: 1 })).release();
    expect(manager.grants()).toMatchObject([{ uid: 'p', alive: true }]);
    expect(removed).not.toContain('p');
    await end(another);
    // v1 sends no notice: a listener checks every half minute, and so does the next transaction.
    if (version === 'v1') await (await manager.acquire({ cpu: 1 })).release();
    await expect.poll(() => removed).toContain('p');
    expect(manager.grants()).toEqual([]);
  });

  it('stays if the process that admitted it is killed before and after', async () => {
    const manager = await open();
    const agent = await agentAt(manager.stateDir);
    await agent.tell('admit', { pod: POD, owner: 'persistent' });
    await agent.kill();
    expect(manager.grants()).toMatchObject([{ uid: 'p', alive: true, owner: { kind: 'persistent' } }]);
    const cgroup = makeCgroup(mount);
    const child = populate(cgroup);
    const successor = await agentAt(manager.stateDir);
    await successor.tell('setOwner', { uid: 'p', owner: { cgroup } });
    await successor.kill();
    await (await manager.acquire({ cpu: 1 })).release();
    expect(manager.grants()).toMatchObject([{ uid: 'p', alive: true, owner: { kind: 'cgroup' } }]);
    await end(child);
    await (await manager.acquire({ cpu: 1 })).release();
    expect(manager.grants()).toEqual([]);
  });

  it('outlives the process that owned it', async () => {
    const manager = await open();
    const agent = await agentAt(manager.stateDir);
    await agent.tell('admit', { pod: POD });
    const cgroup = makeCgroup(mount);
    populate(cgroup);
    await agent.tell('setOwner', { uid: 'p', owner: { cgroup } });
    await agent.kill();
    await (await manager.acquire({ cpu: 1 })).release();
    expect(manager.grants()).toMatchObject([{ uid: 'p', alive: true }]);
  });

  it('is its cgroup’s after the state was damaged', async () => {
    const manager = await open();
    const pod = await manager.admit(POD, { owner: 'persistent' });
    const cgroup = makeCgroup(mount);
    populate(cgroup);
    await pod.setOwner({ cgroup });
    damage(manager);
    await manager.configure({});
    expect(manager.grants()).toMatchObject([{ uid: 'p', alive: true, owner: { kind: 'cgroup' } }]);
  });

  it('can be persistent again, whatever happens to the cgroup', async () => {
    const manager = await open();
    const cgroup = makeCgroup(mount);
    const child = populate(cgroup);
    const pod = await manager.admit(POD, { owner: { cgroup } });
    await pod.setOwner('persistent');
    await end(child);
    await (await manager.acquire({ cpu: 1 })).release();
    expect(manager.grants()).toMatchObject([{ uid: 'p', alive: true, owner: { kind: 'persistent' } }]);
    expect(ownersIn(manager).filter((kind) => kind !== 'process')).toEqual(['persistent']);
  });

  it('is on record once if the cgroup owns it already', async () => {
    const manager = await open();
    const cgroup = makeCgroup(mount);
    populate(cgroup);
    const pod = await manager.admit(POD, { owner: 'persistent' });
    await pod.setOwner('persistent');
    expect(manager.generation()).toBe(2);
    await pod.setOwner({ cgroup });
    await pod.setOwner({ cgroup: `${cgroup}/.` });
    expect(manager.generation()).toBe(3);
    // A different cgroup is a different owner.
    const other = makeCgroup(mount);
    populate(other);
    await pod.setOwner({ cgroup: other });
    expect(manager.generation()).toBe(4);
  });

  it('stays unchanged if the cgroup does not exist, or has no process', async () => {
    const manager = await open();
    const pod = await manager.admit(POD, { owner: 'persistent' });
    const cgroup = makeCgroup(mount);
    const generation = manager.generation();
    for (const owner of [
      { cgroup },
      { cgroup: join(cgroup, 'nothing') },
      { cgroup: '/tmp' },
      { cgroup: 'relative' },
      'process',
      undefined,
      { cgroups: cgroup },
    ]) {
      expect((await errorOf(() => pod.setOwner(owner as 'persistent'))).code).toBe('ERR_INVALID_OPTION');
    }
    expect(manager.generation()).toBe(generation);
    expect(ownersIn(manager)).toEqual(['persistent']);
  });

  it('is not changed once it has ended, or while another process has it', async () => {
    const manager = await open();
    const agent = await agentAt(manager.stateDir);
    await agent.tell('admit', { pod: POD });
    const pod = manager.pod('p');
    const cgroup = makeCgroup(mount);
    const child = populate(cgroup);
    const { code, details } = await errorOf(() => pod.setOwner({ cgroup }));
    expect([code, details.pid]).toEqual(['ERR_OWNER_ALIVE', agent.process.pid]);
    await agent.kill();
    expect((await errorOf(() => pod.setOwner({ cgroup }))).code).toBe('ERR_UNKNOWN_GRANT');
    const again = await manager.admit(POD, { owner: { cgroup } });
    await end(child);
    expect((await errorOf(() => again.setOwner('persistent'))).code).toBe('ERR_UNKNOWN_GRANT');
  });
});

describe.each(hierarchies())('with very many cgroups (%s) that own grants', (_, mount) => {
  // More than one step checks.
  const MANY = 40;
  const one = (uid: number | string) => ({ uid: `${uid}`, containers: [guaranteed('main', { cpu: 1 })] });

  async function full() {
    const topology = await discover({ synthetic: `core:${MANY + 3} pu:1` });
    const manager = await openManager({ topology, stateDir: makeStateDir() });
    onTestFinished(() => manager.close());
    const above = makeCgroup(mount);
    const children = [];
    for (let i = 0; i < MANY; i++) {
      const cgroup = makeCgroup(above, `${i}`);
      children.push(populate(cgroup));
      await manager.admit(one(i), { owner: { cgroup } });
    }
    return { manager, children };
  }

  it('a pod gets the CPUs of any that has ended, even if it was not checked before', async () => {
    const { manager, children } = await full();
    for (const at of [7, 23, 38]) {
      await end(children[at]!);
      expect((await manager.acquire({ cpu: 3 })).cpus.size).toBe(3);
      for (const { uid, owner } of manager.grants()) if (owner.kind === 'process') await manager.release(uid);
      expect(manager.grants().map(({ uid }) => uid)).not.toContain(`${at}`);
      await manager.admit(one(`again-${at}`), { owner: 'persistent' });
    }
  });

  it('a pod whose cgroup has ended is admitted again by its uid, whatever its request', async () => {
    const { manager, children } = await full();
    for (const at of [7, 38]) {
      await end(children[at]!);
      expect(await manager.admit(one(at), { owner: 'persistent' })).toMatchObject({ alreadyAdmitted: false });
    }
    await end(children[21]!);
    const other = { uid: '21', containers: [{ name: 'other' }] };
    expect(await manager.admit(other, { owner: 'persistent' })).toMatchObject({ alreadyAdmitted: false });
    expect(await manager.admit(one(3))).toMatchObject({ alreadyAdmitted: true });
    expect((await errorOf(() => manager.admit({ ...other, uid: '3' }))).code).toBe('ERR_POD_CONFLICT');
  });

  it('each ended one is taken back in its turn, whatever else happens', async () => {
    const { manager, children } = await full();
    await end(children[38]!);
    for (let n = 0; n < 3; n++) await (await manager.acquire({ cpu: 1 })).release();
    expect(manager.grants()).toHaveLength(MANY - 1);
    await end(children[5]!);
    // It is noticed, and ends with the next step.
    expect(manager.grants().filter(({ alive }) => !alive)).toMatchObject([{ uid: '5' }]);
    await manager.acquire({ cpu: 1 });
    expect(manager.grants().map(({ uid }) => uid)).not.toContain('5');
  });

  it('an ended one gets no other owner', async () => {
    const { manager, children } = await full();
    for (const at of [3, 20, 37]) {
      await end(children[at]!);
      const { code, details } = await errorOf(() => manager.pod(`${at}`).setOwner('persistent'));
      expect(code).toBe('ERR_UNKNOWN_GRANT');
      expect(details.valid).not.toContain(`${at}`);
    }
  });
});

describe('a grant that is handed over', () => {
  it('is not the successor’s if it gets another owner before', async () => {
    const manager = await open();
    const grant = await manager.acquire({ cpu: 1 });
    const { token, accepted } = await grant.transfer();
    await manager.pod(grant.uid).setOwner('persistent');
    expect(await accepted).toBe(false);
    expect((await errorOf(() => manager.takeOver(token))).code).toBe('ERR_UNKNOWN_TRANSFER');
    expect(manager.grants()).toMatchObject([{ uid: grant.uid, owner: { kind: 'persistent' } }]);
  });
});
