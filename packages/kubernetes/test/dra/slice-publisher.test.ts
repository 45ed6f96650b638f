// ResourceSlices of a node: what they say, and how they are kept at the API server.
import { rmSync } from 'node:fs';
import fc from 'fast-check';
import { type Manager, openManager } from 'numalign';
import { discover } from 'numalign/topology';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { DEVICE_UNITS, type DeviceUnit } from '../../lib/dra/devices.js';
import { type DeviceManager, fallenGrants, nodeDevices } from '../../lib/dra/publish/node-devices.js';
import { sliceName, slicesOf, type TaintedDevice } from '../../lib/dra/publish/resource-slices.js';
import { SlicePublisher, type SlicePublisherOptions } from '../../lib/dra/publish/slice-publisher.js';
import { makePki, type Pki } from '../api-server/fake-server.js';
import { SliceServer } from './slice-server.js';

let pki: Pki;
beforeAll(() => {
  pki = makePki();
});
afterAll(() => rmSync(pki.folder, { recursive: true, force: true }));

const MACHINE = 'package:2 numa:1(memory=8GiB) l3:2 core:4 pu:2';

async function simulate(synthetic = MACHINE): Promise<Manager> {
  const topology = await discover({ synthetic });
  const manager = await openManager({ topology, reservedSystemCPUs: '0' });
  onTestFinished(() => manager.close());
  return manager;
}

interface Settings {
  unit?: DeviceUnit;
  flaw?: string;
  claims?: readonly string[];
  fallen?: ReturnType<typeof fallenGrants>;
}

const devicesNow = (
  manager: DeviceManager,
  { unit = 'node', flaw, claims = [], fallen = fallenGrants() }: Settings,
) =>
  nodeDevices({
    ...{ manager, unit, flaw, fallen, placement: manager.placement, pcieRoots: [], hasLists: false },
    isOfClaim: ({ uid }) => claims.includes(uid),
  });

async function publish(
  settings: Settings = {},
  options: Partial<SlicePublisherOptions> = {},
  kept?: SliceServer,
) {
  const server = kept ?? (await SliceServer.open(pki));
  const manager = await simulate();
  const lines: string[] = [];
  const publisher = new SlicePublisher({
    ...{
      manager,
      apiServer: server.server.client({ patienceMs: 0 }),
      nodeName: 'worker-1',
      driver: 'numalign.io',
    },
    leastMs: 0,
    devices: () => devicesNow(manager, settings),
    log: (level, message) => void lines.push(`${level} ${message}`),
    ...options,
  });
  onTestFinished(() => publisher.close());
  await publisher.start();
  return { server, manager, publisher, lines, settings };
}

const written = ({ writes }: SliceServer, ...expected: string[]) =>
  expect.poll(() => writes, { interval: 5 }).toEqual(expected);
const NAME = '00000-numalign.io-worker-1';
const acquire = (manager: Manager) =>
  manager.admit(
    { uid: 'held', name: 'held', containers: [{ name: 'main', limits: { cpu: 2, memory: '1Gi' } }] },
    { owner: 'persistent', within: '2-3' },
  );

