// needs: machine
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { discover, type MachineJson, Topology } from '../../lib/entries/topology.js';
import { CpuSet } from '../../lib/index.js';
import { discoverMachine } from '../../lib/machine/discovery.js';
import { budget } from '../support/budget.mjs';

const sysfs = (path: string) => readFileSync(`/sys/devices/system/${path}`, 'utf8').trim();

async function codeOf(promise: Promise<unknown>): Promise<string | undefined> {
  return promise.then(
    () => undefined,
    (error) => error.code,
  );
}

describe('discover', () => {
  it('finds the CPUs, cores, packages and NUMA nodes of sysfs', async () => {
    const machine = await discover();
    expect(machine.isSimulated).toBe(false);
    expect(machine.cpus.toString()).toBe(sysfs('cpu/online'));
    expect(machine.possible.toString()).toBe(sysfs('cpu/possible'));
    expect(machine.isolated.toString()).toBe(sysfs('cpu/isolated'));
    expect(machine.nodes.map((node) => node.id).join()).toBe(
      CpuSet.parse(sysfs('node/online')).toArray().join(),
    );
    for (const node of machine.nodes) expect(node.cpus.toString()).toBe(sysfs(`node/node${node.id}/cpulist`));
    for (const { cpu, core, package: socket } of machine.locations) {
      expect(core).toBe(CpuSet.parse(sysfs(`cpu/cpu${cpu}/topology/thread_siblings_list`)).first);
      expect(socket).toBe(Number(sysfs(`cpu/cpu${cpu}/topology/physical_package_id`)));
    }
  });

  it('finds the whole machine from a process that may use only a part of it', () => {
    const script =
      "import { discover } from './dist/entries/topology.js'; console.log(String((await discover()).cpus));";
    const seen = execFileSync('taskset', ['-c', '0', process.execPath, '--input-type=module', '-e', script], {
      encoding: 'utf8',
    });
    expect(seen.trim()).toBe(sysfs('cpu/online'));
  });

  it('loads an hwloc synthetic description', async () => {
    const machine = await discover({ synthetic: 'package:2 numa:2 l3:1 core:4 pu:2' });
    expect(machine.isSimulated).toBe(true);
    expect([machine.cpus.size, machine.cores.length, machine.packages.length, machine.nodes.length]).toEqual([
      32, 16, 2, 4,
    ]);
    expect(machine.bestFit(machine.cpus, 8).toString()).toBe('0-7');
  });

  it('reads back the JSON that it writes', async () => {
    for (const synthetic of ['core:4 pu:2', 'package:2 numa:2 l3:2 core:2 pu:2', 'numa:8 core:3 pu:1']) {
      const machine = await discover({ synthetic });
      const again = await discover({ json: machine.toJSON() });
      expect(again.toJSON()).toEqual(machine.toJSON());
      expect(again.nodes).toEqual(machine.nodes);
    }
  });

  it('reads back ids of any size, which arm64 gives L3 caches', async () => {
    const most = 2 ** 31 - 1;
    const columns = ['cpu', 'core', 'socket', 'numa', 'uncoreCache', 'die'];
    const cpus = [
      [0, 0, 65_536, 0, 65_536, 0],
      [3, most, most, 0, most, most],
    ];
    const machine = await discover({ json: { columns, cpus, nodes: [{ id: 0 }] } });
    const again = await discover({ json: machine.toJSON() });
    expect(again.toJSON()).toEqual(machine.toJSON());
    expect(machine.toJSON()).toMatchObject({ columns, cpus });
    expect(String(again.bestFit(again.cpus, 1))).toBe('0');
    const tooHigh = [[65_536, 0, 0, 0, 0, 0]];
    expect(await codeOf(discover({ json: { columns, cpus: tooHigh, nodes: [{ id: 0 }] } }))).toBe(
      'ERR_INVALID_TOPOLOGY',
    );
  });

  it('reads a JSON machine with holes, uneven nodes and a memory-only node', async () => {
    const machine = await discover({
      json: {
        columns: ['cpu', 'core', 'socket', 'numa'],
        cpus: [
          [4, 4, 1, 1],
          [6, 4, 1, 1],
          [9, 9, 3, 2],
        ],
        nodes: [
          { id: 2, distances: [20, 10, 40] },
          { id: 1, distances: [10, 20, 30] },
          {
            id: 7,
            cpuLess: true,
            distances: [30, 40, 10],
            memory: 1024,
            hugepages: [{ sizeKiB: 2048, count: 3 }],
          },
        ],
      },
    });
    expect(machine.cpus.toString()).toBe('4,6,9');
    expect(machine.nodes.map(({ id, cpus, memoryBytes }) => [id, String(cpus), memoryBytes])).toEqual([
      [1, '4,6', 0],
      [2, '9', 0],
      [7, '', 1024],
    ]);
    expect(machine.nodes[2]!.hugepages).toEqual([{ bytes: 2048 * 1024, count: 3 }]);
    expect(machine.nodes[0]!.distances).toEqual([10, 20, 30]);
    expect(machine.l3Groups.map((group) => group.id)).toEqual([1, 3]);
  });

  it('refuses descriptions that are malformed or contradict themselves, and says why', async () => {
    const good = { columns: ['cpu', 'core', 'socket', 'numa'], cpus: [[0, 0, 0, 0]], nodes: [{ id: 0 }] };
    const bad: [object, RegExp][] = [
      [{}, /columns must be a list/],
      [{ ...good, columns: ['cpu'] }, /columns lack "core"/],
      [{ ...good, cpus: [] }, /at least one CPU/],
      [{ ...good, cpus: [[0, 0, 0]] }, /cpus\[0\]/],
      [{ ...good, cpus: [[0, 0, 0, -1]] }, /cpus\[0\]\[3\]/],
      [{ ...good, cpus: [[0, 0, 0, 5]] }, /NUMA node 5, which is not described/],
      [
        {
          ...good,
          cpus: [
            [0, 0, 0, 0],
            [0, 0, 0, 0],
          ],
        },
        /CPU 0 is given twice/,
      ],
      [
        {
          ...good,
          cpus: [
            [0, 0, 0, 0],
            [1, 0, 1, 0],
          ],
        },
        /core 0 spans packages/,
      ],
      [{ ...good, nodes: [{ id: 0 }, { id: 0 }] }, /given twice/],
      [{ ...good, nodes: [{ id: 0, distances: [10, 20] }] }, /distance/],
      [{ ...good, nodes: [{ id: 1024 }] }, /0 to 1023/],
    ];
    for (const [json, message] of bad) {
      await expect(discover({ json }), JSON.stringify(json)).rejects.toMatchObject({
        code: 'ERR_INVALID_TOPOLOGY',
        message: expect.stringMatching(message),
      });
    }
    expect(await codeOf(discover({ synthetic: 'nonsense' }))).toBe('ERR_INVALID_TOPOLOGY');
    expect(await codeOf(discover({ xml: '/nowhere.xml' }))).toBe('ERR_INVALID_TOPOLOGY');
    expect(await codeOf(discover({ json: '/nowhere.json' }))).toBe('ERR_INVALID_TOPOLOGY');
    expect(await codeOf(discover({ json: {}, synthetic: 'pu:2' }))).toBe('ERR_INVALID_ARGUMENT');
    expect(await codeOf(discover({ yaml: 'x' } as object))).toBe('ERR_INVALID_OPTION');
    expect(await codeOf(discover(null as unknown as object))).toBe('ERR_INVALID_OPTION');
    expect(await codeOf(discover({ json: { ...good, possible: '0-' } }))).toBe('ERR_INVALID_TOPOLOGY');
  });

  it('refuses malformed XML files', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'numalign-xml-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    for (const [i, text] of [
      '',
      '<',
      'hello',
      '<?xml version="1.0"?><topology></topology>',
      '\0\0\0',
    ].entries()) {
      const xml = join(folder, `${i}.xml`);
      writeFileSync(xml, text);
      expect(await codeOf(discover({ xml })), text).toBe('ERR_INVALID_TOPOLOGY');
    }
  });

  it('takes any object as a machine or throws ERR_INVALID_TOPOLOGY', async () => {
    const row = fc.array(fc.integer({ min: -1, max: 9 }), { minLength: 3, maxLength: 5 });
    const node = fc.record({
      id: fc.integer({ min: -1, max: 9 }),
      distances: fc.option(fc.array(fc.nat({ max: 50 }))),
    });
    const machine = fc.record({
      columns: fc.constantFrom(
        ['cpu', 'core', 'socket', 'numa'],
        ['cpu', 'core', 'socket', 'numa', 'uncoreCache'],
        ['cpu'],
      ),
      cpus: fc.array(row, { maxLength: 4 }),
      nodes: fc.array(node, { maxLength: 3 }),
      devices: fc.oneof(
        fc.constant([]),
        fc.array(fc.object({ key: fc.constantFrom('id', 'class', 'names'), maxDepth: 1 })),
      ),
    });
    await fc.assert(
      fc.asyncProperty(fc.oneof(machine, fc.anything({ withNullPrototype: true })), async (json) => {
        const result = await discover({ json: json as object }).catch((error) => error.code);
        if (typeof json === 'object' && json !== null) {
          expect(result instanceof Topology || result === 'ERR_INVALID_TOPOLOGY', String(result)).toBe(true);
        }
      }),
      { numRuns: budget({ all: 3_000, usual: 300 }) },
    );
  });

  it('finds the PCI devices of sysfs', async () => {
    const folder = '/sys/bus/pci/devices';
    const read = (id: string, name: string) => readFileSync(`${folder}/${id}/${name}`, 'utf8').trim();
    const ids = existsSync(folder) ? readdirSync(folder).sort() : [];
    const machine = await discover();
    expect(machine.devices.map(({ kind, names, driver, parent, ...device }) => device)).toEqual(
      ids
        .filter((id) => !read(id, 'class').startsWith('0x06'))
        .map((id) => {
          const node = Number(read(id, 'numa_node'));
          const numaNodes = machine.numaNodes.includes(node) ? [node] : null;
          const [vendor, device] = [read(id, 'vendor').slice(2), read(id, 'device').slice(2)];
          return { id, class: read(id, 'class').slice(2, 6), vendor, device, numaNodes };
        }),
    );
    for (const { id, names } of machine.devices) {
      for (const name of names) {
        const links = ['block', 'class/net', 'class/infiniband', 'class/drm', 'class/accel'].map(
          (at) => `/sys/${at}/${name}`,
        );
        expect(links.filter((link) => existsSync(link)).map((link) => realpathSync(link))).toEqual([
          expect.stringContaining(`/${id}/`),
        ]);
      }
    }
  });

  it('finds the same devices later, of a machine that was discovered without them', async () => {
    const [machine, bare] = await Promise.all([discover(), discoverMachine(false)]);
    expect(bare.withoutSmt().devices).toEqual(machine.devices);
    expect(bare.toJSON()).toEqual(machine.toJSON());
    expect(bare.devices).toBe(bare.devices);
  });

  it('reads the PCI devices of an hwloc XML with their nodes and kinds', async () => {
    const machine = await discover({ xml: 'test/fixtures/machines/pci.xml' });
    expect(
      machine.devices.map(({ id, kind, names, numaNodes }) => [id, kind, names.join(), numaNodes?.join()]),
    ).toEqual([
      ['0000:00:03.0', 'other', '', undefined],
      ['0000:00:04.0', 'other', '', undefined],
      ['0000:00:05.0', 'other', '', undefined],
      ['0000:00:1f.2', 'storage', '', undefined],
      ['0000:00:1f.3', 'other', '', undefined],
      ['0000:41:00.0', 'network', 'eth0', '1'],
      ['0000:42:00.0', 'storage', 'nvme1n1', '1'],
      ['0000:81:00.0', 'network', 'eth1', '3'],
      ['0000:82:00.0', 'storage', '', '3'],
      ['0000:82:00.1', 'storage', '', '3'],
      ['0000:82:00.2', 'storage', '', '3'],
    ]);
    expect(machine.withoutSmt().devices).toEqual(machine.devices);
  });

  it('reads back the devices of the JSON that it writes', async () => {
    const base = (await discover({ synthetic: 'package:2 numa:2 core:1 pu:1' })).toJSON();
    const digits = fc.integer({ min: 0, max: 0xffff }).map((number) => number.toString(16).padStart(4, '0'));
    const address = fc
      .tuple(
        fc.integer({ min: 0, max: 0xfffff }),
        fc.nat({ max: 255 }),
        fc.nat({ max: 31 }),
        fc.nat({ max: 7 }),
      )
      .map(([domain, bus, slot, fn]) => {
        const hex = (number: number, width: number) => number.toString(16).padStart(width, '0');
        return `${hex(domain, 4)}:${hex(bus, 2)}:${hex(slot, 2)}.${fn}`;
      });
    const name = fc.string({ minLength: 1, maxLength: 8, unit: 'grapheme' });
    const device = fc.record({
      id: address,
      class: digits,
      vendor: digits,
      device: digits,
      driver: fc.option(name),
      names: fc.array(name, { maxLength: 3 }),
      numaNodes: fc.option(fc.subarray([0, 1, 2, 3], { minLength: 1 })),
      parent: fc.constantFrom(null, 'fffff:00:00.0'),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(device, { selector: ({ id }) => id, maxLength: 6 }),
        async (devices) => {
          const machine = await discover({ json: { ...base, devices } });
          expect(machine.devices.map(({ kind, ...rest }) => rest)).toEqual(
            devices.sort((a, b) => (a.id < b.id ? -1 : 1)),
          );
          const again = await discover({ json: JSON.parse(JSON.stringify(machine)) });
          expect(again.devices).toEqual(machine.devices);
        },
      ),
    );
  });

  it.each<[object, RegExp]>([
    [{ devices: {} }, /devices must be a list/],
    [{ devices: [7] }, /devices\[0\] must be an object/],
    [{ id: '3b:00.0' }, /devices\[0\]\.id must be an address such as "0000:3b:00.0", not '3b:00.0'/],
    [{ class: '200' }, /devices\[0\]\.class must be four hexadecimal digits, not '200'/],
    [{ vendor: 8086 }, /devices\[0\]\.vendor .* not 8086/],
    [{ device: undefined }, /devices\[0\]\.device .* not undefined/],
    [{ driver: 7 }, /devices\[0\]\.driver must be a name, or null, not 7/],
    [{ names: 'eth0' }, /devices\[0\]\.names must be a list/],
    [{ names: [''] }, /devices\[0\]\.names must be a list of names/],
    [{ numaNodes: [-1] }, /a node of devices\[0\]\.numaNodes must be a whole number/],
    [{ numaNodes: [0, 1] }, /PCI device 0000:3b:00.0 is near NUMA node 1, which is not described/],
    [{ parent: 'eth0' }, /devices\[0\]\.parent must be an address .*, or null/],
    [{ parent: '0000:3b:00.0' }, /is its own parent/],
  ])('refuses a JSON machine with the devices %j, and says why', async (change, message) => {
    const device = { id: '0000:3b:00.0', class: '0200', vendor: '8086', device: '1572' };
    const machine = { columns: ['cpu', 'core', 'socket', 'numa'], cpus: [[0, 0, 0, 0]], nodes: [{ id: 0 }] };
    await expect(discover({ json: { ...machine, devices: [device] } })).resolves.toBeInstanceOf(Topology);
    await expect(
      discover({
        json: { ...machine, devices: [{ ...device, ...change }], ...('devices' in change && change) },
      }),
    ).rejects.toMatchObject({
      code: 'ERR_INVALID_TOPOLOGY',
      message: expect.stringMatching(message),
    });
  });

  it('never changes a loaded machine', async () => {
    const machine = await discover({ synthetic: 'core:4 pu:1' });
    const before: MachineJson = machine.toJSON();
    expect(() => Object.assign(machine, { cpus: CpuSet.EMPTY })).toThrow(TypeError);
    expect(() => Object.assign(machine.nodes[0]!, { id: 5 })).toThrow(TypeError);
    machine.toJSON().cpus[0]![0] = 99;
    expect(machine.toJSON()).toEqual(before);
  });
});

describe('bestFit', () => {
  it('refuses invalid counts and options', async () => {
    const machine = await discover({ synthetic: 'core:4 pu:1' });
    for (const count of [-1, 0.5, Number.NaN, 1e9, '2' as unknown as number]) {
      expect(() => machine.bestFit('0-3', count), String(count)).toThrow(
        expect.objectContaining({ code: 'ERR_INVALID_ARGUMENT' }),
      );
    }
    expect(() => machine.bestFit('0-3', 1, { strategy: 'best' as 'packed' })).toThrow(/'packed' or 'spread'/);
    expect(() => machine.bestFit('0-3', 1, { cpuGroupSize: 0 })).toThrow(/at least 1/);
    expect(() => machine.bestFit('0-3', 5)).toThrow(
      expect.objectContaining({ code: 'ERR_INSUFFICIENT_CPUS' }),
    );
    expect(machine.bestFit('0-3', 0).isEmpty).toBe(true);
  });
});
