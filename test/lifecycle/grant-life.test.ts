// needs: process
// A grant's life: waiting for it, getting it again by name, resizing it, handing it over; within
// one process and across several.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { affinity } from '../../lib/entries/diagnostics.js';
import { discover } from '../../lib/entries/topology.js';
import { CpuSet, type Manager, openManager, pin, type StateChange } from '../../lib/index.js';
import { Agent } from '../support/agent.js';
import { budget } from '../support/budget.mjs';
import { errorOf } from '../support/error-of.js';
import { makeNewer } from '../support/newer-state.js';
import { makeStateDir } from '../support/state-dir.js';

const ALL = affinity();
// Two packages of one node, each with four cores of two threads.
const TWO_NODES = { synthetic: 'package:2 [numa(memory=8GiB)] core:4 pu:2' };
// No rounds of reconciliation.
const NO_ROUNDS = { cpuManagerReconcilePeriod: 0 };
const soon = () => new Promise((resolve) => setTimeout(resolve, 5));

async function simulated(stateDir?: string, machine: object = TWO_NODES): Promise<Manager> {
  const manager = await openManager({
    topology: await discover(machine as never),
    ...(stateDir && { stateDir }),
  });
  onTestFinished(() => manager.close());
  return manager;
}

// Tests end without a release: the confinement of the process is not its own choice.
beforeEach(() => void pin(ALL));

/** True if this process watches a folder: proc_pid_fdinfo(5). */
function isWatched(path: string): boolean {
  const inode = statSync(path).ino.toString(16);
  return readdirSync('/proc/self/fdinfo').some((fd) => {
    try {
      return new RegExp(`^inotify wd:\\w+ ino:${inode} `, 'm').test(
        readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1'),
      );
    } catch {
      // The descriptor of the read of fdinfo itself.
      return false;
    }
  });
}

