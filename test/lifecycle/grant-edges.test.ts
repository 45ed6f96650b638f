// needs: process
// Failures between the steps of a grant's life: stopped processes, failing commits, repeated steps.
import { mkdirSync, readdirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { affinity } from '../../lib/entries/diagnostics.js';
import { discover } from '../../lib/entries/topology.js';
import { CpuSet, type Manager, openManager, pin } from '../../lib/index.js';
import { Agent } from '../support/agent.js';
import { errorOf } from '../support/error-of.js';
import { breakCommits } from '../support/full-disk.js';
import { makeStateDir } from '../support/state-dir.js';
import { stopWithoutLock } from '../support/stop.js';

const ALL = affinity();
const MACHINE = { synthetic: 'package:2 [numa(memory=8GiB)] core:4 pu:2' };
const soon = () => new Promise((resolve) => setTimeout(resolve, 5));

async function simulated(stateDir = makeStateDir(), options: object = {}): Promise<Manager> {
  const manager = await openManager({ topology: await discover(MACHINE), stateDir, ...options });
  onTestFinished(() => manager.close());
  return manager;
}

async function agentOn(stateDir: string, options: object = {}): Promise<Agent> {
  const agent = new Agent();
  await agent.tell('open', { stateDir, simulate: MACHINE.synthetic, ...options });
  return agent;
}

// Tests end without a release: the confinement of the process is not its own choice.
beforeEach(() => void pin(ALL));

describe('a transfer', () => {
  it('that is offered once more ends the first, unaccepted one', async () => {
    const manager = await simulated();
    const grant = await manager.acquire({ cpu: 2 });
    const [first, second] = [await grant.transfer(), await grant.transfer()];
    expect(await first.accepted).toBe(false);
    expect(await errorOf(() => manager.takeOver(first.token))).toMatchObject({
      code: 'ERR_UNKNOWN_TRANSFER',
    });
    expect(await first.cancel()).toBe(false);
    expect(await second.cancel()).toBe(true);
    expect(await second.accepted).toBe(false);
    await grant.release();
    expect(manager.grants()).toEqual([]);
  });

  it('calls off the former owner’s announcement', async () => {
    const stateDir = makeStateDir();
    const [old, successor] = [await agentOn(stateDir), await agentOn(stateDir)];
    const { uid } = await old.tell('acquire', { cpu: 2 });
    const token = await old.tell('transfer', { uid });
    const witness = await simulated(stateDir);
    const resizing = old.ask('resize', { uid, cpu: 6, noticeMs: 5_000 });
    while (witness.grants()[0]!.upcoming === null) await soon();
    await successor.tell('takeOver', { token });
    expect(witness.grants()).toMatchObject([{ upcoming: null }]);
    expect(witness.freeCpus().size).toBe(14);
    expect((await resizing).error).toMatchObject({ code: 'ERR_OWNER_ALIVE' });
    expect((await successor.tell('resize', { uid, cpu: 3 })).cpus).toBe('0-2');
  });

  it('is awaited until the signal aborts, and the grant is the successor’s then', async () => {
    const stateDir = makeStateDir();
    const old = await agentOn(stateDir);
    const { uid } = await old.tell('acquire', { cpu: 2 });
    const token = await old.tell('transfer', { uid });
    old.process.kill('SIGSTOP');
    const manager = await simulated(stateDir);
    const abort = new AbortController();
    const taking = errorOf(() => manager.takeOver(token, { signal: abort.signal }));
    while (manager.grants()[0]!.owner.pid !== process.pid) await soon();
    abort.abort();
    const error = await taking;
    expect(error).toMatchObject({ code: 'ERR_OWNER_ALIVE', details: { value: uid, pid: old.process.pid } });
    expect(await errorOf(() => manager.release(uid))).toMatchObject({ code: 'ERR_OWNER_ALIVE' });
    expect(await errorOf(() => manager.grant(uid).resize({ cpu: 3 }))).toMatchObject({
      code: 'ERR_OWNER_ALIVE',
    });
    expect(manager.grants()).toMatchObject([{ alive: true, owner: { pid: process.pid } }]);
    old.process.kill('SIGCONT');
    await expect
      .poll(async () => (await errorOf(() => manager.release(uid))).code, { timeout: 20_000 })
      .toBe('ERR_UNKNOWN_GRANT');
  });

  it.runIf(ALL.size > 1)(
    'keeps the CPUs while the former owner’s child is on them, whichever process ends',
    async () => {
      const stateDir = makeStateDir();
      const manager = await openManager({ stateDir });
      onTestFinished(() => manager.close());
      const grant = await manager.acquire({ cpu: 1 });
      const { token, accepted } = await grant.transfer();
      const child = grant.spawn('sleep', ['60']);
      onTestFinished(() => void child.kill('SIGKILL'));
      const successor = new Agent();
      await successor.tell('open', { stateDir });
      const taking = successor.ask('takeOver', { token });
      while (manager.grants()[0]!.owner.pid !== successor.process.pid) await soon();
      expect(await errorOf(() => grant.handOver())).toMatchObject({ code: 'ERR_OWNER_ALIVE' });
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGKILL');
      await ended;
      expect((await taking).value).toMatchObject({ uid: grant.uid });
      expect(await accepted).toBe(true);
    },
  );
});

describe('a resize', () => {
  it('that fails is called off', async () => {
    const manager = await simulated(makeStateDir(), { lockTimeoutMs: 1_000 });
    const grant = await manager.acquire({ cpu: 2 });
    const { native } = await import('../../lib/base/native.js');
    const folder = native.Folder.open(manager.stateDir, false, 0o700, -1);
    const outcome = errorOf(() => grant.resize({ cpu: 10, noticeMs: 1_500 }));
    while (grant.upcoming === null) await soon();
    // The process that announced it may still have the lock.
    let lock = folder.tryLock('lock', 'a test');
    for (; !lock; lock = folder.tryLock('lock', 'a test')) await soon();
    expect((await outcome).code).toBe('ERR_LOCK_TIMEOUT');
    lock.release();
    await expect.poll(() => grant.upcoming, { timeout: 20_000 }).toBe(null);
    expect(manager.freeCpus().size).toBe(14);
  });

  it('changes nothing if the disk is full', async () => {
    const manager = await simulated();
    const grant = await manager.acquire({ cpu: 2 });
    const repair = breakCommits(manager.stateDir);
    expect((await errorOf(() => grant.resize({ cpu: 4 }))).code).toMatch(/ERR_S/);
    repair();
    expect([grant.cpus.size, grant.upcoming]).toEqual([2, null]);
    await grant.resize({ cpu: 4 });
  });

  it('takes and gives whole cores on request', async () => {
    const manager = await simulated();
    const grant = await manager.acquire({ cpu: 4, cpuManagerPolicyOptions: { 'full-pcpus-only': true } });
    for (const cpu of [3, 5]) {
      expect(await errorOf(() => grant.resize({ cpu }))).toMatchObject({ code: 'ERR_SMT_ALIGNMENT' });
    }
    await grant.resize({ cpu: 6 });
    await grant.resize({ cpu: 2 });
    expect(manager.topology.wholeCores(grant.cpus).size).toBe(2);
  });

  it('to no memory gives only the memory back, not the hugepages', async () => {
    const described = (await discover({ synthetic: '[numa(memory=8GiB)] core:4 pu:1' })).toJSON() as any;
    const nodes = described.nodes.map((node: object) => ({
      ...node,
      hugepages: [{ sizeKiB: 2048, count: 64 }],
    }));
    const topology = await discover({ json: { ...described, nodes } });
    const manager = await openManager({ topology });
    const grant = await manager.acquire({ cpu: 1, memory: '1Gi', resources: { 'hugepages-2Mi': '128Mi' } });
    await grant.resize({ memory: 0 });
    expect(grant.memory).toMatchObject([{ type: 'hugepages-2Mi', bytes: 2 ** 27 }]);
    const other = errorOf(() => manager.acquire({ cpu: 1, resources: { 'hugepages-2Mi': '2Mi' } }));
    expect(await other).toMatchObject({ code: 'ERR_INSUFFICIENT_MEMORY' });
    await grant.resize({ cpu: 2, memory: '2Gi' });
    expect(grant.memory.map(({ bytes }) => bytes).sort()).toEqual([2 ** 27, 2 ** 31]);
    await grant.release();
    expect(manager.memory().every(({ reserved }) => reserved === 0)).toBe(true);
  });
});

describe('a release', () => {
  it('ends only its own grant, even if another has its uid since', async () => {
    const manager = await simulated();
    const spec = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'p', uid: 'u' },
      spec: { containers: [{ name: 'a', resources: { limits: { cpu: 1, memory: '1Gi' } } }] },
    } as never;
    const first = await manager.admit(spec);
    await first.release();
    await soon();
    await manager.admit(spec);
    expect(await errorOf(() => first.release())).toMatchObject({ code: 'ERR_UNKNOWN_GRANT' });
    expect(manager.grants()).toHaveLength(1);
  });

  it.runIf(ALL.size > 1)('keeps threads and children off from its start', async () => {
    const manager = await openManager({ stateDir: makeStateDir() });
    onTestFinished(() => void pin(ALL));
    const grant = await manager.acquire({ cpu: 1 });
    // A later lookup may not find it: the commit is another thread's.
    const again = manager.grant(grant.uid);
    const releasing = grant.release();
    await Promise.resolve();
    expect(() => again.pin()).toThrow(expect.objectContaining({ code: 'ERR_GRANT_RELEASED' }));
    expect(() => again.spawn('true')).toThrow(expect.objectContaining({ code: 'ERR_GRANT_RELEASED' }));
    await releasing;
    expect(affinity().equals(ALL)).toBe(true);
  });

  it.runIf(ALL.size > 1)('to an ended child leaves no thread behind, even if the commit fails', async () => {
    const manager = await openManager({ stateDir: makeStateDir() });
    onTestFinished(() => void pin(ALL));
    const grant = await manager.acquire({ cpu: 1 });
    grant.pin();
    const repair = breakCommits(manager.stateDir);
    expect((await errorOf(() => grant.handOver())).code).toMatch(/ERR_S/);
    expect(affinity().intersects(grant.cpus)).toBe(false);
    repair();
    const other = await manager.acquire({ cpu: ALL.size - 1 });
    expect(manager.grants()).toMatchObject([{ uid: other.uid }]);
    await other.release();
  });
});

