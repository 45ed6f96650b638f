// needs: nothing
// Claims on the devices of a machine: what a scheduler would give them.
import fc from 'fast-check';
import { discover } from 'numalign/topology';
import { beforeAll, describe, expect, it } from 'vitest';
import { budget } from '../../../../test/support/budget.mjs';
import { type Allocation, allocate, NOTHING_TAKEN, type NoAllocation } from '../../lib/claims/allocation.js';
import { claimOf, deviceClassOf, OWN_CLASSES } from '../../lib/claims/objects.js';
import { type DeviceMachine, type DeviceUnit, devicesOf } from '../../lib/devices/devices.js';

let machine: DeviceMachine;
beforeAll(async () => {
  const topology = await discover({ synthetic: 'package:2 numa:1(memory=8GiB) l3:2 core:2 pu:2' });
  const memory = topology.nodes.map(({ id, memoryBytes }) => ({
    node: id,
    type: 'memory',
    bytes: memoryBytes,
  }));
  machine = { topology, cpus: topology.cpus, keepsOne: false, wholeCores: false, memory };
});

const claim = (requests: object[], constraints: object[] = []) =>
  claimOf({ kind: 'ResourceClaim', spec: { devices: { requests, constraints } } });
const request = (name: string, deviceClassName: string, more: object = {}) => ({
  name,
  exactly: { deviceClassName, ...more },
});
const capacity = (requests: object) => ({ capacity: { requests } });
const selector = (expression: string) => ({ selectors: [{ cel: { expression } }] });

const given = (
  unit: DeviceUnit,
  requests: object[],
  constraints: object[] = [],
  taken = NOTHING_TAKEN,
): Allocation | NoAllocation =>
  allocate(claim(requests, constraints), devicesOf(machine, unit), OWN_CLASSES, taken);
const namesOf = (answer: Allocation | NoAllocation) =>
  'results' in answer
    ? answer.results.map(({ request, device }) => `${request} ${device.name}`)
    : answer.reason;