describe('acquire({ wait: true })', () => {
  it('waits until there is room, and takes CPUs that others release', async () => {
    const manager = await simulated();
    const first = await manager.acquire({ cpu: 14 });
    const waiting = manager.acquire({ cpu: 4, wait: true });
    let isServed = false;
    void waiting.then(() => (isServed = true));
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(isServed).toBe(false);
    await first.release();
    expect((await waiting).cpus.size).toBe(4);
  });

  it('serves requests in order of arrival, even if a later one would fit', async () => {
    for (const stateDir of [undefined, makeStateDir()]) {
      const manager = await simulated(stateDir);
      const holder = await manager.acquire({ cpu: 14 });
      const order: number[] = [];
      const waiting = [8, 1, 8, 1].map(async (cpu, i) => {
        const grant = await manager.acquire({ cpu, wait: true });
        order.push(i);
        await soon();
        await grant.release();
      });
      await new Promise((resolve) => setTimeout(resolve, 30));
      expect(order).toEqual([]);
      await holder.release();
      await Promise.all(waiting);
      expect(order).toEqual([0, 1, 2, 3]);
      expect(manager.grants()).toEqual([]);
    }
  });

  it('does not hold up requests that do not wait', async () => {
    const manager = await simulated();
    const holder = await manager.acquire({ cpu: 12 });
    const waiting = manager.acquire({ cpu: 8, wait: true });
    await (await manager.acquire({ cpu: 2 })).release();
    await holder.release();
    expect((await waiting).cpus.size).toBe(8);
  });

  it('refuses at once what even the empty machine cannot grant', async () => {
    const manager = await simulated();
    await manager.acquire({ cpu: 4 });
    // Behind another request that waits too.
    const abort = new AbortController();
    const waiting = errorOf(() => manager.acquire({ cpu: 13, wait: true, signal: abort.signal }));
    for (const [request, code] of [
      [{ cpu: 17 }, 'ERR_INSUFFICIENT_CPUS'],
      [{ cpu: 16 }, 'ERR_INSUFFICIENT_CPUS'],
      [{ cpu: 9, policy: 'single-numa-node' }, 'ERR_TOPOLOGY_AFFINITY'],
      [{ cpu: 1, memory: '17Gi' }, 'ERR_INSUFFICIENT_MEMORY'],
    ] as const) {
      expect(await errorOf(() => manager.acquire({ ...request, wait: true }))).toMatchObject({ code });
    }
    abort.abort(new Error('enough'));
    expect(await waiting).toMatchObject({ message: 'enough' });
  });

  it('is given up when the signal aborts, and the requests behind move up', async () => {
    const manager = await simulated(makeStateDir());
    const holder = await manager.acquire({ cpu: 14 });
    const abort = new AbortController();
    const first = manager.acquire({ cpu: 15, wait: true, signal: abort.signal });
    const second = manager.acquire({ cpu: 1, wait: true });
    const outcome = expect(first).rejects.toThrow('enough');
    await new Promise((resolve) => setTimeout(resolve, 30));
    abort.abort(new Error('enough'));
    await outcome;
    expect((await second).cpus.size).toBe(1);
    await holder.release();
  });

  it('is a flag', async () => {
    const manager = await simulated();
    const error = await errorOf(() => manager.acquire({ cpu: 1, wait: 'yes' as never }));
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION' });
  });

  it('follows one order in several processes, and skips processes that were killed in the queue', async () => {
    const stateDir = makeStateDir();
    const options = {
      stateDir,
      ...NO_ROUNDS,
      ...(ALL.size > 1 && { reservedSystemCPUs: String(ALL.first) }),
    };
    const agents = [new Agent(), new Agent(), new Agent(), new Agent()];
    for (const agent of agents) await agent.tell('open', options);
    const most = ALL.size > 1 ? ALL.size - 1 : 0;
    if (most === 0) return;
    const [holder, killed, second, third] = agents as [Agent, Agent, Agent, Agent];
    const grant = await holder.tell('acquire', { cpu: most });
    for (const [i, agent] of [killed, second, third].entries()) {
      await agent.tell('begin', { key: 'a', cpu: most });
      while (readdirSync(join(stateDir, 'waiting')).length <= i) await soon();
    }
    await killed.kill();
    await holder.tell('release', { uid: grant.uid });
    const served = await second.tell('settled', { key: 'a' });
    expect(await second.tell('grants')).toMatchObject([{ uid: served.uid }]);
    // The third is served when the second is killed, without any commit.
    await second.kill();
    expect((await third.tell('settled', { key: 'a' })).cpus).toBe(served.cpus);
  });
});

