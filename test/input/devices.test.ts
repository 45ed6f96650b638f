// needs: nothing
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { discover, type Topology } from '../../lib/entries/topology.js';
import {
  checkDevicePattern,
  type DevicePattern,
  parseDevices,
  selectDevices,
} from '../../lib/input/devices.js';
import { thrownBy } from '../support/error-of.js';

const NIC = 'example.com/nic';

// Two nodes. A card with two virtual functions and a disk on node 1, an accelerator without a node,
// a card near both.
const DEVICES = [
  {
    id: '0000:3b:00.0',
    class: '0200',
    vendor: '8086',
    device: '1572',
    driver: 'i40e',
    names: ['eth0'],
    numaNodes: [1],
  },
  { id: '0000:3b:02.0', class: '0200', vendor: '8086', device: '154c', driver: 'vfio-pci', numaNodes: [1] },
  {
    id: '0000:3b:02.1',
    class: '0200',
    vendor: '8086',
    device: '154c',
    driver: 'iavf',
    names: ['eth1'],
    numaNodes: [1],
  },
  {
    id: '0000:42:00.0',
    class: '0108',
    vendor: '144d',
    device: 'a80a',
    driver: 'nvme',
    names: ['nvme0n1'],
    numaNodes: [1],
  },
  {
    id: '0000:af:00.0',
    class: '0302',
    vendor: '10de',
    device: '20b0',
    driver: null,
    names: [],
    numaNodes: null,
  },
  {
    id: '10000:01:00.0',
    class: '0207',
    vendor: '15b3',
    device: '101b',
    names: ['ib0', 'mlx5_0'],
    numaNodes: [0, 1],
  },
].map((device) => ({ ...device, parent: device.id.startsWith('0000:3b:02') ? '0000:3b:00.0' : null }));

let topology: Topology;
beforeAll(async () => {
  const { devices: _, ...machine } = (await discover({ synthetic: 'package:2 [numa] core:2 pu:1' })).toJSON();
  topology = await discover({ json: { ...machine, devices: DEVICES } });
});

const selected = (pattern: DevicePattern) => selectDevices(topology, pattern).map(({ id }) => id);

describe('A device pattern', () => {
  it('chooses the devices that fit in every field', () => {
    expect(selected({ class: '0200', vendor: '8086' })).toEqual([
      '0000:3b:00.0',
      '0000:3b:02.0',
      '0000:3b:02.1',
    ]);
    expect(selected({ class: '0200', driver: 'vfio-pci' })).toEqual(['0000:3b:02.0']);
    expect(selected({ class: '0200', vendor: '10de' })).toEqual([]);
    expect(selected({ device: '20b0' })).toEqual(['0000:af:00.0']);
    expect(selected({ id: '10000:01:00.0' })).toEqual(['10000:01:00.0']);
  });

  it('has virtual functions, everything else, or both', () => {
    const vendor = '8086';
    expect(selected({ vendor, isVirtualFunction: true })).toEqual(['0000:3b:02.0', '0000:3b:02.1']);
    expect(selected({ vendor, isVirtualFunction: false })).toEqual(['0000:3b:00.0']);
    expect(selected({ vendor })).toHaveLength(3);
    expect(selected({ parent: '0000:3b:00.0' })).toEqual(['0000:3b:02.0', '0000:3b:02.1']);
  });

  it('takes a * at the end for anything, and a list for alternatives', () => {
    expect(selected({ class: '02*' })).toHaveLength(4);
    expect(selected({ class: ['0108', '03*'] })).toEqual(['0000:42:00.0', '0000:af:00.0']);
    expect(selected({ name: ['nvme*', 'eth1'] })).toEqual(['0000:3b:02.1', '0000:42:00.0']);
    expect(selected({ name: 'mlx5_*' })).toEqual(['10000:01:00.0']);
    expect(selected({ id: '0000:3b:*' })).toHaveLength(3);
    expect(selected({ id: '*' })).toHaveLength(DEVICES.length);
    expect(selected({ driver: '*' })).toHaveLength(4);
  });

  it('compares exactly but for the case of hexadecimal digits', () => {
    expect(selected({ vendor: '15B3' })).toEqual(['10000:01:00.0']);
    expect(selected({ id: '0000:AF:00.0' })).toEqual(['0000:af:00.0']);
    expect(selected({ driver: 'NVME' })).toEqual([]);
    expect(selected({ name: 'eth' })).toEqual([]);
  });

  it.each<[string, unknown, RegExp]>([
    ['no object', 'eth0', /must be an object/],
    ['a list', [], /must be an object/],
    ['without fields', {}, /at least one of id, class, vendor/],
    [
      'of an unknown field',
      { vendr: '8086' },
      /no option "vendr"; did you mean "vendor"\? Valid are: id, class, vendor/,
    ],
    [
      'with a number for a text, as YAML reads it',
      { class: 200 },
      /p\.class must be a text of four hexadecimal digits such as '0200', .*not 200/,
    ],
    ['with null', { vendor: null }, /p\.vendor .*not null/],
    ['with too few digits', { vendor: '86' }, /p\.vendor/],
    ['with 0x', { vendor: '0x8086' }, /p\.vendor/],
    ['with too many digits', { class: '02000*' }, /p\.class/],
    ['with a * elsewhere', { name: '*0' }, /'\*' at its end only/],
    ['with an empty name', { driver: '' }, /p\.driver/],
    ['with no alternative', { class: [] }, /a list of at least one/],
    ['with a bad alternative', { class: ['0200', 'x'] }, /not 'x'/],
    ['with a bad address', { id: '3b:00.0' }, /such as '0000:3b:00.0'/],
    ['with a text for a flag', { isVirtualFunction: 'true' }, /true or false/],
  ])('is refused %s', (_, pattern, message) => {
    expect(thrownBy(() => checkDevicePattern(pattern, 'p'))).toMatchObject({
      code: 'ERR_INVALID_OPTION',
      message: expect.stringMatching(message),
    });
  });

  it('of a device and a beginning of one of its texts chooses it', () => {
    const fields = ['id', 'class', 'vendor', 'device'] as const;
    fc.assert(
      fc.property(
        fc.constantFrom(...DEVICES),
        fc.constantFrom(...fields),
        fc.nat({ max: 3 }),
        (device, field, length) => {
          expect(selected({ [field]: device[field] })).toContain(device.id);
          expect(selected({ [field]: `${device[field].slice(0, length)}*` })).toContain(device.id);
        },
      ),
    );
  });
});

