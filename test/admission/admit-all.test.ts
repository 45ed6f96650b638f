// needs: nothing
// Several pods in one step: all of them or none, and pods that are replaced by their changed
// requests.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { nameUid } from '../../lib/base/text/name-uid.js';
import type { AdmissionError, Manager, PodSpec } from '../../lib/index.js';
import { errorOf } from '../support/error-of.js';
import { guaranteed, simulate } from '../support/simulated.js';

const newManager = (options = {}) => simulate('numa:2(memory=8GiB) core:2 pu:2', options);

// Only the decision: files take ten times as long.
const inMemory = () => newManager({ stateDir: undefined });

const pod = (uid: string, cpu: number | string): PodSpec => ({
  uid,
  name: uid,
  containers: [guaranteed('main', { cpu })],
});

// The record, without the counters of commits.
const onRecord = (manager: Manager) => ({
  generation: manager.generation(),
  grants: manager.grants(),
  memory: manager.memory(),
  pool: String(manager.sharedPool()),
});

describe('admitAll', () => {
  it('places pods like one after the other, in one commit', async () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(sizes, async (cpus) => {
        const pods = cpus.map((cpu, i) => pod(`pod-${i}`, cpu));
        const [together, single] = await Promise.all([inMemory(), inMemory()]);
        const before = together.generation();
        const all = await together.admitAll(pods).catch((error) => error.code);
        const each: unknown[] = [];
        let code: string | undefined;
        for (const one of pods) {
          const answer = await single.admit(one).catch((error) => error.code);
          if (typeof answer === 'string') {
            code = answer;
            break;
          }
          each.push(answer.containers);
        }
        if (code !== undefined) {
          expect(all).toBe(code);
          expect(together.grants()).toEqual([]);
          expect(together.generation()).toBe(before);
        } else {
          expect(all.map((one: { containers: unknown }) => one.containers)).toEqual(each);
          expect(together.generation()).toBe(before + 1);
        }
        together.close();
        single.close();
      }),
      { numRuns: 25 },
    );
  });

  it('changes nothing if one has no room, and names it', async () => {
    const manager = await newManager();
    await manager.admit(pod('early', 2));
    const before = onRecord(manager);
    const error = (await errorOf(() =>
      manager.admitAll([pod('early', 2), pod('a', 3), pod('b', 3)]),
    )) as AdmissionError;
    expect([error.name, error.details.index]).toEqual(['AdmissionError', 2]);
    expect(error.details.explanation.text).toMatch(/held by "a" of process \d+: /);
    expect(onRecord(manager)).toEqual(before);
  });

  it('commits nothing for pods that are all on record', async () => {
    const manager = await newManager();
    await manager.admitAll([pod('a', 1), pod('b', 2)]);
    const before = onRecord(manager);
    const again = await manager.admitAll([pod('b', 2), pod('a', 1)], { replace: true });
    expect(again.map(({ uid, alreadyAdmitted, replaced }) => [uid, alreadyAdmitted, replaced])).toEqual([
      ['b', true, false],
      ['a', true, false],
    ]);
    expect(onRecord(manager)).toEqual(before);
  });

  it('returns nothing for no pods, and refuses duplicates, values that are no list, and unknown options', async () => {
    const manager = await newManager();
    expect(await manager.admitAll([])).toEqual([]);
    const refused = async (pods: unknown, options?: object) => {
      const { code, details } = await errorOf(() => manager.admitAll(pods as PodSpec[], options));
      return [code, details.index ?? details.option ?? details.value];
    };
    expect(await refused([pod('a', 1), pod('b', 1), pod('a', 1)])).toEqual(['ERR_POD_CONFLICT', 2]);
    expect(await refused({})).toEqual(['ERR_INVALID_OPTION', 'pods']);
    expect(await refused([pod('a', 1), { uid: 'b', containers: [] }])).toEqual(['ERR_INVALID_POD', 1]);
    expect(await refused([], { wait: true })).toEqual(['ERR_INVALID_OPTION', 'wait']);
    expect(await refused([], { replace: 'yes' })).toEqual(['ERR_INVALID_OPTION', 'replace']);
    expect(manager.grants()).toEqual([]);
  });

  it('has custom providers release what they allocated for the pods before a rejected one', async () => {
    const manager = await newManager();
    const held: string[] = [];
    manager.addHintProvider({
      name: 'log',
      hints: () => null,
      allocate: ({ pod: { uid } }) => void held.push(uid),
      release: ({ pod: { uid } }) => void held.splice(held.indexOf(uid), held.includes(uid) ? 1 : 0),
    });
    await errorOf(() => manager.admitAll([pod('a', 3), pod('b', 3), pod('c', 3)]));
    expect(held).toEqual([]);
    await manager.admitAll([pod('a', 3), pod('b', 3)]);
    expect(held).toEqual(['a', 'b']);
    const refusal = await errorOf(() => manager.admitAll([pod('a', 2)], { replace: true }));
    expect([refusal.code, held]).toEqual(['ERR_INVALID_OPTION', ['a', 'b']]);
  });
});