describe('acquire({ name })', () => {
  it('gives the CPUs of the last grant of that name again, if they are free', async () => {
    const manager = await simulated(makeStateDir());
    const others = await manager.acquire({ cpu: 3 });
    const first = await manager.acquire({ name: 'gateway', cpu: 2 });
    const { cpus } = first;
    await others.release();
    await first.release();
    const again = await manager.acquire({ name: 'gateway', cpu: 2 });
    expect(String(again.cpus)).toBe(String(cpus));
    expect(String((await manager.acquire({ name: 'another', cpu: 2 })).cpus)).not.toBe(String(cpus));
    await again.release();
    const thief = await manager.acquire({ cpu: 6 });
    expect(thief.cpus.intersects(cpus)).toBe(true);
    expect((await manager.acquire({ name: 'gateway', cpu: 2 })).cpus.intersects(thief.cpus)).toBe(false);
  });

  it('gives them to an agent that was killed', async () => {
    const stateDir = makeStateDir();
    const [first, other] = [new Agent(), new Agent()];
    for (const agent of [first, other]) await agent.tell('open', { stateDir });
    if (ALL.size < 2) return;
    const { cpus } = await first.tell('acquire', { name: 'gateway', cpu: 1 });
    await first.kill();
    const again = await other.tell('acquire', { name: 'gateway', cpu: 1 });
    expect(again.cpus).toBe(cpus);
  });

  it('still aligns: it does not give old CPUs that the policy does not admit', async () => {
    const manager = await simulated();
    const [a, b] = [await manager.acquire({ cpu: 7 }), await manager.acquire({ cpu: 7 })];
    const spread = await manager.acquire({ name: 'x', cpu: 1 });
    await Promise.all([a, b, spread].map((grant) => grant.release()));
    const wide = await manager.acquire({ name: 'x', cpu: 10 });
    await wide.release();
    const narrow = await manager.acquire({ name: 'x', cpu: 2, policy: 'single-numa-node' });
    expect(narrow.numaNodes.size).toBe(1);
    expect(narrow.cpus.isSubsetOf(wide.cpus)).toBe(true);
  });

  it('remembers 64 names', async () => {
    const manager = await simulated();
    const cpusOf = async (name: string) => {
      const grant = await manager.acquire({ name, cpu: 1 });
      const { cpus } = grant;
      await grant.release();
      return String(cpus);
    };
    const holder = await manager.acquire({ cpu: 2 });
    const first = await cpusOf('first');
    await holder.release();
    for (let i = 0; i < 63; i++) await cpusOf(`n${i}`);
    expect(await cpusOf('first')).toBe(first);
    for (let i = 0; i < 64; i++) await cpusOf(`m${i}`);
    expect(await cpusOf('first')).not.toBe(first);
  });
});