describe('a claim', () => {
  it('gets parts of a NUMA node until it is full, in the steps of the device', () => {
    const asked = [request('a', 'node.numalign.io', capacity({ cpu: '4500m', memory: '2Gi' }))];
    const first = given('node', asked) as Allocation;
    expect(namesOf(first)).toEqual(['a node-0']);
    expect([...first.results[0]!.amounts]).toEqual([
      ['cpu', 5n * 10n ** 9n],
      ['memory', 2n * 2n ** 30n * 10n ** 9n],
    ]);
    const second = given('node', asked, [], first.taken) as Allocation;
    expect(namesOf(second)).toEqual(['a node-1']);
    expect(namesOf(given('node', asked, [], second.taken))).toBe(
      'request a lacks 1 of its devices: node-0: cpu 5 is more than 3, node-1: cpu 5 is more than 3',
    );
  });

  it('takes what a device has by default where it names no amount', () => {
    const { results } = given('node', [request('a', 'node.numalign.io')]) as Allocation;
    expect([...results[0]!.amounts.values()]).toEqual([10n ** 9n, 0n]);
  });

  it('gets devices whose attributes are the same, or differ', () => {
    const asked = [request('a', 'core.numalign.io', { count: 2 }), request('b', 'core.numalign.io')];
    expect(namesOf(given('core', asked))).toEqual(['a core-0', 'a core-2', 'b core-4']);
    const same = [{ requests: ['a'], matchAttribute: 'numalign.io/l3' }];
    const apart = [
      { matchAttribute: 'resource.kubernetes.io/numaNode' },
      { requests: ['b'], distinctAttribute: 'numalign.io/core' },
    ];
    expect(namesOf(given('core', asked, [...same, ...apart]))).toEqual(['a core-0', 'a core-2', 'b core-4']);
    const two = [request('a', 'node.numalign.io'), request('b', 'node.numalign.io')];
    expect(namesOf(given('node', two, [{ distinctAttribute: 'resource.kubernetes.io/numaNode' }]))).toEqual([
      'a node-0',
      'b node-1',
    ]);
    expect(namesOf(given('core', [request('a', 'core.numalign.io', { count: 3 })], same))).toMatch(
      /^request a lacks 1 of its devices: .*its numalign.io\/l3 is 1, not as of core-0/,
    );
  });

  it('tries other devices for a request before it gives up', () => {
    const asked = [
      request('a', 'node.numalign.io', capacity({ cpu: 2 })),
      request('b', 'node.numalign.io', {
        ...capacity({ cpu: 8 }),
        ...selector('device.attributes["numalign.io"].socket == 0'),
      }),
    ];
    expect(namesOf(given('node', asked))).toEqual(['a node-1', 'b node-0']);
  });

  it('gets the first alternative that fits', () => {
    const alternatives = [
      { name: 'large', deviceClassName: 'node.numalign.io', ...capacity({ cpu: 9 }) },
      { name: 'small', deviceClassName: 'node.numalign.io', ...capacity({ cpu: 4 }) },
    ];
    expect(namesOf(given('node', [{ name: 'a', firstAvailable: alternatives }]))).toEqual(['a/small node-0']);
  });

  it('gets all devices that match, or none', () => {
    const all = (name: string, kind: string, more: object = {}) =>
      request(name, kind, { allocationMode: 'All', ...more });
    const onSocket = selector('device.attributes["numalign.io"].socket == 1');
    const cores = given('core', [all('a', 'core.numalign.io', onSocket)]) as Allocation;
    expect(namesOf(cores)).toEqual(['a core-8', 'a core-10', 'a core-12', 'a core-14']);
    const again = [all('b', 'core.numalign.io', onSocket)];
    expect(namesOf(given('core', again, [], cores.taken))).toBe(
      'request b lacks 4 of its devices: core-8: it is taken',
    );
    // Of shared devices each has as much as is asked for.
    const nodes = given('node', [all('a', 'node.numalign.io', capacity({ cpu: 5 }))]) as Allocation;
    expect(
      nodes.results.map(({ device, amounts }) => [device.name, amounts.get('cpu')! / 10n ** 9n]),
    ).toEqual([
      ['node-0', 5n],
      ['node-1', 5n],
    ]);
    const more = [all('b', 'node.numalign.io', capacity({ cpu: 4 }))];
    expect(namesOf(given('node', more, [], nodes.taken))).toBe(
      'request b lacks 2 of its devices: node-0: cpu 4 is more than 3',
    );
    expect(namesOf(given('node', [all('c', 'l3.numalign.io')]))).toBe(
      'request c lacks 1 of its devices: no device of l3.numalign.io matches',
    );
    const apart = [{ matchAttribute: 'resource.kubernetes.io/numaNode' }];
    expect(namesOf(given('node', [all('d', 'node.numalign.io')], apart))).toMatch(
      /numaNode is 1, not as of node-0/,
    );
  });

  it('makes room for a request of all devices by others for the requests before', () => {
    const asked = [
      request('a', 'core.numalign.io'),
      request('b', 'core.numalign.io', {
        allocationMode: 'All',
        ...selector('device.attributes["numalign.io"].socket == 0'),
      }),
    ];
    expect((namesOf(given('core', asked)) as string[])[0]).toBe('a core-8');
  });

  it('has at most 32 devices, as the API says', async () => {
    const topology = await discover({ synthetic: 'numa:1(memory=8GiB) core:40 pu:1' });
    const large = { topology, cpus: topology.cpus, keepsOne: false, wholeCores: false, memory: [] };
    const devices = devicesOf(large, 'cpu');
    const answer = (requests: object[]) =>
      namesOf(allocate(claim(requests), devices, OWN_CLASSES, NOTHING_TAKEN));
    expect(answer([request('a', 'cpu.numalign.io', { allocationMode: 'All' })])).toMatch(
      /lacks 8 of its devices: cpu-32: a claim has at most 32 devices/,
    );
    expect(answer([request('a', 'cpu.numalign.io', { count: 32 })])).toHaveLength(32);
    expect(answer([request('a', 'cpu.numalign.io', { count: 32 }), request('b', 'cpu.numalign.io')])).toMatch(
      /^33 devices are more than 32/,
    );
  });

  it('is refused with adminAccess to devices of numalign', () => {
    const answer = given('node', [
      request('gpu', 'gpu.example.com', { adminAccess: true }),
      request('cpus', 'node.numalign.io', { adminAccess: true }),
    ]);
    expect(namesOf(answer)).toBe('request cpus: numalign-node refuses claims with adminAccess');
    expect(answer.notPlanned).toEqual(['request gpu: gpu.example.com, a class of other devices']);
  });

  it('names what is not planned', () => {
    const asked = [
      request('gpu', 'gpu.example.com'),
      request('new', 'node.numalign.io', selector('device.attributes["a"].b.matches("c")')),
      request('cpus', 'node.numalign.io'),
    ];
    const answer = given('node', asked, [
      { requests: ['gpu', 'cpus'], matchAttribute: 'resource.kubernetes.io/numaNode' },
    ]);
    expect(namesOf(answer)).toEqual(['cpus node-0']);
    expect(answer.notPlanned).toEqual([
      'request gpu: gpu.example.com, a class of other devices',
      `request new: the method matches() in 'device.attributes["a"].b.matches("c")'`,
      'matchAttribute resource.kubernetes.io/numaNode with gpu',
    ]);
  });

  it('fails as a whole where a selector has no value, and says which name was meant', () => {
    expect(
      namesOf(
        given('node', [
          request('a', 'node.numalign.io', selector('device.attributes["numalign.io"].gpu == 1')),
        ]),
      ),
    ).toContain('has no value for node-0: no such key: gpu');
    expect(
      namesOf(given('node', [request('a', 'node.numalign.io', capacity({ 'numalign.io/cpu': 1 }))])),
    ).toContain('it has no numalign.io/cpu; did you mean cpu?');
  });

  it.each([
    [
      [{ name: 'a', exactly: { deviceClassName: 'x', count: 0 } }],
      [],
      'spec.devices.requests[0].exactly.count must be',
    ],
    [
      [request('a', 'x', { count: 33 })],
      [],
      'spec.devices.requests[0].exactly.count must be a whole number from 1 to 32, not 33',
    ],
    [
      [request('a', 'x', { count: 2, allocationMode: 'All' })],
      [],
      'exactly.count must be left out with allocationMode All',
    ],
    [
      [request('a', 'x', { allocationMode: 'Most' })],
      [],
      "allocationMode must be ExactCount or All, not 'Most'",
    ],
    [[{ name: 'a', exactly: {} }], [], 'exactly.deviceClassName must be a text, but there is none'],
    [[request('a', 'x'), request('a', 'x')], [], "must be each of another name, not 'a'"],
    [[request('a', 'x', capacity({ cpu: '1q' }))], [], 'capacity.requests.cpu'],
    [[request('a', 'x', selector('device.driver = 1'))], [], 'selectors[0].cel.expression: character 15 of'],
    [[request('a', 'x')], [{ matchAttribute: 'numaNode' }], 'matchAttribute must be with its domain'],
    [[request('a', 'x')], [{ requests: ['b'], matchAttribute: 'a/b' }], "must be one of a, not 'b'"],
  ])('%j with %j is wrong: %s', (requests, constraints, message) => {
    expect(() => claim(requests, constraints)).toThrow(message);
  });

  it('never gets more than there is, and never less than it asks for', () => {
    const amounts = fc.record({
      cpu: fc.integer({ min: 1, max: 9 }),
      memory: fc.constantFrom('1Gi', '3Gi', '7Gi'),
    });
    fc.assert(
      fc.property(fc.array(amounts, { maxLength: 8 }), (all) => {
        let taken = NOTHING_TAKEN;
        for (const each of all) {
          const answer = given('node', [request('a', 'node.numalign.io', capacity(each))], [], taken);
          if ('taken' in answer) taken = answer.taken;
        }
        for (const device of devicesOf(machine, 'node'))
          for (const [name, { value }] of device.capacity)
            expect(taken.amounts.get(device.name)?.get(name) ?? 0n).toBeLessThanOrEqual(
              BigInt(value) * 10n ** 9n,
            );
      }),
      { numRuns: budget({ all: 1000, usual: 30 }) },
    );
  });
});

it('classes are read with their selectors', () => {
  const manifest = {
    kind: 'DeviceClass',
    spec: { selectors: [{ cel: { expression: 'device.driver == "a"' } }] },
  };
  expect(deviceClassOf(manifest)).toMatchObject({
    selectors: [{ text: 'device.driver == "a"' }],
    beyond: [],
  });
  expect(deviceClassOf({ kind: 'DeviceClass' })).toEqual({ selectors: [], beyond: [] });
});