describe('many persistent pods', () => {
  it('have a file each as soon as they are admitted, and replaced ones have none', async () => {
    const manager = await newManager();
    const many = (cpu: string) => Array.from({ length: 9 }, (_, i) => pod(`pod-${i}`, cpu));
    const files = () => readdirSync(join(manager.stateDir!, 'owners'));
    await manager.admitAll(many('100m'), { owner: 'persistent' });
    const before = files();
    await manager.admitAll(many('200m'), { owner: 'persistent', replace: true });
    const after = files();
    expect([before.length, after.length]).toEqual([9, 9]);
    expect(after.filter((name) => before.includes(name))).toEqual([]);
  });
});

describe('a pod with a changed request', () => {
  it('is refused, and no pod of its list is admitted', async () => {
    const manager = await newManager();
    await manager.admit(pod('a', 2));
    const before = onRecord(manager);
    const { code, details } = await errorOf(() => manager.admitAll([pod('b', 1), pod('a', 3)]));
    expect([code, details.index]).toEqual(['ERR_POD_CONFLICT', 1]);
    expect(onRecord(manager)).toEqual(before);
  });

  it('takes the place of the old one with replace, whose CPUs and memory count as free', async () => {
    const manager = await newManager();
    const [old] = await manager.admitAll([pod('a', 6), pod('b', 1)]);
    const before = manager.generation();
    // One CPU is free besides its own.
    const [replaced] = await manager.admitAll([pod('a', 5)], { replace: true });
    expect([replaced!.replaced, replaced!.alreadyAdmitted]).toEqual([true, false]);
    const [had, has] = [old!, replaced!].map((each) => each.container('main').cpus!);
    expect([has!.size, has!.intersects(had!)]).toEqual([5, true]);
    expect(manager.generation()).toBe(before + 1);
    expect(
      manager
        .grants()
        .map(({ uid }) => uid)
        .sort(),
    ).toEqual(['a', 'b']);
    const booked = manager.memory().reduce((sum, { reserved }) => sum + reserved, 0);
    expect(booked).toBe(2 * 64 * 2 ** 20);
    // The old grant is over: it cannot give back CPUs of the new one.
    expect((await errorOf(() => old!.release())).code).toBe('ERR_UNKNOWN_GRANT');
    await replaced!.release();
    expect(manager.grants().map(({ uid }) => uid)).toEqual(['b']);
  });

  it('leaves the old one unchanged if the new one or one after it has no room', async () => {
    const manager = await newManager();
    await manager.admitAll([pod('a', 2), pod('b', 2)]);
    const before = onRecord(manager);
    const one = await errorOf(() => manager.admitAll([pod('a', 7)], { replace: true }));
    expect([one.name, one.details.index]).toEqual(['AdmissionError', 0]);
    expect(onRecord(manager)).toEqual(before);
    const next = await errorOf(() => manager.admitAll([pod('a', 3), pod('c', 3)], { replace: true }));
    expect([next.name, next.details.index]).toEqual(['AdmissionError', 1]);
    expect(onRecord(manager)).toEqual(before);
  });

  it('keeps its CPUs and memory if an unmet requirement shows only after the commit', async () => {
    const manager = await newManager();
    await manager.admitAll([pod('a', 2), pod('b', 2)]);
    const { generation: _, ...before } = onRecord(manager);
    const quiet = { quiet: true, require: { quiet: ['interrupts'] } } as const;
    const error = await errorOf(() =>
      manager.admitAll([pod('b', 2), pod('a', 3), pod('c', 1)], { replace: true, ...quiet }),
    );
    expect([error.code, error.details.index]).toEqual(['ERR_QUIET', 1]);
    expect(onRecord(manager)).toMatchObject(before);
  });

  it('differs from the one that it replaces, even within the same millisecond', async () => {
    const manager = await newManager();
    const clock = vi.spyOn(Date, 'now').mockReturnValue(Date.now());
    onTestFinished(() => clock.mockRestore());
    const [old] = await manager.admitAll([pod('a', 2)]);
    await manager.admitAll([pod('a', 3)], { replace: true });
    expect((await errorOf(() => old!.release())).code).toBe('ERR_UNKNOWN_GRANT');
    expect(manager.grants().map(({ uid }) => uid)).toEqual(['a']);
  });

  it('can swap the CPUs of two pods, which one after the other could not', async () => {
    const manager = await newManager();
    await manager.admitAll([pod('a', 5), pod('b', 2)]);
    const order = [pod('a', 2), pod('b', 5)];
    const swapped = await manager.admitAll(order, { replace: true });
    expect(swapped.map((each) => each.container('main').cpus?.size)).toEqual([2, 5]);
  });
});

