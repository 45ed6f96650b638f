// needs: process
// The state of a simulated machine, in one object.
import { describe, expect, it } from 'vitest';
import { emptyAssignments } from '../../lib/account/assignments.js';
import { DEFAULT_SETTINGS } from '../../lib/decision/machine-settings.js';
import { CpuSet } from '../../lib/machine/cpu-set.js';
import { MemoryStore } from '../../lib/state/memory-store.js';
import { errorOf } from '../support/error-of.js';
import { end, hierarchies, makeCgroup, populate } from '../support/owner-cgroups.js';
import { quiet } from '../support/quiet.js';
import { podOf } from '../support/quiet-world.js';

const OPTIONS = { lockTimeoutMs: 1000, totalOn: () => 0 };
const EMPTY = emptyAssignments(DEFAULT_SETTINGS);
const pod = (uid: string) => podOf(uid, '', CpuSet.of(Number(uid)), quiet('0').request);
const withPods = (...uids: string[]) => ({ ...EMPTY, pods: uids.map(pod) });

const [, mount] = hierarchies()[0] ?? [];

describe('a state in memory', () => {
  it('has what was committed last, and counts the commits', async () => {
    const store = new MemoryStore();
    expect(store.read()).toBeUndefined();
    const result = await store.transact(OPTIONS, async (before, commit) => {
      expect(before).toBeUndefined();
      await commit(withPods('1'));
      await commit(withPods('1', '2'));
      return 'done';
    });
    expect(result).toBe('done');
    expect(store.read()).toMatchObject({
      generation: 2,
      assignments: { pods: [{ uid: '1' }, { uid: '2' }] },
    });
    expect(store.isOfThisBoot()).toBe(true);
    expect(await store.archive()).toBe('');
    expect(store.part()).toBeUndefined();
  });

  it('runs one transaction after the other, also after one that fails', async () => {
    const store = new MemoryStore();
    const seen: (number | undefined)[] = [];
    const failing = store.transact(OPTIONS, async (_, commit) => {
      await new Promise(setImmediate);
      await commit(withPods('1'));
      throw new Error('no room');
    });
    const others = ['2', '3'].map((uid) =>
      store.transact(OPTIONS, async (before, commit) => {
        seen.push(before?.generation);
        await commit(withPods(uid));
      }),
    );
    expect(await errorOf(() => failing)).toMatchObject({ message: 'no room' });
    await Promise.all(others);
    expect(seen).toEqual([1, 2]);
    expect(store.read()).toMatchObject({ generation: 3, assignments: { pods: [{ uid: '3' }] } });
  });

  it('runs no transaction whose caller has given up', async () => {
    const store = new MemoryStore();
    const signal = AbortSignal.abort(new Error('enough'));
    let runs = 0;
    expect(await errorOf(() => store.transact({ ...OPTIONS, signal }, async () => runs++))).toMatchObject({
      message: 'enough',
    });
    expect(runs).toBe(0);
  });

  it('tells each listener of a commit, later in another turn, until it ends', async () => {
    const store = new MemoryStore();
    let notices = 0;
    const listener = () => void notices++;
    const ends = [store.watch(listener), store.watch(listener)];
    const commit = () => store.transact(OPTIONS, async (_, commit) => commit(withPods('1')));
    await commit();
    await new Promise(setImmediate);
    expect(notices).toBe(2);
    ends[0]!();
    await commit();
    await new Promise(setImmediate);
    expect(notices).toBe(3);
    ends[1]!();
    store.watchOwners()();
    store.use()();
  });
});

describe('the owner of a state in memory', () => {
  it('is this process, which lives, and hands nothing over', () => {
    const { owners } = new MemoryStore();
    const own = owners.recordFor('process');
    expect(own).toMatchObject({ kind: 'process', uuid: '', pid: process.pid, cgroup: null });
    expect([owners.isOwn(own), owners.isOwnProcess(''), owners.isProcessAlive('')]).toEqual([
      true,
      true,
      true,
    ]);
    expect(owners.isAlive(own)).toBe(true);
    expect([owners.ownFd(), owners.handOver('1'), owners.orphans([pod('1')])]).toEqual([
      undefined,
      false,
      [],
    ]);
    const persistent = owners.recordFor('persistent');
    expect([owners.isOwn(persistent), owners.isAlive(persistent)]).toEqual([false, true]);
  });

  it.runIf(mount !== undefined)('is dead if it is a cgroup whose processes have ended', async () => {
    const { owners } = new MemoryStore();
    const cgroup = makeCgroup(mount!);
    const child = populate(cgroup);
    const grants = [pod('1'), { ...pod('2'), owner: owners.recordFor({ cgroup }) }];
    expect(owners.deadPods(grants)).toEqual([]);
    await end(child);
    expect(owners.deadPods(grants)).toEqual([grants[1]]);
  });
});