describe('waiting', () => {
  it('is not held up by a stopped process, which has its place again when it continues', async () => {
    const stateDir = makeStateDir();
    const manager = await simulated(stateDir);
    const holder = await manager.acquire({ cpu: 14 });
    const stopped = await agentOn(stateDir);
    await stopped.tell('begin', { key: 'a', cpu: 15 });
    while (readdirSync(join(stateDir, 'waiting')).length < 1) await soon();
    await stopWithoutLock(stopped, stateDir);
    await holder.release();
    const grant = await manager.acquire({ cpu: 2, wait: true, signal: AbortSignal.timeout(60_000) });
    stopped.process.kill('SIGCONT');
    await grant.release();
    expect((await stopped.tell('settled', { key: 'a' })).cpus).toBe('0-14');
  });

  it('goes on in order when the first ones are stopped, killed or give up', async () => {
    const stateDir = makeStateDir();
    const manager = await simulated(stateDir);
    const holder = await manager.acquire({ cpu: 14 });
    const agents: Agent[] = [];
    for (const cpu of [15, 14, 13, 12, 11]) {
      const agent = await agentOn(stateDir);
      await agent.tell('begin', { key: 'a', cpu });
      agents.push(agent);
      while (readdirSync(join(stateDir, 'waiting')).length < agents.length) await soon();
    }
    const [stopped, killed, aborted, next, last] = agents as [Agent, Agent, Agent, Agent, Agent];
    await stopWithoutLock(stopped, stateDir);
    await killed.kill();
    await aborted.tell('abort', { key: 'a' });
    await holder.release();
    const { uid } = await next.tell('settled', { key: 'a' });
    expect(readdirSync(join(stateDir, 'waiting'))).toContain('5'.padStart(16, '0'));
    await next.tell('release', { uid });
    const grant = await last.tell('settled', { key: 'a' });
    await last.tell('release', { uid: grant.uid });
    stopped.process.kill('SIGCONT');
    expect((await stopped.tell('settled', { key: 'a' })).cpus).toBe('0-14');
  });

  it('ignores other files in its folder', async () => {
    const manager = await simulated();
    mkdirSync(join(manager.stateDir, 'waiting', 'lost+found'));
    writeFileSync(join(manager.stateDir, 'waiting', 'note'), 'mine');
    const holder = await manager.acquire({ cpu: 14 });
    const waiting = manager.acquire({ cpu: 14, wait: true });
    while (readdirSync(join(manager.stateDir, 'waiting')).length < 3) await soon();
    await holder.release();
    await (await waiting).release();
    expect(readdirSync(join(manager.stateDir, 'waiting')).sort()).toEqual(['lost+found', 'note']);
    rmdirSync(join(manager.stateDir, 'waiting', 'lost+found'));
  });

  it('ends with the manager', async () => {
    const manager = await simulated();
    await manager.acquire({ cpu: 14, owner: 'persistent' });
    const waiting = expect(manager.acquire({ cpu: 14, wait: true })).rejects.toMatchObject({
      code: 'ERR_MANAGER_CLOSED',
    });
    while (readdirSync(join(manager.stateDir, 'waiting')).length < 1) await soon();
    manager.close();
    await waiting;
    expect(readdirSync(join(manager.stateDir, 'waiting'))).toEqual([]);
  });
});