describe('a planner with replace', () => {
  it('plans a changed pod like admitAll places it, and counts the old one if there is no room', async () => {
    const manager = await newManager();
    await manager.admitAll([pod('a', 6), pod('b', 1)]);
    const planner = manager.planner();
    expect(planner.plan(pod('a', 8), { replace: true })).toMatchObject({ admitted: false, replaced: true });
    expect(planner.plan(pod('c', 1))).toMatchObject({ admitted: false, replaced: false });
    const planned = planner.plan(pod('a', 5), { replace: true });
    expect(planned).toMatchObject({ admitted: true, replaced: true, alreadyAdmitted: false });
    expect(planner.plan(pod('b', 1), { replace: true })).toMatchObject({
      alreadyAdmitted: true,
      replaced: false,
    });
    const [placed] = await manager.admitAll([pod('a', 5)], { replace: true });
    expect(placed!.containers).toEqual(planned.containers);
    const wrong = await errorOf(() => planner.plan(pod('a', 5), { replace: 1 as never }));
    expect(wrong.code).toBe('ERR_INVALID_OPTION');
  });
});

describe('the uid of a name', () => {
  // Python's uuid.uuid5 returns the same.
  it.each([
    ['gateway', '6c993d06-5755-5ca7-a2a6-b08ffd1d9024'],
    ['web-0', '9b2f7678-e329-5e1b-8a0b-7bc7a15eed42'],
    ['é'.repeat(40), 'dc445d27-5c64-5e83-bb72-a36ec222002b'],
  ])('is a UUID of version 5 of namespace and name: %s', (name, uid) => {
    expect(nameUid('default', name)).toBe(uid);
  });

  it('belongs to one pod: a living pod of that name with another uid blocks it', async () => {
    const manager = await newManager();
    const first = await manager.admit({ name: 'web', containers: [{ name: 'main' }] });
    const again = { uid: nameUid('default', 'web'), name: 'web', containers: [{ name: 'main' }] };
    const { code, details } = await errorOf(() => manager.admit(again));
    expect([code, details.valid]).toEqual(['ERR_POD_CONFLICT', first.uid]);
    await first.release();
    expect((await manager.admit(again)).uid).toBe(again.uid);
    expect((await manager.admit(again)).alreadyAdmitted).toBe(true);
  });
});