describe('slices', () => {
  it('say what each NUMA node has, as the API wants it', async () => {
    const { server } = await publish();
    await written(server, `POST ${NAME} 1`);
    const [slice] = server.slices;
    expect(slice!.metadata.ownerReferences).toEqual([
      { apiVersion: 'v1', kind: 'Node', name: 'worker-1', uid: 'u-1' },
    ]);
    expect({ apiVersion: slice!.apiVersion, kind: slice!.kind }).toEqual({
      apiVersion: 'resource.k8s.io/v1',
      kind: 'ResourceSlice',
    });
    const { devices, ...spec } = slice!.spec;
    expect(spec).toEqual({
      driver: 'numalign.io',
      nodeName: 'worker-1',
      pool: { name: 'worker-1', generation: 1, resourceSliceCount: 1 },
    });
    expect(devices[0]).toEqual({
      name: 'node-0',
      allowMultipleAllocations: true,
      attributes: {
        'resource.kubernetes.io/numaNode': { int: 0 },
        kind: { string: 'node' },
        socket: { int: 0 },
        smt: { bool: true },
        coreKind: { string: 'performance' },
        tier: { string: 'dram' },
      },
      capacity: {
        cpu: { value: '15', requestPolicy: { default: '1', validRange: { min: '1', step: '1' } } },
        memory: { value: '8Gi', requestPolicy: { default: '0' } },
      },
    });
  });

  it('stay within the limits of the API, with any number of devices', () => {
    const device = (i: number, isTainted: boolean): TaintedDevice => ({
      ...{
        name: `cpu-${i}`,
        kind: 'cpu',
        node: 0,
        l3: 0,
        isShared: false,
        attributes: new Map(),
        capacity: new Map(),
      },
      cpus: undefined as never,
      taints: isTainted ? [{ key: 'numalign.io/x', value: 'y', effect: 'NoSchedule' }] : [],
    });
    fc.assert(
      fc.property(fc.nat(1100), fc.boolean(), (count, isTainted) => {
        const all = Array.from({ length: count }, (_, i) => device(i, isTainted));
        const options = { driver: 'numalign.io', nodeName: 'n', version: 'v1' } as const;
        const slices = [...slicesOf(all, options)];
        expect(
          slices.flatMap(([, { devices }]) => devices.map((each) => (each as TaintedDevice).name)),
        ).toEqual(all.map(({ name }) => name));
        expect(slices.map(([name]) => name)).toEqual(slices.map(([name]) => name).sort());
        for (const [, { devices, pool }] of slices) {
          expect(devices.length).toBeLessThanOrEqual(isTainted ? 64 : 128);
          expect(pool.resourceSliceCount).toBe(slices.length);
        }
      }),
      { numRuns: 30 },
    );
    const long = ['a', 'b'].map((end) => sliceName(0, 'numalign.io', `${'n'.repeat(250)}${end}`));
    expect(new Set(long).size).toBe(2);
    expect(long[0]!.length).toBeLessThanOrEqual(253);
  });

  it('have the shape of v1beta1 where a server has nothing newer', async () => {
    const server = await SliceServer.open(pki);
    server.version = 'v1beta1';
    await publish({}, {}, server);
    await written(server, `POST ${NAME} 1`);
    expect(server.slices[0]!.apiVersion).toBe('resource.k8s.io/v1beta1');
    expect(server.slices[0]!.spec.devices[0].basic.capacity.cpu.value).toBe('15');
  });

  it.each(DEVICE_UNITS)('of a unit (%s) have what its devices may have', async (unit) => {
    const manager = await simulate();
    for (const device of devicesNow(manager, { unit })) {
      expect(device.attributes.size + device.capacity.size).toBeLessThanOrEqual(32);
      for (const name of [...device.attributes.keys(), ...device.capacity.keys()])
        expect(name).toMatch(/^([a-z][a-z.0-9]{0,61}[a-z]\/)?[a-z]\w{0,31}$/);
      for (const { value, least = 0, step = 0 } of device.capacity.values())
        expect(least + step).toBeLessThanOrEqual(value);
    }
  });
});

