// needs: process
// Several processes on one folder, on the real machine.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { affinity } from '../../lib/entries/diagnostics.js';
import { discover } from '../../lib/entries/topology.js';
import { CpuSet, openManager, pin } from '../../lib/index.js';
import { Agent } from '../support/agent.js';
import { canMount, canUnshare } from '../support/rights.js';
import { makeStateDir } from '../support/state-dir.js';
import { ownerMembersOf } from '../support/state-text.js';

const SECCOMP = fileURLToPath(new URL('../support/seccomp.py', import.meta.url));
const ALL = affinity();
const RESERVED = String(ALL.first);
const REST = ALL.difference(CpuSet.of(ALL.first!));

async function openAgent(stateDir: string, prefix: string[] = [], options: object = {}): Promise<Agent> {
  const agent = new Agent(prefix);
  await agent.tell('open', { stateDir, reservedSystemCPUs: RESERVED, ...options });
  return agent;
}

// A killed namespace takes a moment until its last process has ended.
async function eventually<T>(attempt: () => Promise<T>): Promise<T> {
  for (const end = Date.now() + 10_000; ; ) {
    try {
      return await attempt();
    } catch (error) {
      if (Date.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

// A shared member in another namespace moves by itself; on a busy machine not always in the time
// that the requester waits. Nothing has changed then.
async function askFor(agent: Agent, cpu: number) {
  for (;;) {
    const answer = await agent.ask('acquire', { cpu });
    if (answer.error?.code !== 'ERR_MEMBER_UNMOVABLE') return answer;
  }
}

// Both request all free CPUs at once: one gets them, the other learns the holder; after kill -9
// they are free again.
async function twoRivals(stateDir: string, prefix: string[]): Promise<void> {
  const agents = await Promise.all([openAgent(stateDir, prefix), openAgent(stateDir, prefix)]);
  const answers = await Promise.all(agents.map((agent) => askFor(agent, REST.size)));
  const winner = answers.findIndex((answer) => answer.value);
  expect(answers.filter((answer) => answer.value)).toHaveLength(1);
  expect(answers[winner]!.value.cpus).toBe(String(REST));
  expect(answers[1 - winner]!.error).toMatchObject({
    code: 'ERR_INSUFFICIENT_CPUS',
    message: expect.stringContaining(`: ${REST}`),
  });

  await agents[winner]!.tell('pin', { uid: answers[winner]!.value.uid });
  expect(await agents[winner]!.tell('mask')).toBe(String(REST));
  const loser = agents[1 - winner]!;
  expect(await loser.tell('sharedPool')).toBe(RESERVED);
  await agents[winner]!.kill('SIGKILL');
  const second = await eventually(() => loser.tell('acquire', { cpu: REST.size }));
  expect(second.cpus).toBe(String(REST));
  expect((await loser.tell('grants')).map((grant: { uid: string }) => grant.uid)).toEqual([second.uid]);
  await loser.tell('release', { uid: second.uid });
  expect(await loser.tell('sharedPool')).toBe(String(ALL));
}

// Tests end without a release: the confinement of the process is not its own choice.
beforeEach(() => void pin(ALL));

describe.runIf(ALL.size > 1)('two processes', () => {
  it('never get the same CPU; the first one’s CPUs are the second’s after kill -9', () =>
    twoRivals(makeStateDir(), []));

  it.runIf(canUnshare)('never get the same CPU in different pid and mount namespaces', () =>
    // The kill of unshare ends the first process of its namespace too.
    twoRivals(makeStateDir(), ['unshare', '-pmf', '--kill-child=SIGKILL', '--mount-proc']),
  );

  it('see a dead owner as dead without a notice of its end, and the next transaction takes its CPUs back', async () => {
    const stateDir = makeStateDir();
    const deaf = ['python3', SECCOMP, 'EMFILE=inotify_init1', '--'];
    const [first, second] = [await openAgent(stateDir), await openAgent(stateDir, deaf)];
    await first.tell('acquire', { cpu: 1, name: 'mortal' });
    expect(await second.tell('grants')).toMatchObject([{ name: 'mortal', alive: true }]);
    await first.kill();
    expect(await second.tell('grants')).toMatchObject([{ name: 'mortal', alive: false }]);
    await openAgent(stateDir);
    expect(await second.tell('grants')).toEqual([]);
    expect(readdirSync(join(stateDir, 'owners'))).toEqual([]);
  });

  it('cannot release each other’s grants while the owner lives', async () => {
    const stateDir = makeStateDir();
    const first = await openAgent(stateDir);
    const grant = await first.tell('acquire', { cpu: 1 });
    const manager = await openManager({ stateDir });
    await expect(manager.release(grant.uid)).rejects.toMatchObject({
      code: 'ERR_OWNER_ALIVE',
      details: { pid: first.process.pid },
    });
    await first.kill();
    await expect.poll(() => manager.grants()).toEqual([]);
  });

  it('keep a dead process’s grant while the child that received it lives', async () => {
    const stateDir = makeStateDir();
    const manager = await openManager({ stateDir, reservedSystemCPUs: RESERVED });
    const grant = await manager.acquire({ cpu: 1 });
    const child = grant.spawn('sleep', ['60']);
    onTestFinished(() => void child.kill('SIGKILL'));
    const mask = /^Cpus_allowed_list:\s*(.*)$/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))![1];
    expect(mask).toBe(String(grant.cpus));
    expect(affinity().equals(ALL.difference(grant.cpus))).toBe(true);
    expect(await grant.handOver()).toBe(true);
    expect(manager.grants()).toMatchObject([{ uid: grant.uid, alive: true }]);
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
    await expect.poll(() => manager.grants()).toEqual([]);
    const next = await manager.acquire({ cpu: REST.size });
    await next.release();
  });
});

describe('a child started for a grant', () => {
  it('keeps the grant from being released under it', async () => {
    const manager = await openManager({ stateDir: makeStateDir() });
    const grant = await manager.acquire({ cpu: 1 });
    const child = grant.spawn('sleep', ['60']);
    onTestFinished(() => void child.kill('SIGKILL'));
    await expect(grant.release()).rejects.toMatchObject({
      code: 'ERR_CHILD_ALIVE',
      details: { pid: child.pid },
    });
    await expect(manager.release(grant.uid)).rejects.toMatchObject({ code: 'ERR_CHILD_ALIVE' });
    expect(manager.grants()).toHaveLength(1);
    child.kill('SIGKILL');
    await new Promise((resolve) => child.once('exit', resolve));
    await grant.release();
    expect(manager.grants()).toEqual([]);
  });

  it('gets the owner’s lock after its standard streams, however few of them are named', async () => {
    const manager = await openManager({ stateDir: makeStateDir() });
    const grant = await manager.acquire({ cpu: 1 });
    const child = grant.spawn('echo', ['hello'], { stdio: ['ignore'] });
    const [said] = await Promise.all([
      new Promise((resolve) => child.stdout!.once('data', resolve)),
      new Promise((resolve) => child.once('exit', resolve)),
    ]);
    expect(String(said)).toBe('hello\n');
    const [owner] = readdirSync(join(manager.stateDir, 'owners'));
    expect(ownerMembersOf(manager.stateDir, owner!).pods).toHaveLength(1);
    await grant.release();
  });

  it('takes over the grant with its CPUs: no thread of this process stays there', async () => {
    const manager = await openManager({ stateDir: makeStateDir() });
    const grant = await manager.acquire({ cpu: 1 });
    grant.pin();
    const child = grant.spawn('sleep', ['60']);
    onTestFinished(() => void child.kill('SIGKILL'));
    expect(await grant.handOver()).toBe(true);
    expect(affinity().intersects(grant.cpus)).toBe(false);
    expect(() => grant.pin()).toThrow(expect.objectContaining({ code: 'ERR_GRANT_RELEASED' }));
    pin(ALL);
  });

  it('cannot take over one of several grants, which share one lock', async () => {
    const manager = await openManager({
      stateDir: makeStateDir(),
      topology: await discover({ synthetic: 'core:8 pu:1' }),
    });
    const [one, two] = [await manager.acquire({ cpu: 1 }), await manager.acquire({ cpu: 1 })];
    await expect(one.handOver()).rejects.toMatchObject({
      code: expect.stringMatching(/ERR_OWNER_SHARED|ERR_SIMULATED/),
    });
    expect(manager.grants()).toHaveLength(2);
    await Promise.all([one.release(), two.release()]);
  });

  it('cannot take it over from the process that keeps the kubelet’s record', async () => {
    const manager = await openManager({ stateDir: makeStateDir() });
    onTestFinished(() => manager.close());
    if (manager.freeCpus().size < 2) return;
    const container = { name: 'main', devices: { 'example.com/nic': ['nic0'] } };
    await manager.recordKubelet([{ namespace: 'default', name: 'web', containers: [container] }]);
    const grant = await manager.acquire({ cpu: 1 });
    await expect(grant.handOver()).rejects.toMatchObject({ code: 'ERR_OWNER_SHARED' });
    expect(manager.grants()).toHaveLength(1);
    // It is still the keeper.
    expect(await manager.recordKubelet(null)).toBeNull();
    expect(await grant.handOver()).toBe(false);
  });
});

describe('the lock of the state', () => {
  // A holder that never releases it: a stopped process in the middle of a transaction would look
  // the same.
  async function holdLock(stateDir: string) {
    const { native } = await import('../../lib/base/native.js');
    const lock = native.Folder.open(stateDir, false, 0o700, -1).tryLock('lock', '4711 another process\n')!;
    onTestFinished(() => lock.release());
    return lock;
  }

  it('is awaited no longer than the timeout, and the error names the holder', async () => {
    const manager = await openManager({ stateDir: makeStateDir(), lockTimeoutMs: 2_000 });
    const lock = await holdLock(manager.stateDir);
    const error = await manager.acquire({ cpu: 1 }).catch((e) => e);
    expect(error).toMatchObject({
      code: 'ERR_LOCK_TIMEOUT',
      message: expect.stringContaining('4711 another process'),
    });
    lock.release();
    await (await manager.acquire({ cpu: 1 })).release();
  });

  it('is given up when the signal aborts, at once', async () => {
    const manager = await openManager({ stateDir: makeStateDir() });
    await holdLock(manager.stateDir);
    const abort = new AbortController();
    const pending = manager.acquire({ cpu: 1, signal: abort.signal });
    setTimeout(() => abort.abort(new Error('changed my mind')), 20);
    await expect(pending).rejects.toThrow('changed my mind');
    await expect(
      manager.acquire({ cpu: 1, signal: AbortSignal.abort(new Error('too late')) }),
    ).rejects.toThrow('too late');
  });

  it('is not held while the caller does other work', async () => {
    const manager = await openManager({ stateDir: makeStateDir() });
    const { native } = await import('../../lib/base/native.js');
    const folder = native.Folder.open(manager.stateDir, false, 0o700, -1);
    // No JavaScript runs meanwhile: the commit itself has to release the lock.
    const takeLock = () => {
      let lock: { release(): void } | undefined;
      for (const end = Date.now() + 10_000; !lock && Date.now() < end; )
        lock = folder.tryLock('lock', 'a test');
      expect(lock).toBeDefined();
      lock?.release();
    };
    const acquiring = manager.acquire({ cpu: 1 });
    takeLock();
    const grant = await acquiring;
    const releasing = grant.release();
    takeLock();
    await releasing;
    expect(affinity().equals(ALL)).toBe(true);
  });

  it('goes to waiting requests in order, and holds up neither the event loop nor the thread pool', async () => {
    const manager = await openManager({ stateDir: makeStateDir() });
    const lock = await holdLock(manager.stateDir);
    const order: number[] = [];
    const waiting = [0, 1, 2, 3, 4, 5].map(async (i) => {
      await manager
        .use({ cpu: 1 }, () => void order.push(i))
        .catch((error) => expect(error.code).toBe('ERR_INSUFFICIENT_CPUS'));
    });
    const { readFile } = await import('node:fs/promises');
    await Promise.all(Array.from({ length: 8 }, () => readFile('/proc/self/status')));
    lock.release();
    await Promise.all(waiting);
    expect(order.length).toBeGreaterThan(0);
    expect(manager.grants()).toEqual([]);
  });
});

describe.runIf(canMount)('a full disk', () => {
  it('changes nothing, and the next attempt succeeds once there is room', async () => {
    const stateDir = makeStateDir();
    mkdirSync(stateDir, { recursive: true });
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k,mode=0700', 'tmpfs', stateDir]);
    onTestFinished(() => void execFileSync('umount', ['-l', stateDir]));
    const manager = await openManager({ stateDir });
    const before = readFileSync(join(stateDir, 'state.json'), 'utf8');
    try {
      writeFileSync(join(stateDir, 'ballast'), Buffer.alloc(1 << 20));
    } catch {
      // On purpose: the disk is full to the last byte.
    }
    expect(statSync(join(stateDir, 'ballast')).size).toBeGreaterThan(0);
    const error = await manager.acquire({ cpu: 1 }).catch((e) => e);
    expect(error).toMatchObject({ code: 'ERR_SYSCALL', errnoName: 'ENOSPC' });
    expect(readFileSync(join(stateDir, 'state.json'), 'utf8')).toBe(before);
    expect(manager.grants()).toEqual([]);
    writeFileSync(join(stateDir, 'ballast'), '');
    await (await manager.acquire({ cpu: 1 })).release();
  });
});
