// needs: agents
// Which grants of ranges give up which CPUs, as it is decided before anything happens.
import { describe, expect, it } from 'vitest';
import { replacePod } from '../../lib/account/pod-changes.js';
import { runningCpus } from '../../lib/account/pod-holdings.js';
import { livingState } from '../../lib/admission/on-record.js';
import { resizeInput } from '../../lib/changes/shrink-grants.js';
import { type ElasticPod, elasticPods, elasticSize } from '../../lib/decision/changes/elastic-grants.js';
import { growthRequest } from '../../lib/decision/changes/growth.js';
import { CpuSet, type Manager } from '../../lib/index.js';
import { hostOf } from '../support/moves.mjs';
import { guaranteed, simulate } from '../support/simulated.js';

/** It has its most, and stays so. */
const range = (name: string, max: number) => ({ cpu: { min: 1, max }, name });
const pod = (cpu: number) => ({ uid: 'asker', containers: [guaranteed('main', { cpu })] });
const HANDED_OVER = { transfer: '0'.repeat(32) };

function lookAt(manager: Manager) {
  const host = hostOf(manager);
  const state = livingState(host);
  const grants = Object.fromEntries(elasticPods(state).map((each) => [each.name, each]));
  return { state, grants, ground: (now = state) => resizeInput(host, now) };
}

describe('the CPUs that a grant of a range gives up near others', () => {
  const TWO_NODES = 'package:2 [numa(memory=8GiB)] core:4 pu:1';

  async function onSeven() {
    const manager = await simulate(TWO_NODES);
    await manager.acquire(range('grant', 7));
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
  const upTo = (pod: ElasticPod, max: number) => ({ ...pod, elastic: { ...pod.elastic, max } });

  /** `large` has 6 CPUs and `small` one; one more is free. */
  async function unequal() {
    const manager = await simulate('core:9 pu:1');
    await manager.acquire(range('large', 6));
    await manager.acquire(range('small', 1));
    const { state, grants, ground } = lookAt(manager);
    const [large, small] = [upTo(grants.large!, 9), upTo(grants.small!, 9)];
    return { state: replacePod(replacePod(state, large), small), large, small, ground };
  }

  it('asks another for no more than it lacks beside what is free', async () => {
    const { state, small, ground } = await unequal();
    const asked = growthRequest(ground(state), small, () => true);
    expect(asked!.cpus).toBe(4);
    expect(asked!.shrinks.map((each) => runningCpus(each).size)).toEqual([4]);
  });

  it('asks no other that is about to change', async () => {
    const { state, large, small, ground } = await unequal();
    const changing = replacePod(state, { ...large, ...HANDED_OVER });
    expect(growthRequest(ground(changing), small, () => true)).toBeUndefined();
  });

  it('asks nothing while it is about to change itself', async () => {
    const { state, small, ground } = await unequal();
    const changing = { ...small, ...HANDED_OVER };
    expect(growthRequest(ground(replacePod(state, changing)), changing, () => true)).toBeUndefined();
  });
});

describe('room for a request', () => {
  it('is made by as few grants of ranges as will do', async () => {
    const manager = await simulate('core:10 pu:1');
    const large = await manager.acquire(range('large', 6));
    await manager.acquire(range('small', 3));
    const moves = manager.plan(pod(2)).repacking?.moves ?? [];
    expect(moves.map(({ uid }) => uid)).toEqual([large.uid]);
  });

  it('is not made by a grant that is being handed over', async () => {
    const manager = await simulate('core:10 pu:1');
    const grant = await manager.acquire(range('grant', 9));
    await grant.transfer();
    expect(manager.plan(pod(2)).repacking).toBeNull();
  });

  it('is not made of isolated CPUs where it asks for others', async () => {
    const manager = await simulate('core:12 pu:1', { isolatedCPUs: '6-11' });
    await manager.acquire({ ...range('isolated', 6), isolation: 'require' });
    const ordinary = await manager.acquire(range('ordinary', 5));
    expect(manager.grants().map(({ cpus }) => cpus.size)).toEqual([6, 5]);
    const moves = manager.plan(pod(2)).repacking?.moves ?? [];
    expect(moves.map(({ uid, cpus }) => [uid, cpus.size])).toEqual([[ordinary.uid, 3]]);
  });
});