describe('grant.resize', () => {
  it('keeps all its CPUs when it grows, and a part of them when it shrinks', async () => {
    const manager = await simulated(makeStateDir());
    const grant = await manager.acquire({ cpu: 2, memory: '1Gi' });
    const before = grant.cpus;
    await grant.resize({ cpu: 5, memory: '2Gi' });
    expect(grant.cpus.size).toBe(5);
    expect(before.isSubsetOf(grant.cpus)).toBe(true);
    expect(grant.memory).toMatchObject([{ type: 'memory', bytes: 2 ** 31 }]);
    const large = grant.cpus;
    await grant.resize({ cpu: 1 });
    expect(grant.cpus.size).toBe(1);
    expect(grant.cpus.isSubsetOf(large)).toBe(true);
    expect(grant.memory).toMatchObject([{ bytes: 2 ** 31 }]);
    expect(manager.freeCpus().size).toBe(15);
    expect(manager.grants()).toMatchObject([{ uid: grant.uid, upcoming: null }]);
    await grant.release();
    expect(manager.freeCpus().size).toBe(16);
    expect(manager.memory().every((table) => table.reserved === 0)).toBe(true);
  });

  it('grows where the policy allows it: on its own NUMA node first, elsewhere only if that is still aligned', async () => {
    const manager = await simulated();
    const single = await manager.acquire({ cpu: 3, policy: 'single-numa-node' });
    const [node] = single.numaNodes;
    await single.resize({ cpu: 8 });
    expect([...single.numaNodes]).toEqual([node]);
    expect(await errorOf(() => single.resize({ cpu: 9 }))).toMatchObject({ code: 'ERR_TOPOLOGY_AFFINITY' });
    expect(single.cpus.size).toBe(8);
    await single.release();
    const wide = await manager.acquire({ cpu: 3, policy: 'restricted' });
    await wide.resize({ cpu: 10 });
    expect(wide.numaNodes.size).toBe(2);
  });

  it('is refused without any change if there is not enough, and names the holders', async () => {
    const manager = await simulated(makeStateDir());
    const other = await manager.acquire({ cpu: 8, memory: '4Gi', name: 'other' });
    const grant = await manager.acquire({ cpu: 4, memory: '1Gi' });
    const generation = manager.generation();
    const before = JSON.stringify(grant);
    for (const options of [{ cpu: 9 }, { memory: '9Gi' }, { cpu: 5, memory: '20Gi' }]) {
      const error = await errorOf(() => grant.resize(options));
      expect(error.code).toMatch(/ERR_(INSUFFICIENT_(CPUS|MEMORY)|TOPOLOGY_AFFINITY)/);
      expect(error.message).toContain('other');
    }
    expect(await errorOf(() => grant.resize({ cpu: 12 }))).toMatchObject({ code: 'ERR_INSUFFICIENT_CPUS' });
    expect(manager.generation()).toBe(generation);
    expect(JSON.stringify(grant)).toBe(before);
    await other.release();
  });

  it('is announced before it is done, with the announced CPUs kept from others', async () => {
    const stateDir = makeStateDir();
    const [manager, watcher] = [await simulated(stateDir), await simulated(stateDir)];
    const grant = await manager.acquire({ cpu: 4 });
    const changes: StateChange[] = [];
    const heldMeanwhile: number[] = [];
    watcher.on('change', (change) => {
      changes.push(change);
      heldMeanwhile.push(watcher.freeCpus().size);
    });
    // Commits that the watcher finds together are one change.
    await grant.resize({ cpu: 6, noticeMs: 1_000 });
    while (changes.length < 2) await soon();
    await grant.resize({ cpu: 2, noticeMs: 1_000 });
    while (changes.length < 4) await soon();
    const [announced, done, announced2, done2] = changes.map(({ changed }) => changed[0]!.after);
    expect([announced!.cpus.size, announced!.upcoming!.size]).toEqual([4, 6]);
    expect([done!.cpus.size, done!.upcoming]).toEqual([6, null]);
    expect([announced2!.cpus.size, announced2!.upcoming!.size]).toEqual([6, 2]);
    expect([done2!.cpus.size, done2!.upcoming]).toEqual([2, null]);
    expect(heldMeanwhile).toEqual([10, 10, 10, 14]);
  });

  it('can be called off while it is announced', async () => {
    const manager = await simulated(makeStateDir());
    const grant = await manager.acquire({ cpu: 4 });
    const abort = new AbortController();
    const resizing = grant.resize({ cpu: 2, noticeMs: 5_000, signal: abort.signal });
    const outcome = expect(resizing).rejects.toThrow('no');
    while (grant.upcoming === null) await new Promise((resolve) => setTimeout(resolve, 2));
    expect(await errorOf(() => grant.resize({ cpu: 3 }))).toMatchObject({ code: 'ERR_GRANT_BUSY' });
    abort.abort(new Error('no'));
    await outcome;
    expect([grant.cpus.size, grant.upcoming]).toEqual([4, null]);
    await grant.resize({ cpu: 3 });
    expect(grant.cpus.size).toBe(3);
  });

  it('is refused for pods of several containers and for invalid values', async () => {
    const manager = await simulated();
    const container = (name: string) => ({ name, resources: { limits: { cpu: 1, memory: '1Gi' } } });
    const spec = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'p', uid: 'u' },
      spec: { containers: [container('a'), container('b')] },
    };
    await manager.admit(spec as never);
    const pod = manager.grant('u');
    expect(await errorOf(() => pod.resize({ cpu: 2 }))).toMatchObject({ code: 'ERR_INVALID_ARGUMENT' });
    const grant = await manager.acquire({ cpu: 1 });
    for (const options of [
      {},
      { cpu: 0 },
      { cpu: 1.5 },
      { noticeMs: 5 },
      { cpu: 1, noticeMs: -1 },
      { cpus: 2 },
    ]) {
      expect(await errorOf(() => grant.resize(options as never))).toMatchObject({
        code: 'ERR_INVALID_OPTION',
      });
    }
    await grant.release();
    expect(await errorOf(() => grant.resize({ cpu: 1 }))).toMatchObject({ code: 'ERR_GRANT_RELEASED' });
  });

  it('holds whole cores if siblings are held', async () => {
    const manager = await simulated();
    const grant = await manager.acquire({ cpu: 2, smt: 'hold-sibling' });
    expect([grant.cpus.size, grant.held.size]).toEqual([2, 2]);
    await grant.resize({ cpu: 3 });
    expect([grant.cpus.size, grant.held.size]).toEqual([3, 3]);
    await grant.resize({ cpu: 1 });
    expect([grant.cpus.size, grant.held.size]).toEqual([1, 1]);
    expect(manager.topology.wholeCores(grant.cpus.union(grant.held)).size).toBe(2);
  });

  it.runIf(ALL.size > 1)('makes the pinned threads follow', async () => {
    const manager = await openManager({ stateDir: makeStateDir(), reservedSystemCPUs: String(ALL.first) });
    onTestFinished(() => {
      manager.close();
      pin(ALL);
    });
    const most = ALL.size - 1;
    const grant = await manager.acquire({ cpu: most });
    grant.pin();
    if (most > 1) {
      const { moved } = await grant.resize({ cpu: 1 });
      expect(moved.length).toBeGreaterThan(0);
      expect(String(affinity())).toBe(String(grant.cpus));
      await grant.resize({ cpu: most });
      expect(String(affinity())).toBe(String(grant.cpus));
    }
    await grant.release();
    expect(affinity().equals(ALL)).toBe(true);
  });

  it('never holds CPUs of another, whatever the order of steps', async () => {
    const action = fc.oneof(
      fc.record({
        op: fc.constant('acquire' as const),
        cpu: fc.integer({ min: 1, max: 9 }),
        memory: fc.nat(5),
      }),
      fc.record({ op: fc.constant('release' as const), which: fc.nat(9) }),
      fc.record({
        op: fc.constant('resize' as const),
        which: fc.nat(9),
        cpu: fc.integer({ min: 1, max: 12 }),
        memory: fc.option(fc.nat(6), { nil: undefined }),
      }),
    );
    const policy = fc.constantFrom('none', 'best-effort', 'restricted', 'single-numa-node');
    await fc.assert(
      fc.asyncProperty(policy, fc.array(action, { maxLength: 25 }), async (policy, actions) => {
        const topology = await discover({ synthetic: 'package:2 [numa(memory=8GiB)] core:3 pu:2' });
        const manager = await openManager({
          topology,
          policy: policy as never,
        });
        const grants: Awaited<ReturnType<Manager['acquire']>>[] = [];
        for (const step of actions) {
          const grant = 'which' in step ? grants[step.which % Math.max(1, grants.length)] : undefined;
          const before = grant && JSON.stringify(grant);
          try {
            if (step.op === 'acquire') {
              const { cpu, memory } = step;
              grants.push(await manager.acquire({ cpu, ...(memory > 0 && { memory: `${memory}Gi` }) }));
            } else if (grant && step.op === 'release') {
              await grant.release();
              grants.splice(grants.indexOf(grant), 1);
            } else if (grant && step.op === 'resize') {
              const { cpus } = grant;
              const { cpu, memory } = step;
              await grant.resize({
                cpu,
                noticeMs: 0,
                ...(memory !== undefined && { memory: `${memory}Gi` }),
              });
              expect(grant.cpus.size).toBe(cpu);
              expect(cpu >= cpus.size ? cpus.isSubsetOf(grant.cpus) : grant.cpus.isSubsetOf(cpus)).toBe(true);
            }
          } catch (error) {
            expect((error as { code: string }).code).toMatch(/ERR_(INSUFFICIENT|TOPOLOGY|SHARED_POOL)/);
            if (grant) expect(JSON.stringify(grant)).toBe(before);
          }
          const infos = manager.grants();
          const all = infos.reduce((cpus, each) => cpus.union(each.cpus), CpuSet.EMPTY);
          expect(all.size).toBe(infos.reduce((sum, each) => sum + each.cpus.size, 0));
          expect(manager.sharedPool().equals(topology.cpus.difference(all))).toBe(true);
          for (const { node, allocatable, reserved, free } of manager.memory()) {
            expect(reserved + free, `node ${node}`).toBe(allocatable);
          }
        }
      }),
      { numRuns: budget({ all: 200, usual: 20 }) },
    );
  });
});