describe('a state folder', () => {
  it('whose lock is removed while a stopped process has it keeps that process from committing', async () => {
    const stateDir = makeStateDir();
    const manager = await simulated(stateDir);
    let reached = () => {};
    const isInside = new Promise<void>((resolve) => (reached = resolve));
    let proceed = () => {};
    const { Ledger } = await import('../../lib/state/ledger.js');
    const ledger = Ledger.open(stateDir);
    const late = ledger.transact({ lockTimeoutMs: 1000, totalOn: () => 0 }, async (checkpoint, commit) => {
      reached();
      await new Promise<void>((resolve) => (proceed = resolve));
      await commit(checkpoint!.assignments);
    });
    const outcome = expect(late).rejects.toMatchObject({ code: 'ERR_STATE_FOLDER' });
    await isInside;
    rmSync(join(stateDir, 'lock'));
    const agent = await agentOn(stateDir);
    const { uid } = await agent.tell('acquire', { cpu: 4 });
    proceed();
    await outcome;
    expect(manager.grants()).toMatchObject([{ uid }]);
  });

  it('that has lost all its files, and is recovered by another process, continues above the generations that others have seen', async () => {
    const stateDir = makeStateDir();
    const manager = await simulated(stateDir);
    const mine = await manager.acquire({ cpu: 2 });
    for (let i = 0; i < 5; i++) await (await manager.acquire({ cpu: 1, owner: 'persistent' })).release();
    const generation = manager.generation();
    for (const name of ['state.json', 'state.copy.json']) rmSync(join(stateDir, name));
    const other = await agentOn(stateDir);
    const theirs = await other.tell('acquire', { cpu: 4 });
    expect(manager.generation()).toBeGreaterThan(generation);
    expect(CpuSet.parse(theirs.cpus).intersects(mine.cpus)).toBe(false);
    const third = await manager.acquire({ cpu: 9 });
    expect(third.cpus.intersects(CpuSet.parse(theirs.cpus))).toBe(false);
    expect(manager.grants()).toHaveLength(3);
  });

  it('with an older state put back is not trusted by an opener while an owner lives', async () => {
    const stateDir = makeStateDir();
    const { copyFileSync } = await import('node:fs');
    const owner = await agentOn(stateDir);
    copyFileSync(join(stateDir, 'state.json'), join(stateDir, 'older'));
    const { cpus } = await owner.tell('acquire', { cpu: 4 });
    for (let i = 0; i < 3; i++)
      await owner.tell('release', { uid: (await owner.tell('acquire', { cpu: 1 })).uid });
    copyFileSync(join(stateDir, 'older'), join(stateDir, 'state.json'));
    const other = await agentOn(stateDir);
    const theirs = await other.tell('acquire', { cpu: 8 });
    expect(CpuSet.parse(theirs.cpus).intersects(CpuSet.parse(cpus))).toBe(false);
    expect(await other.tell('grants')).toHaveLength(2);
  });
});
