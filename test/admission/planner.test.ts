// needs: machine
// Pods planned one on top of the other.
import { describe, expect, it } from 'vitest';
import { thrownBy } from '../support/error-of.js';
import { simulate } from '../support/simulated.js';

const newManager = (options = {}) => simulate('numa:2(memory=8GiB) core:2 pu:2', options);

function pod(cpu: number | string, name?: string, uid?: string) {
  const containers = [{ name: 'main', ...limits(cpu) }];
  return { ...(name !== undefined && { name }), ...(uid !== undefined && { uid }), containers };
}

const limits = (cpu: number | string) => ({ limits: { cpu: String(cpu), memory: '1Gi' } });

describe('a planner', () => {
  it('plans each pod on top of the earlier ones, like admissions one after the other', async () => {
    const manager = await newManager();
    const planner = manager.planner();
    const pods = [pod(3), pod(2), pod(1)];
    const planned = pods.map((one) => planner.plan(one));
    const memory = planner.memory();
    for (const [i, one] of pods.entries()) {
      const { containers } = await manager.admit(one);
      expect(planned[i]!.containers).toEqual(containers);
    }
    expect(memory).toEqual(manager.memory());
  });

  it('reports the rest of CPUs, of the shared pool, and of devices', async () => {
    const manager = await newManager({ reservedSystemCPUs: '0' });
    const ids = (ready: boolean) => [
      { id: 'a', numaNodes: [0] },
      { id: 'b', numaNodes: [1], healthy: ready },
      { id: 'c' },
    ];
    manager.registerDevices('example.com/nic', ids(true));
    const planner = manager.planner();
    const withNic = { name: 'main', limits: { cpu: 2, memory: '1Gi', 'example.com/nic': 1 } };
    const { cpus } = planner.plan({ containers: [withNic] });
    expect(planner.freeCpus()).toEqual(manager.freeCpus().difference(cpus));
    expect(planner.sharedPool()).toEqual(manager.sharedPool().difference(cpus));
    const free = () =>
      planner.devices().map(({ id, numaNodes, healthy, free }) => [id, numaNodes, healthy, free]);
    expect(free()).toEqual([
      ['a', [0], true, false],
      ['b', [1], true, true],
      ['c', null, true, true],
    ]);
    // The devices are those that are registered by now.
    manager.registerDevices('example.com/nic', ids(false));
    expect(free()[1]).toEqual(['b', [1], false, false]);
    expect(planner.devices().map(({ resource }) => resource)).toEqual(Array(3).fill('example.com/nic'));
  });

  it('changes nothing', async () => {
    const manager = await newManager();
    const before = [manager.generation(), manager.freeCpus(), manager.memory()];
    expect(manager.planner().plan(pod(3))).toMatchObject({ admitted: true });
    expect([manager.generation(), manager.freeCpus(), manager.memory()]).toEqual(before);
  });

  it('takes nothing for a rejected pod', async () => {
    const planner = (await newManager()).planner();
    expect(planner.plan(pod(9))).toMatchObject({ admitted: false, devices: {}, memory: [] });
    expect(planner.plan(pod(9)).cpus.isEmpty).toBe(true);
    expect(planner.plan(pod(7))).toMatchObject({ admitted: true });
  });

  it('starts from the record at its creation', async () => {
    const manager = await newManager();
    const planner = manager.planner();
    await manager.acquire({ cpu: 7 });
    expect(planner.plan(pod(7))).toMatchObject({ admitted: true });
    expect(planner.generation).toBe(manager.generation() - 1);
    expect(manager.planner().plan(pod(7))).toMatchObject({ admitted: false });
  });

  it('says that a pod is placed already, with its grant', async () => {
    const manager = await newManager({ policy: 'restricted' });
    const { containers } = await manager.admit(pod(2, 'web', 'some-uid'));
    const again = manager.planner().plan(pod(2, 'web', 'some-uid'), { policy: 'none' });
    expect(again).toMatchObject({
      ...{ uid: 'some-uid', alreadyAdmitted: true, policy: 'restricted', scope: 'container' },
      ...{ containers, cpus: containers[0]!.cpus },
    });
  });

  it('knows a pod that it has planned before by its uid', async () => {
    const planner = (await newManager()).planner();
    const first = planner.plan(pod(2, 'web', 'some-uid'));
    expect(planner.plan(pod(2, 'web', 'some-uid'))).toMatchObject({
      ...{ uid: 'some-uid', alreadyAdmitted: true, cpus: first.cpus },
    });
  });

  it('refuses a second pod of one name without a uid', async () => {
    const planner = (await newManager()).planner();
    planner.plan(pod(1, 'web'));
    expect(thrownBy(() => planner.plan(pod(1, 'web')))).toMatchObject({ code: 'ERR_POD_CONFLICT' });
  });

  it('asks custom providers to release what they allocated', async () => {
    const manager = await newManager();
    const asked: string[] = [];
    manager.addHintProvider({
      name: 'example',
      hints: () => ({}),
      allocate: ({ pod: { uid }, dryRun }) => asked.push(`allocate ${uid} ${dryRun}`),
      release: ({ pod: { uid } }) => asked.push(`release ${uid}`),
    });
    const planner = manager.planner();
    const { uid } = planner.plan(pod(1));
    expect(asked).toHaveLength(2);
    const [, trial] = asked[0]!.split(' ');
    expect(asked).toEqual([`allocate ${trial} true`, `release ${trial}`]);
    expect(trial).not.toBe(uid);
    expect(planner.plan({ ...pod(1), uid })).toMatchObject({ alreadyAdmitted: true });
  });
});

describe('the reason why containers are shared', () => {
  it('is reported for each, in the order of the pod', async () => {
    const manager = await newManager();
    const containers = [
      { name: 'main', ...limits(2) },
      { name: 'log', ...limits('500m') },
    ];
    expect(manager.whyShared({ containers })).toEqual([
      null,
      'container log: 500m is not a whole number of CPUs',
    ]);
  });

  it('is the QoS class, or the CPU policy, of the whole pod', async () => {
    const burstable = { containers: [{ name: 'main', requests: { cpu: 1 } }] };
    expect((await newManager()).whyShared(burstable)[0]).toMatch(/^Burstable: /);
    const [none] = (await newManager({ cpuManagerPolicy: 'none' })).whyShared(pod(2));
    expect(none).toBe('the CPU policy is none');
  });
});
