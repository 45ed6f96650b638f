// needs: nothing
// The kubelet's version: a setting of the machine, and its effect on pod-level resources.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { KubeletVersion } from '../../lib/base/kubelet-features.js';
import type { ResourceRequirements } from '../../lib/entries/kubelet.js';
import { type Manager, type ManagerOptions, openManager } from '../../lib/index.js';
import type { ResourceAmounts } from '../../lib/input/pods/resource-amounts.js';
import { decodeSettings } from '../../lib/state/format/checkpoint.js';
import { errorOf } from '../support/error-of.js';
import { simulate } from '../support/simulated.js';
import { makeStateDir } from '../support/state-dir.js';

const MACHINE = '[numa(memory=1GiB)] package:2 [numa(memory=1GiB)] core:4 pu:2';
const kubeletOf = (manager: Manager) => {
  const { kubeletVersion, featureGates } = manager.settings();
  return { kubeletVersion, ...featureGates };
};
const on = (options: ManagerOptions) => simulate('numa:2 core:4 pu:2', options);

const amounts = { cpu: 4, memory: 1 << 20 };
const limited = (name: string, limits: ResourceAmounts) => ({ name, limits });
const wholePod = (uid: string, resources: ResourceRequirements = { limits: amounts }) => ({
  uid,
  resources,
  containers: [limited('a', { cpu: 2, memory: 1 << 19 }), { name: 'b' }],
});

describe('the followed kubelet', () => {
  it('is v1.37 in a new state, with its default gates', async () => {
    expect(kubeletOf(await on({}))).toEqual({
      kubeletVersion: 'v1.37',
      PodLevelResources: true,
      PodLevelResourceManagers: false,
      DRAExtendedResource: true,
    });
  });

  it('is v1.32 in a state without the setting', () => {
    const recorded = {
      managedCPUs: null,
      reservedSystemCPUs: '',
      strictCPUReservation: false,
      reservedMemory: {},
      simulated: true,
    };
    expect(decodeSettings(recorded)).toMatchObject({
      kubeletVersion: 'v1.32',
      featureGates: { PodLevelResources: false, DRAExtendedResource: false },
      unknown: {},
    });
  });

  it('is set by an option or a KubeletConfiguration, whose other gates do not matter', async () => {
    expect(kubeletOf(await on({ kubeletVersion: 'v1.32' }))).toMatchObject({
      kubeletVersion: 'v1.32',
      PodLevelResources: false,
    });
    const kubeletConfiguration = {
      kind: 'KubeletConfiguration',
      featureGates: { PodLevelResourceManagers: true, DRAExtendedResource: false, Another: true },
    };
    expect(kubeletOf(await on({ kubeletConfiguration }))).toMatchObject({
      PodLevelResourceManagers: true,
      DRAExtendedResource: false,
    });
    const beside = { kubeletConfiguration, featureGates: { DRAExtendedResource: true } };
    expect(kubeletOf(await on(beside))).toMatchObject({
      PodLevelResourceManagers: true,
      DRAExtendedResource: true,
    });
  });

  it.each<[object, string]>([
    [{ kubeletVersion: 'v1.33' }, 'kubeletVersion'],
    [{ featureGates: { Another: true } }, 'Another'],
    [{ featureGates: { PodLevelResources: 'true' } }, 'featureGates.PodLevelResources'],
    [
      { featureGates: { PodLevelResourceManagers: true, PodLevelResources: false } },
      'featureGates.PodLevelResourceManagers',
    ],
    [
      { kubeletVersion: 'v1.32', featureGates: { PodLevelResources: true } },
      'featureGates.PodLevelResources',
    ],
  ])('is refused as %j', async (options, named) => {
    const error = await errorOf(() => on(options as ManagerOptions));
    expect(error.code).toBe('ERR_INVALID_OPTION');
    expect(error.message).toContain(named);
  });

  it('must be the one on record, and changes for all', async () => {
    const stateDir = makeStateDir();
    const topology = (await on({})).topology;
    const open = (options: ManagerOptions = {}) => openManager({ topology, stateDir, ...options });
    const manager = await open({ featureGates: { PodLevelResourceManagers: true } });
    const error = await errorOf(() => open({ kubeletVersion: 'v1.32' }));
    expect(error.code).toBe('ERR_CONFIG_CONFLICT');
    expect(error.details.differences).toContainEqual({
      option: 'kubeletVersion',
      asked: 'v1.32',
      recorded: 'v1.37',
    });
    const other = await errorOf(() => open({ featureGates: { PodLevelResourceManagers: false } }));
    expect(other.message).toContain('PodLevelResourceManagers=true');
    // A gate that is not named need not be known.
    (await open({ featureGates: { DRAExtendedResource: true } })).close();
    await manager.configure({ kubeletVersion: 'v1.32' });
    expect(kubeletOf(manager)).toMatchObject({ kubeletVersion: 'v1.32', PodLevelResourceManagers: false });
    await manager.configure({ kubeletVersion: 'v1.36' });
    expect(kubeletOf(manager)).toMatchObject({ PodLevelResources: true, PodLevelResourceManagers: false });
    await manager.configure({ featureGates: { PodLevelResourceManagers: true } });
    const refused = await errorOf(() => manager.configure({ featureGates: { PodLevelResources: false } }));
    expect(refused.code).toBe('ERR_INVALID_OPTION');
    manager.close();
    expect(readFileSync(join(stateDir, 'state.json'), 'utf8')).toContain('"PodLevelResourceManagers":true');
  });
});

