// Which grants of ranges give up which CPUs, as it is decided before anything happens.
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { findPod } from '../../lib/account/assignments.js';
import { removePods, replacePod } from '../../lib/account/pod-changes.js';
import { runningCpus } from '../../lib/account/pod-holdings.js';
import { elasticSize } from '../../lib/decision/elastic-grants/elastic-size.js';
import { type ElasticPod, elasticPods } from '../../lib/decision/elastic-grants/elastic-view.js';
import { growthRequest } from '../../lib/decision/elastic-grants/growth.js';
import { groundOf, livingState } from '../../lib/elastic/elastic-ground.js';
import { CpuSet, type Manager } from '../../lib/index.js';
import { siteOf } from '../support/moves.mjs';
import { guaranteed, simulate } from '../support/simulated.js';

const range = (name: string, max: number) => ({ cpu: { min: 1, max }, name });
const pod = (cpu: number) => ({ uid: 'asker', containers: [guaranteed('main', { cpu })] });
const uidsOf = (moves: readonly { uid: string }[] | undefined) => moves?.map(({ uid }) => uid);

/** A manager whose grants stay as they are, since no time passes for them. */
function still(machine: string, options: object = {}): Promise<Manager> {
  vi.useFakeTimers({ toFake: ['setTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  return simulate(machine, options);
}

function lookAt(manager: Manager) {
  const site = siteOf(manager);
  const state = livingState(site);
  const grants = Object.fromEntries(elasticPods(state).map((each) => [each.name, each]));
  return { state, grants, ground: (now = state) => groundOf(site, now) };
}

describe('the CPUs that a grant of a range gives up near others', () => {
  const TWO_NODES = 'package:2 [numa(memory=8GiB)] core:4 pu:1';

  async function onSeven() {
    const manager = await still(TWO_NODES);
    await manager.acquire(range('grant', 8));
    return manager;
  }

  const keptOf = (manager: Manager, cpu: number, near: string) => {
    const { ground, grants } = lookAt(manager);
    const resized = elasticSize(ground(), grants.grant!, cpu, CpuSet.parse(near));
    return resized && String(runningCpus(resized.pod));
  };

  it('are all that it has there, if as many are asked for', async () => {
    expect(keptOf(await onSeven(), 4, '4-7')).toBe('0-3');
  });

  it('are none if it has fewer there than are asked for', async () => {
    expect(keptOf(await onSeven(), 3, '4-7')).toBeUndefined();
  });

  it('are not those that the kubelet has taken', async () => {
    const manager = await onSeven();
    const containers = [{ name: 'main', cpus: '4' }];
    await manager.recordKubelet([{ namespace: 'default', name: 'web', containers }]);
    expect(keptOf(manager, 5, '4-7')).toBe('0-4');
  });
});

describe('a grant of a range below its share', () => {
  /** `large` has 6 CPUs and `small` one; two more are free. */
  async function unequal() {
    const manager = await still('core:10 pu:1');
    await manager.acquire(range('large', 9));
    const rest = await manager.acquire({ cpu: 2, name: 'rest' });
    await manager.acquire(range('small', 9));
    const { state, grants, ground } = lookAt(manager);
    return { state: removePods(state, new Set([rest.uid])), grants, ground };
  }

  it('asks another for no more than it lacks beside what is free', async () => {
    const { state, grants, ground } = await unequal();
    const asked = growthRequest(ground(state), grants.small!, () => true);
    expect(asked!.cpus).toBe(5);
    expect(asked!.shrinks.map((each) => runningCpus(each).size)).toEqual([4]);
  });

  it('asks no other that is about to change', async () => {
    const { state, grants, ground } = await unequal();
    const changing = replacePod(state, { ...grants.large!, transfer: 'token' } as ElasticPod);
    expect(findPod(changing, grants.large!.uid)!.transfer).toBe('token');
    expect(growthRequest(ground(changing), grants.small!, () => true)).toBeUndefined();
  });

  it('asks nothing while it is about to change itself', async () => {
    const { state, grants, ground } = await unequal();
    const small = { ...grants.small!, transfer: 'token' } as ElasticPod;
    expect(growthRequest(ground(replacePod(state, small)), small, () => true)).toBeUndefined();
  });
});

describe('room for a request', () => {
  it('is made by as few grants of ranges as will do', async () => {
    const manager = await still('core:10 pu:1');
    const large = await manager.acquire(range('large', 9));
    await manager.acquire(range('small', 9));
    expect(uidsOf(manager.plan(pod(2)).repacking?.moves)).toEqual([large.uid]);
  });

  it('is not made by a grant that is being handed over', async () => {
    const manager = await still('core:10 pu:1');
    const grant = await manager.acquire(range('grant', 9));
    await grant.transfer();
    expect(manager.plan(pod(2)).repacking).toBeNull();
  });

  it('is not made of isolated CPUs where it asks for others', async () => {
    const manager = await still('core:12 pu:1', { isolatedCPUs: '6-11' });
    await manager.acquire({ ...range('isolated', 6), isolation: 'require' });
    const ordinary = await manager.acquire(range('ordinary', 6));
    expect(manager.grants().map(({ cpus }) => cpus.size)).toEqual([6, 5]);
    const moves = manager.plan(pod(2)).repacking?.moves ?? [];
    expect(moves.map(({ uid, cpus }) => [uid, cpus.size])).toEqual([[ordinary.uid, 3]]);
  });
});