describe('the publisher', () => {
  it('publishes again what grants of others take, and only if something has changed', async () => {
    const { server, manager, publisher } = await publish();
    await written(server, `POST ${NAME} 1`);
    const grant = await acquire(manager);
    await written(server, `POST ${NAME} 1`, `PUT ${NAME} 2`);
    expect(server.slices[0]!.spec.devices[0].capacity.cpu.value).toBe('13');
    await manager.release(grant.uid);
    await written(server, `POST ${NAME} 1`, `PUT ${NAME} 2`, `PUT ${NAME} 3`);
    publisher.publish();
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(server.writes).toHaveLength(3);
  });

  it('does not take off what claims have', async () => {
    const manager = await simulate();
    const grant = await acquire(manager);
    const cpus = (claims: readonly string[]) =>
      devicesNow(manager, { claims })[0]!.capacity.get('cpu')!.value;
    expect([cpus([]), cpus([grant.uid])]).toEqual([13, 15]);
  });

  it('taints what has lost its place or its level', async () => {
    const manager = await simulate();
    const taints = (settings: Settings) =>
      devicesNow(manager, settings).map((device) => device.taints.map(({ key }) => key));
    expect(taints({})).toEqual([[], []]);
    expect(taints({ flaw: 'no runtime' })).toEqual([
      ['numalign.io/not-placing'],
      ['numalign.io/not-placing'],
    ]);
    const grant = await acquire(manager);
    const [claims, fallen] = [[grant.uid], fallenGrants()];
    // Only the record keeps it, as in a container, from the beginning.
    expect(taints({ claims, fallen })).toEqual([[], []]);
    const { topology, placement } = manager;
    const [settings, memory] = [manager.settings(), manager.memory()];
    const raised = {
      ...{ topology, placement, settings: () => settings, memory: () => memory },
      freeCpus: () => manager.freeCpus(),
      grants: () => manager.grants().map((each) => ({ ...each, enforcement: 'members' as const })),
    };
    devicesNow(raised, { claims, fallen });
    expect(taints({ claims, fallen })).toEqual([['numalign.io/enforcement'], []]);
    expect(taints({ claims: [], fallen })).toEqual([[], []]);
  });

  it('taints the devices once the runtime has gone', async () => {
    const settings: Settings = {};
    const { server, publisher } = await publish(settings);
    await written(server, `POST ${NAME} 1`);
    settings.flaw = 'no runtime';
    publisher.publish();
    await written(server, `POST ${NAME} 1`, `PUT ${NAME} 2`);
    expect(server.slices[0]!.spec.devices[0].taints[0].key).toBe('numalign.io/not-placing');
  });

  it('removes slices that are no longer needed, and keeps all in one generation', async () => {
    const server = await SliceServer.open(pki);
    const old = { driver: 'numalign.io', nodeName: 'worker-1', devices: [] };
    for (const i of [0, 1])
      server.write(`0000${i}-numalign.io-worker-1`, {
        metadata: { name: `0000${i}-numalign.io-worker-1` },
        spec: { ...old, pool: { name: 'worker-1', generation: 7, resourceSliceCount: 2 } },
      });
    await publish({}, {}, server);
    await written(server, `PUT ${NAME} 8`);
    await expect.poll(() => server.slices.map(({ metadata }) => metadata.name)).toEqual([NAME]);
  });

  it('publishes again what others change or delete', async () => {
    const { server, lines } = await publish();
    await written(server, `POST ${NAME} 1`);
    server.write(NAME, { ...server.slices[0]!, spec: { ...server.slices[0]!.spec, devices: [] } });
    await written(server, `POST ${NAME} 1`, `PUT ${NAME} 2`);
    server.write(NAME, undefined);
    await written(server, `POST ${NAME} 1`, `PUT ${NAME} 2`, `POST ${NAME} 1`);
    expect(lines).toContain('warn the ResourceSlices of worker-1 were changed by others');
  });

  it('tries again after a conflict, and reports a refusal once', async () => {
    const server = await SliceServer.open(pki);
    let times = 0;
    server.refusal = ({ method }) =>
      method === 'POST'
        ? [
            [409, 'it exists'] as [number, string],
            [403, 'no'] as [number, string],
            [403, 'no'] as [number, string],
          ][times++]
        : undefined;
    const { lines, publisher } = await publish({}, {}, server);
    await written(server, `POST ${NAME} 1`);
    expect(lines.filter((line) => line.startsWith('error'))).toHaveLength(1);
    await expect.poll(() => publisher.condition).toMatchObject({ isMet: true });
  });

  it('says once that a server keeps less, and does not write it again and again', async () => {
    const server = await SliceServer.open(pki);
    server.kept = (object) =>
      JSON.parse(
        JSON.stringify(object, (key, value) => (key === 'allowMultipleAllocations' ? undefined : value)),
      );
    const { lines, publisher, manager } = await publish({}, {}, server);
    await written(server, `POST ${NAME} 1`);
    publisher.publish();
    await acquire(manager);
    await written(server, `POST ${NAME} 1`, `PUT ${NAME} 2`);
    expect(lines.filter((line) => line.includes('keeps less'))).toHaveLength(1);
  });

  it('publishes a pool without devices, of which a server leaves out the list', async () => {
    const { server, lines, publisher } = await publish({}, { devices: () => [] });
    await written(server, `POST ${NAME} 1`);
    publisher.publish();
    await expect.poll(() => publisher.condition).toMatchObject({ isMet: true });
    expect([server.writes, lines.filter((line) => line.includes('keeps less'))]).toEqual([
      [`POST ${NAME} 1`],
      [],
    ]);
  });

  it('leaves the slices at its end, or deletes them if asked to', async () => {
    const { server, publisher } = await publish({}, { deletesAtClose: true });
    await written(server, `POST ${NAME} 1`);
    await publisher.close();
    expect(server.slices).toEqual([]);
    const other = await publish();
    await written(other.server, `POST ${NAME} 1`);
    await other.publisher.close();
    expect(other.server.slices).toHaveLength(1);
  });
});