describe('grant.transfer', () => {
  it('hands a grant to another process: on record all the time, and the old threads leave before the successor has it', async () => {
    const stateDir = makeStateDir();
    if (ALL.size < 2) return;
    const [old, successor, witness] = [new Agent(), new Agent(), new Agent()];
    for (const agent of [old, successor, witness]) await agent.tell('open', { stateDir });
    const { uid, cpus } = await old.tell('acquire', { cpu: 1, name: 'gateway' });
    await old.tell('pin', { uid });
    await witness.tell('watch');
    const token = await old.tell('transfer', { uid });
    const taken = await successor.tell('takeOver', { token });
    expect(taken).toMatchObject({ uid, cpus });
    const oldMasks = await old.tell('threads');
    for (const thread of oldMasks)
      expect(CpuSet.parse(thread.cpus).intersects(CpuSet.parse(cpus))).toBe(false);
    expect(await old.tell('accepted', { uid })).toBe(true);
    await successor.tell('pin', { uid });
    expect(await successor.tell('mask')).toBe(cpus);
    expect(await old.ask('pin', { uid })).toMatchObject({ error: { code: 'ERR_GRANT_RELEASED' } });
    await old.kill();
    expect(await witness.tell('grants')).toMatchObject([
      { uid, alive: true, owner: { pid: successor.process.pid } },
    ]);
    expect(
      (await witness.tell('changes')).every((change: { removed: [] }) => change.removed.length === 0),
    ).toBe(true);
    await successor.tell('release', { uid });
    expect(await witness.tell('grants')).toEqual([]);
  });

  it('is no choice of the old threads, even if others look at them before they have left', async () => {
    const stateDir = makeStateDir();
    if (ALL.size < 2) return;
    const manager = await openManager({ stateDir });
    onTestFinished(() => manager.close());
    const [old, successor, newcomer] = [new Agent(), new Agent(), new Agent()];
    for (const agent of [old, successor]) await agent.tell('open', { stateDir });
    const { uid, cpus } = await old.tell('acquire', { cpu: 1 });
    await old.tell('pin', { uid });
    const token = await old.tell('transfer', { uid });
    old.process.kill('SIGSTOP');
    const taking = successor.tell('takeOver', { token });
    await expect.poll(() => manager.grants()[0]!.owner.pid).toBe(successor.process.pid);
    await newcomer.tell('open', { stateDir });
    old.process.kill('SIGCONT');
    await taking;
    expect(await old.tell('mask')).toBe(String(ALL.difference(CpuSet.parse(cpus))));
    await successor.tell('release', { uid });
    await expect.poll(() => old.tell('mask')).toBe(String(ALL));
  });

  it('can be withdrawn; a token works once', async () => {
    const stateDir = makeStateDir();
    const manager = await simulated(stateDir);
    const grant = await manager.acquire({ cpu: 2 });
    const transfer = await grant.transfer();
    expect(await transfer.cancel()).toBe(true);
    expect(await transfer.accepted).toBe(false);
    expect(await errorOf(() => manager.takeOver(transfer.token))).toMatchObject({
      code: 'ERR_UNKNOWN_TRANSFER',
    });
    const second = await grant.transfer();
    const taken = await (await simulated(stateDir)).takeOver(second.token);
    expect(taken.uid).toBe(grant.uid);
    expect(await second.accepted).toBe(true);
    expect(await second.cancel()).toBe(false);
    expect(await errorOf(() => manager.takeOver(second.token))).toMatchObject({
      code: 'ERR_UNKNOWN_TRANSFER',
    });
    expect(await errorOf(() => manager.takeOver(7 as never))).toMatchObject({ code: 'ERR_INVALID_OPTION' });
  });

  it('ends with the old process if no process has taken over', async () => {
    const stateDir = makeStateDir();
    if (ALL.size < 2) return;
    const [old, successor] = [new Agent(), new Agent()];
    for (const agent of [old, successor]) await agent.tell('open', { stateDir });
    const { uid } = await old.tell('acquire', { cpu: 1 });
    const token = await old.tell('transfer', { uid });
    await old.kill();
    expect(await successor.ask('takeOver', { token })).toMatchObject({
      error: { code: 'ERR_UNKNOWN_TRANSFER' },
    });
  });

  it('continues without the old process if that dies on the way', async () => {
    const stateDir = makeStateDir();
    if (ALL.size < 2) return;
    const [old, successor] = [new Agent(), new Agent()];
    for (const agent of [old, successor]) await agent.tell('open', { stateDir });
    const { uid } = await old.tell('acquire', { cpu: 1 });
    const token = await old.tell('transfer', { uid });
    old.process.kill('SIGSTOP');
    const taking = successor.tell('takeOver', { token });
    // Stopped on the CPUs: no other process can have them.
    const manager = await openManager({ stateDir });
    while (manager.grants()[0]!.owner.pid !== successor.process.pid) await soon();
    await expect(manager.release(uid)).rejects.toMatchObject({ code: 'ERR_OWNER_ALIVE' });
    await old.kill();
    expect(await taking).toMatchObject({ uid });
    await successor.kill();
    await expect.poll(() => manager.grants()).toEqual([]);
  });

  it('waits for the children that the old process starts on it meanwhile', async () => {
    const stateDir = makeStateDir();
    if (ALL.size < 2) return;
    const manager = await openManager({ stateDir });
    onTestFinished(() => manager.close());
    const grant = await manager.acquire({ cpu: 1 });
    const { token } = await grant.transfer();
    const child = grant.spawn('sleep', ['1000']);
    const successor = new Agent();
    await successor.tell('open', { stateDir });
    const taking = successor.tell('takeOver', { token }).then(() => child.signalCode);
    while (manager.grants()[0]!.owner.pid !== successor.process.pid) await soon();
    // Long enough for a process that does not wait: the end of the test does not depend on it.
    await new Promise((resolve) => setTimeout(resolve, 200));
    child.kill('SIGKILL');
    expect(await taking).toBe('SIGKILL');
  });

  it('is for grants of processes', async () => {
    const manager = await simulated();
    const grant = await manager.acquire({ cpu: 1, owner: 'persistent' });
    expect(await errorOf(() => grant.transfer())).toMatchObject({ code: 'ERR_INVALID_ARGUMENT' });
  });
});