describe('The devices of a resource', () => {
  it('are the PCI devices of a pattern, healthy and on their nodes', () => {
    expect(parseDevices({ vendor: ['8086', '10de'], isVirtualFunction: false }, topology, NIC)).toEqual([
      { id: '0000:3b:00.0', healthy: true, numaNodes: [1] },
      { id: '0000:af:00.0', healthy: true, numaNodes: null },
    ]);
    expect(parseDevices({ vendor: 'ffff' }, topology, NIC)).toEqual([]);
  });

  it('are a list, sorted by the bytes of their ids', () => {
    const devices = parseDevices(
      [
        { id: '\u{1f680}' },
        { id: 'b', healthy: false },
        { id: 'B', numaNodes: new Set([1, 0, 1]) },
        { id: '\uff21', numaNodes: [] },
      ],
      topology,
      NIC,
    );
    expect(devices).toEqual([
      { id: 'B', healthy: true, numaNodes: [0, 1] },
      { id: 'b', healthy: false, numaNodes: null },
      { id: '\uff21', healthy: true, numaNodes: null },
      { id: '\u{1f680}', healthy: true, numaNodes: null },
    ]);
    expect(parseDevices([], topology, NIC)).toEqual([]);
  });

  it('never change', () => {
    const devices = parseDevices([{ id: 'a', numaNodes: [0] }], topology, NIC);
    for (const frozen of [devices, devices[0], devices[0]!.numaNodes])
      expect(Object.isFrozen(frozen)).toBe(true);
  });

  it('take nodes that can be read once only', () => {
    function* nodes() {
      yield 1;
    }
    expect(parseDevices([{ id: 'a', numaNodes: nodes() }], topology, NIC)[0]!.numaNodes).toEqual([1]);
  });

  it.each<[string, unknown, RegExp]>([
    ['no selection', 7, /must be an object/],
    ['a bad pattern', { class: 'x' }, /devices\['example.com\/nic'\]\.class/],
    ['no specs', ['gpu0'], /\[0\]: the options must be an object/],
    ['an unknown key', [{ id: 'a', numaNode: 0 }], /did you mean "numaNodes"/],
    ['no id', [{}], /\[0\]\.id must be a text of 1 to 253 printable/],
    ['an id that steers terminals', [{ id: 'a\n' }], /\[0\]\.id/],
    ['an id twice', [{ id: 'a' }, { id: 'a' }], /\[1\]\.id must be unique/],
    ['a health that is none', [{ id: 'a', healthy: 'Healthy' }], /healthy must be true or false/],
    ['nodes as a text', [{ id: 'a', numaNodes: '0' }], /numaNodes must be a list of NUMA nodes/],
    [
      'a node that is not there',
      [{ id: 'a', numaNodes: [0, 2] }],
      /NUMA nodes of the machine, which are 0, 1, not 2/,
    ],
    ['a node that is no number', [{ id: 'a', numaNodes: ['0'] }], /not '0'/],
  ])('are refused for %s', (_, selection, message) => {
    expect(thrownBy(() => parseDevices(selection as never, topology, NIC))).toMatchObject({
      code: 'ERR_INVALID_OPTION',
      message: expect.stringMatching(message),
    });
  });

  it.each(['cpu', 'nic', 'memory', 'kubernetes.io/nic', 'a b/c', 'example.com/', '', 'Example.com/nic'])(
    'are refused under the name %j',
    (resource) => {
      expect(thrownBy(() => parseDevices([], topology, resource))).toMatchObject({
        code: 'ERR_INVALID_OPTION',
        message: expect.stringContaining('example.com/nic'),
      });
    },
  );
});