describe('pod-level resources', () => {
  it('are refused under v1.32', async () => {
    const manager = await on({ kubeletVersion: 'v1.32' });
    const error = await errorOf(() => manager.admit(wholePod('p')));
    expect(error.code).toBe('ERR_INVALID_POD');
    expect(error.message).toContain('v1.32');
    expect(manager.grants()).toEqual([]);
  });

  it('lead to devices, but no exclusive CPUs and no hints without PodLevelResourceManagers', async () => {
    for (const featureGates of [{}, { PodLevelResources: false }]) {
      const manager = await simulate(MACHINE, { policy: 'restricted', featureGates });
      manager.registerDevices('example.com/nic', [{ id: 'n1', numaNodes: [1] }]);
      const pod = wholePod('p');
      const containers = [
        { ...pod.containers[0]!, limits: { ...amounts, cpu: 2, 'example.com/nic': 1 } },
        pod.containers[1]!,
      ];
      const admitted = await manager.admit({ ...pod, containers });
      expect(admitted.containers[0]).toMatchObject({
        cpus: null,
        memory: [],
        hint: { preferred: true },
        devices: { 'example.com/nic': [{ id: 'n1' }] },
      });
      expect(String(admitted.containers[0]!.hint.nodes)).toBe('1');
    }
  });
});

describe('devices of a DRA driver', () => {
  const NICS = [0, 1].map((node) => ({ id: `n${node}`, numaNodes: [node] }));
  const asking = (uid: string, nics = 1) => ({
    uid,
    containers: [limited('a', { cpu: 1, memory: '1Mi', 'example.com/nic': nics })],
  });
  const withNics = async (options: ManagerOptions = {}) => {
    const manager = await simulate(MACHINE, { policy: 'restricted', ...options });
    manager.registerDevices('example.com/nic', NICS.slice(1));
    return manager;
  };

  it('are not granted here, but count in hints', async () => {
    const manager = await withNics();
    const claimed = await manager.admit({
      ...asking('p'),
      draExtendedResources: { a: ['example.com/nic'] },
    });
    expect(claimed.containers[0]).toMatchObject({ devices: {}, hint: { preferred: true } });
    expect(String(claimed.containers[0]!.hint.nodes)).toBe('1');
    const plain = await manager.admit(asking('q'));
    expect(plain.containers[0]!.devices['example.com/nic']).toMatchObject([{ id: 'n1' }]);
  });

  it('are in the status of a manifest', async () => {
    const manager = await withNics();
    const mapping = { containerName: 'a', resourceName: 'example.com/nic', requestName: 'r' };
    const { devices } = (
      await manager.admit({
        kind: 'Pod',
        metadata: { uid: 'p' },
        spec: { containers: asking('p').containers },
        status: { extendedResourceClaimStatus: { requestMappings: [mapping] } },
      })
    ).containers[0]!;
    expect(devices).toEqual({});
  });

  it('may belong to a container with the name of an inherited property, or to none', async () => {
    const manager = await withNics();
    const plan = (name: string, requestMappings: unknown) =>
      manager.plan({
        kind: 'Pod',
        spec: { containers: [limited(name, { 'example.com/nic': 1 })] },
        status: { extendedResourceClaimStatus: { requestMappings } },
      }).containers[0]!.devices;
    const mapping = { containerName: 'constructor', resourceName: 'example.com/nic' };
    expect(plan('constructor', [mapping])).toEqual({});
    expect(plan('a', [mapping, { ...mapping, containerName: '__proto__' }])).not.toEqual({});
    // Like Go writes a list that was never made.
    expect(plan('a', null)).not.toEqual({});
  });

  it('are granted without DRAExtendedResource', async () => {
    for (const options of [{ featureGates: { DRAExtendedResource: false } }, { kubeletVersion: 'v1.32' }]) {
      const manager = await withNics(options as ManagerOptions);
      const { containers } = await manager.admit({
        ...asking('p'),
        draExtendedResources: { a: ['example.com/nic'] },
      });
      expect(containers[0]!.devices['example.com/nic']).toHaveLength(1);
    }
  });

  it('are refused if no such container requests them', async () => {
    const manager = await withNics();
    for (const draExtendedResources of [
      { b: ['example.com/nic'] },
      { a: ['example.com/gpu'] },
      { a: ['cpu'] },
    ]) {
      const error = await errorOf(() => manager.admit({ ...asking('p'), draExtendedResources }));
      expect(error.code).toBe('ERR_INVALID_POD');
    }
    expect(manager.grants()).toEqual([]);
  });
});

describe('hints for devices', () => {
  it('name no NUMA node without such devices, as of v1.36', async () => {
    const offered = async (kubeletVersion: KubeletVersion) => {
      const manager = await simulate('[numa(memory=1GiB)] package:3 [numa(memory=1GiB)] core:2 pu:1', {
        kubeletVersion,
        cpuManagerPolicy: 'none',
        memoryManagerPolicy: 'None',
      });
      manager.registerDevices(
        'example.com/nic',
        [0, 1].map((node) => ({ id: `n${node}`, numaNodes: [node] })),
      );
      const plan = manager.plan({ containers: [limited('a', { 'example.com/nic': 1 })] });
      return [...plan.hints[0]!.offered[0]!.hints].map(({ nodes }) => String(nodes));
    };
    expect(await offered('v1.36')).toEqual(['0', '1', '0-1']);
    expect(await offered('v1.37')).toEqual(['0', '1', '0-1']);
    expect(await offered('v1.32')).toContain('0,2');
  });
});