describe("manager.on('change')", () => {
  it('informs every process of all commits within milliseconds, with the difference', async () => {
    const stateDir = makeStateDir();
    if (ALL.size < 2) return;
    const agent = new Agent();
    await agent.tell('open', { stateDir });
    await agent.tell('watch');
    const manager = await openManager({ stateDir });
    onTestFinished(() => manager.close());
    const ownChanges: StateChange[] = [];
    manager.on('change', (change) => ownChanges.push(change));
    const grant = await manager.acquire({ cpu: 1, name: 'x' });
    await manager.configure({ reservedSystemCPUs: '' });
    const generation = manager.generation();
    // A grant that came and went between two reads is not reported.
    while (ownChanges.flatMap(({ added }) => added).length === 0) await soon();
    let changes = await agent.tell('changes');
    while (changes.flatMap(({ added }: any) => added).length === 0) changes = await agent.tell('changes');
    await grant.release();
    while (changes.at(-1)?.generation !== generation + 1) changes = await agent.tell('changes');
    expect(changes.flatMap((change: any) => change.added.map(({ uid }: any) => uid))).toEqual([grant.uid]);
    expect(changes.flatMap((change: any) => change.removed.map(({ uid }: any) => uid))).toEqual([grant.uid]);
    expect(changes[0].before).toBeLessThan(changes[0].generation);
    while (ownChanges.at(-1)?.generation !== generation + 1) await soon();
    expect(ownChanges.flatMap(({ added }) => added.map(({ uid }) => uid))).toEqual([grant.uid]);
    expect(String(ownChanges.at(-1)!.sharedPool)).toBe(String(ALL));
  });

  it('lists grants that no longer hold as recorded, and those that do again', async () => {
    const manager = await simulated(makeStateDir());
    const grant = await manager.acquire({ cpu: 2 });
    const changes: StateChange[] = [];
    manager.on('change', (change) => changes.push(change));
    const until = async (condition: () => boolean) => {
      while (!condition()) await soon();
    };
    await manager.configure({ reservedSystemCPUs: String(grant.cpus.first) });
    await until(() => changes.length === 1);
    expect(changes[0]).toMatchObject({
      changed: [],
      flagged: [{ uid: grant.uid, flags: [{ code: 'CPU_RESERVED' }] }],
      settings: { reservedSystemCPUs: CpuSet.of(grant.cpus.first!) },
    });
    await manager.configure({ reservedSystemCPUs: '' });
    await until(() => changes.length === 2);
    expect(changes[1]!.flagged).toMatchObject([{ uid: grant.uid, flags: [] }]);
  });

  it('reports each grant once, for one commit or several', async () => {
    const manager = await simulated(makeStateDir());
    const changes: StateChange[] = [];
    manager.on('change', (change) => changes.push(change));
    const grants = await Promise.all([1, 2, 3].map((cpu) => manager.acquire({ cpu })));
    while (changes.at(-1)?.generation !== manager.generation()) await soon();
    // The lock decides which of them comes first.
    const idsOf = (list: readonly { uid: string }[]) => list.map(({ uid }) => uid).sort();
    expect(idsOf(changes.flatMap(({ added }) => added))).toEqual(idsOf(grants));
    expect(changes.map(({ before }) => before)).toEqual([
      changes[0]!.before,
      ...changes.slice(0, -1).map((c) => c.generation),
    ]);
  });

  it('takes back the grants of a dead owner, without any other transaction', async () => {
    const stateDir = makeStateDir();
    if (ALL.size < 2) return;
    const agent = new Agent();
    await agent.tell('open', { stateDir });
    const { uid } = await agent.tell('acquire', { cpu: 1 });
    const manager = await openManager({ stateDir, ...NO_ROUNDS });
    onTestFinished(() => manager.close());
    const end = new Promise<void>((resolve) => {
      manager.on('change', ({ removed }) => removed.some((grant) => grant.uid === uid) && resolve());
    });
    await agent.kill();
    await end;
    expect(manager.grants()).toEqual([]);
  });

  it('ends with close, and watches only while there are listeners', async () => {
    const stateDir = makeStateDir();
    const manager = await simulated(stateDir);
    const listener = () => {};
    const isListening = () => isWatched(join(stateDir, 'state.json'));
    expect(isListening()).toBe(false);
    manager.on('change', listener);
    expect(isListening()).toBe(true);
    manager.off('change', listener);
    await expect.poll(isListening).toBe(false);
    manager.once('change', listener);
    manager.close();
    await expect.poll(isListening).toBe(false);
    expect(() => manager.on('change', listener)).toThrow(
      expect.objectContaining({ code: 'ERR_MANAGER_CLOSED' }),
    );
  });

  it('reports an error to its listeners', async () => {
    const stateDir = makeStateDir();
    const manager = await simulated(stateDir);
    const errors: Error[] = [];
    manager.on('change', () => {});
    manager.on('error', (error) => errors.push(error));
    // A newer version has taken over, with a state that this one cannot read.
    makeNewer(stateDir);
    while (errors.length === 0) await soon();
    expect(errors[0]).toMatchObject({ code: 'ERR_STATE_VERSION' });
  });
});
