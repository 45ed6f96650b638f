// needs: nothing
// What no longer holds of the grants of a state.

import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Assignments } from '../../lib/account/assignments.js';
import { identitiesOf } from '../../lib/account/cpu-identities.js';
import type { CpuIdentity, PodAssignment } from '../../lib/account/pod-assignment.js';
import { ISOLATED_OPTION } from '../../lib/account/pod-holdings.js';
import { DEFAULT_GATES, DEFAULT_VERSION } from '../../lib/base/kubelet-features.js';
import type { DeviceResources } from '../../lib/decision/devices/device-resources.js';
import { UNKNOWN_HUGEPAGES } from '../../lib/decision/draft/memory-draft.js';
import { flagsOf, flagsOfEach } from '../../lib/decision/flags/flags.js';
import { discover } from '../../lib/entries/topology.js';
import { CpuSet } from '../../lib/index.js';

const topology = await discover({ synthetic: 'numa:2(memory=1GiB) core:2 pu:2' });
const NODE_BYTES = 2 ** 30;

// In most states everything holds: problems are rare.
const rarely = <T>(usual: T, other: fc.Arbitrary<T>) =>
  fc.oneof({ arbitrary: fc.constant(usual), weight: 3 }, { arbitrary: other, weight: 1 });
const cpuSet = (greatest: number) =>
  fc.uniqueArray(fc.nat(greatest), { maxLength: 3 }).map((ids) => CpuSet.from(ids));

const pod = fc
  .record({
    cpus: fc.oneof(cpuSet(7), rarely(CpuSet.EMPTY, cpuSet(9))),
    isIsolated: fc.boolean(),
    bytes: rarely(0, fc.nat(NODE_BYTES)),
    nodes: rarely<number[]>([0], fc.constantFrom([1], [0, 1], [2])),
    device: rarely<string | null>(null, fc.constantFrom('a', 'b', '0000:01:00.0')),
    mixed: rarely<number | undefined>(undefined, fc.integer({ min: 1, max: 3000 })),
  })
  .map(
    ({ cpus, isIsolated, bytes, nodes, device, mixed }): PodAssignment => ({
      ...{ uid: '', name: '', namespace: undefined, policy: 'static', scope: 'container', admittedAt: '' },
      options: isIsolated ? { [ISOLATED_OPTION]: true } : {},
      containers: [
        {
          ...{ name: 'main', kind: 'app', started: true, request: {}, cpus, held: CpuSet.EMPTY },
          isolation: cpus.isEmpty ? 'host' : 'container',
          hint: { nodes: null, preferred: true },
          memory: [{ nodes, type: 'memory', bytes }],
          devices: device === null ? {} : { 'vendor.com/card': [{ id: device, nodes: null }] },
          reusable: { cpus: CpuSet.EMPTY, memory: [], devices: {} },
          unknown: {},
        },
      ],
      ...{ booking: null, mixed },
      owner: { kind: 'persistent', uuid: 'ab', pid: null, command: null, cgroup: null, unknown: {} },
      enforcement: { level: 'recorded', target: null },
      ...{ upcoming: null, transfer: null, formerOwner: null, unknown: {} },
    }),
  );

const settings = fc.record({
  managedCPUs: rarely<CpuSet | null>(null, cpuSet(7)),
  reservedSystemCPUs: rarely(CpuSet.EMPTY, cpuSet(7)),
  isolatedCPUs: rarely<CpuSet | null>(CpuSet.parse('0-7'), fc.oneof(fc.constant(null), cpuSet(7))),
});
const rows = fc
  .nat(7)
  .map((moved) =>
    identitiesOf(topology).map((row): CpuIdentity => (row[0] === moved ? [moved, 9, 9, 9] : row)),
  );
const card = (id: string, healthy: boolean): DeviceResources => {
  const devices = [{ id, healthy, numaNodes: null }];
  return new Map([['vendor.com/card', { name: 'vendor.com/card', devices, preferredAllocation: undefined }]]);
};
const resources = rarely<DeviceResources>(
  new Map(),
  fc.constantFrom(card('a', true), card('a', false), card('b', true)),
);

it('finds the same for each grant of a state as for that grant alone', () => {
  let unflagged = 0;
  fc.assert(
    fc.property(
      fc.array(pod, { maxLength: 4 }),
      settings,
      rarely(identitiesOf(topology), rows),
      rarely(0, fc.nat(2 * NODE_BYTES)),
      resources,
      rarely(CpuSet.parse('0-7'), cpuSet(7)),
      (pods, given, cpus, booked, devices, online) => {
        const state: Assignments = {
          settings: {
            ...given,
            ...{
              strictCPUReservation: false,
              reservedMemory: {},
              cgroupRoot: null,
              kubeletVersion: DEFAULT_VERSION,
              featureGates: DEFAULT_GATES[DEFAULT_VERSION],
              simulated: true,
              unknown: {},
            },
          },
          ...{
            cpus,
            pods,
            memory: { 0: { memory: booked } },
            lastCpus: [],
            kubelet: null,
            quiet: null,
            unknown: {},
          },
        };
        const present = { online, isolated: CpuSet.EMPTY };
        const facts = { state, topology, resources: devices, present, hugepages: UNKNOWN_HUGEPAGES };
        const alone = pods.map((each) => flagsOf(each, facts));
        expect(pods.map(flagsOfEach(facts))).toEqual(alone);
        if (pods.length > 0 && alone.every((flags) => flags.length === 0)) unflagged++;
      },
    ),
    { numRuns: 2000 },
  );
  expect(unflagged).toBeGreaterThan(10);
});
