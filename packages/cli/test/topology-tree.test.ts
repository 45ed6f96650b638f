// needs: nothing
import { CpuSet, NodeSet, NumalignError } from 'numalign';
import type { SettingsStatus, StateStatus } from 'numalign/diagnostics';
import { DEFAULT_GATES } from 'numalign/tools';
import { discover } from 'numalign/topology';
import pc from 'picocolors';
import { describe, expect, it } from 'vitest';
import { DEFAULT_VERSION } from '../../../lib/base/kubelet-features.js';
import { hybridMachine, THREE_KINDS } from '../../../test/support/hybrid.js';
import { topologyTree } from '../lib/pages/topology-tree.js';

const cpus = (text: string) => CpuSet.parse(text);

const SETTINGS: SettingsStatus = {
  managedCPUs: cpus('0-7'),
  managesAll: true,
  reservedSystemCPUs: CpuSet.EMPTY,
  strictCPUReservation: false,
  isolatedCPUs: CpuSet.EMPTY,
  isolatedByKernel: true,
  reservedMemory: {},
  cgroupRoot: null,
  kubeletVersion: DEFAULT_VERSION,
  featureGates: DEFAULT_GATES[DEFAULT_VERSION],
};

function status(fields: Partial<StateStatus>): StateStatus {
  return {
    stateDir: '/run/numalign',
    scope: 'machine',
    exists: true,
    generation: 7,
    damage: null,
    refusal: null,
    isOfEarlierBoot: false,
    lapsed: [],
    warnings: [],
    settings: SETTINGS,
    sharedPool: cpus('0-7'),
    free: cpus('0-7'),
    freeIsolated: CpuSet.EMPTY,
    memory: [],
    sharedMembers: [],
    waiting: [],
    kubelet: null,
    grants: [],
    ...fields,
  };
}

function grant(name: string, list: string, alive = true): StateStatus['grants'][number] {
  return {
    uid: `id-of-${name}`,
    name,
    cpus: cpus(list),
    mixed: 0,
    elastic: null,
    numaNodes: NodeSet.of(0),
    memory: [],
    devices: {},
    isIsolated: false,
    enforcement: 'recorded',
    cgroup: null,
    owner: { kind: 'process', pid: 1, command: 'x', cgroup: null },
    alive,
    booking: null,
    movable: null,
    upcoming: null,
    former: null,
    flags: [],
    admittedAt: '2026-01-02T03:04:05.678Z',
    survivors: [],
    cgroups: [],
    memoryEnforcement: [],
    quiet: null,
    containers: [],
  };
}

describe('the tree of a machine', () => {
  it('shows the memory of nodes without CPUs by tier, and of each tier in all', async () => {
    const nodes = ['dram', 'gpu', 'gpu', 'other'] as const;
    const json = {
      columns: ['cpu', 'core', 'socket', 'numa'],
      cpus: [[0, 0, 0, 0]],
      nodes: nodes.map((tier, id) => ({ id, memory: 2 ** 30, tier })),
    };
    const tree = topologyTree(await discover({ json }), { width: 100 });
    expect(tree).toContain('NUMA node 2  memory only (GPU)  1 GiB\n');
    expect(tree).toContain('NUMA node 3  memory only  1 GiB\n');
    expect(tree).toContain(
      'Memory by tier\n  dram:   1 GiB on 1 NUMA node\n  gpu:    2 GiB on 2 NUMA nodes\n  other:  1 GiB on 1 NUMA node\n',
    );
    const plain = await discover({ json: { ...json, nodes: json.nodes.slice(0, 1) } });
    expect(topologyTree(plain, { width: 100 })).not.toContain('tier');
  });

  it('shows cores of each kind apart', async () => {
    const lines = topologyTree(await hybridMachine(THREE_KINDS), { width: 100 }).split('\n');
    expect(lines.slice(2, 6).map((line) => line.trim().split('  ')[0])).toEqual([
      '└─ NUMA node 0',
      '├─ 6 performance cores',
      '├─ 8 efficiency cores',
      '└─ 2 efficiency cores',
    ]);
  });

  it('keeps within the width at 512 CPUs and shows each of them once', async () => {
    const topology = await discover({ synthetic: 'package:2 numa:4 l3:4 core:8 pu:2' });
    for (const width of [60, 100, 200]) {
      const lines = topologyTree(topology, { width, isNarrow: true }).split('\n');
      const leaves = lines
        .slice(lines.findIndex((line) => line.includes('Package')))
        .filter((line) => !/Package|NUMA/.test(line));
      const shown = leaves.flatMap((line) =>
        [...line.replace(/L3 \d+ +\d+ cores/, '').matchAll(/\d+/g)].map(Number),
      );
      expect(shown.sort((a, b) => a - b)).toEqual([...topology.cpus]);
      expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(width);
      expect(lines.length).toBeLessThan(2 * 4 * 4 * 4 + 20);
    }
  });

  it('shows a core a line on the narrowest terminal', async () => {
    const topology = await discover({ synthetic: 'package:1 core:2 pu:2' });
    expect(topologyTree(topology, { width: 1 })).toContain('└─ 2 cores  0,1\n                  2,3\n');
  });

  it('puts packages inside a NUMA node that holds several', async () => {
    const topology = await discover({ synthetic: '[numa] package:2 l3:2 core:1 pu:1' });
    expect(topologyTree(topology, { width: 100 }).split('\n').slice(1, 8)).toEqual([
      '└─ NUMA node 0  CPUs 0-3',
      '   ├─ Package 0  2 CPUs',
      '   │  ├─ L3 0  1 core  0',
      '   │  └─ L3 1  1 core  1',
      '   └─ Package 1  2 CPUs',
      '      ├─ L3 2  1 core  2',
      '      └─ L3 3  1 core  3',
    ]);
  });

  it('shows NUMA nodes without CPUs as memory only', async () => {
    const topology = await discover({ synthetic: 'package:2 [numa] [numa(memory=4GB)] core:2 pu:1' });
    expect(topologyTree(topology, { width: 100 })).toContain('└─ NUMA node 3  memory only  3.7 GiB\n');
  });

  it('shows memory and hugepages, and which part of an L3 group is in a node', async () => {
    const topology = await discover({
      json: {
        columns: ['cpu', 'core', 'socket', 'numa', 'uncoreCache'],
        cpus: [
          [0, 0, 0, 0, 0],
          [1, 1, 0, 0, 1],
          [2, 2, 0, 1, 1],
          [3, 3, 0, 1, 1],
        ],
        nodes: [
          {
            id: 0,
            memory: 67_430_000_000,
            hugepages: [
              { sizeKiB: 2048, count: 512 },
              { sizeKiB: 1_048_576, count: 0 },
            ],
          },
          { id: 1 },
        ],
      },
    });
    const text = topologyTree(topology, { width: 100 });
    expect(text).toContain('NUMA node 0  CPUs 0-1  62.8 GiB  hugepages 512 × 2 MiB\n');
    expect(text).toContain('L3 1 (part)  1 core  1\n');
    expect(text).toContain('L3 1 (part)  2 cores  2 3\n');
  });

  it('names the holders of CPUs in words', async () => {
    const topology = await discover({ synthetic: 'package:1 core:8 pu:1' });
    const state = {
      status: status({
        settings: {
          ...SETTINGS,
          managesAll: false,
          managedCPUs: cpus('0-6'),
          reservedSystemCPUs: cpus('0'),
        },
        sharedPool: cpus('0-3,6'),
        free: cpus('1-3,6'),
        grants: [grant('job', '4'), grant('gone\u001b[2J', '5', false)],
      }),
    };
    const text = topologyTree(topology, { width: 120, state });
    expect(text.slice(text.indexOf('state:')).split('\n')).toEqual([
      'state:      /run/numalign (machine), generation 7',
      'managed:    CPUs 0-6',
      'free:       CPUs 1-3,6',
      'shared:     CPUs 0-3,6',
      'reserved:   CPU 0',
      'exclusive:  4 (job), 5 (gone?[2J, dead: taken back at the next transaction)',
      '',
    ]);
  });

  it('shows no CPU as free if nothing can be granted, and says why', async () => {
    const topology = await discover({ synthetic: 'package:1 core:8 pu:1' });
    const refusal = new NumalignError('ERR_STATE_VERSION', 'it is of version 99', { value: 99 });
    const state = {
      status: status({
        refusal,
        settings: { ...SETTINGS, isolatedCPUs: cpus('7') },
        freeIsolated: cpus('7'),
      }),
    };
    const text = topologyTree(topology, { width: 120, state });
    expect(text.slice(text.indexOf('state:')).split('\n').slice(0, 4)).toEqual([
      'state:      /run/numalign (machine), generation 7; nothing is granted: it is of version 99',
      'free:       unknown',
      'shared:     at most CPUs 0-7',
      'isolated:   CPU 7 (not shared), free: unknown',
    ]);
  });

  it('colours CPUs by their state, with a legend, and pads by visible width', async () => {
    const topology = await discover({ synthetic: 'package:1 l3:2 core:2 pu:2' });
    const colors = pc.createColors(true);
    const state = {
      status: status({
        settings: { ...SETTINGS, reservedSystemCPUs: cpus('0-1') },
        free: cpus('3-7'),
        sharedPool: cpus('0-1,3-7'),
        grants: [grant('job', '2')],
      }),
    };
    const text = topologyTree(topology, { width: 100, colors, state });
    expect(text).toContain(`${colors.yellow(0)},${colors.yellow(1)} ${colors.red(2)},${colors.green(3)}\n`);
    expect(text).toContain(
      `colours:    ${colors.green('free (shared until granted)')}  ${colors.yellow('reserved')}  ${colors.red('exclusive')}\n`,
    );
    // biome-ignore lint/suspicious/noControlCharactersInRegex: escape codes are what is removed
    const seen = text.replace(/\u001b\[\d+m/g, '').replace(/^colours:.*\n/m, '');
    expect(seen).toBe(topologyTree(topology, { width: 100, state }));
  });
});

describe('the devices of a machine', () => {
  interface Device {
    id: string;
    class: string;
    vendor?: string;
    device?: string;
    driver?: string;
    names?: string[];
    numaNodes?: number[];
    parent?: string;
  }

  async function withDevices(devices: Device[]) {
    const machine = (await discover({ synthetic: 'package:2 [numa] core:2 pu:1' })).toJSON();
    const full = devices.map((device) => ({ vendor: '8086', device: '1572', ...device }));
    return discover({ json: { ...machine, devices: full } });
  }

  const address = (bus: number, fn = 0) => `0000:${bus.toString(16).padStart(2, '0')}:00.${fn}`;

  it('are under their NUMA node, by kind, with names, address and driver', async () => {
    const topology = await withDevices([
      {
        id: '0000:01:00.0',
        class: '0108',
        vendor: '144d',
        device: 'a80a',
        driver: 'nvme',
        names: ['nvme0n1'],
        numaNodes: [1],
      },
      { id: '0000:02:00.0', class: '0200', driver: 'i40e', names: ['eth0'], numaNodes: [1] },
      { id: '0000:03:00.0', class: '0302', vendor: '10de', device: '20b0', numaNodes: [1] },
    ]);
    expect(topologyTree(topology, { width: 100 }).split('\n').slice(4, 9)).toEqual([
      '└─ Package 1  2 CPUs',
      '   └─ NUMA node 1  CPUs 2-3',
      '      ├─ 2 cores  2 3',
      '      ├─ network      eth0     0000:02:00.0  8086:1572  i40e',
      '      ├─ storage      nvme0n1  0000:01:00.0  144d:a80a  nvme',
    ]);
    expect(topologyTree(topology, { width: 100 })).toContain(
      '      └─ accelerator           0000:03:00.0  10de:20b0\n',
    );
  });

  it('count their virtual functions', async () => {
    const topology = await withDevices([
      { id: address(1), class: '0200', names: ['eth0'], numaNodes: [0] },
      ...Array.from({ length: 7 }, (_, i) => ({
        id: address(1, i + 1),
        class: '0200',
        numaNodes: [0],
        parent: address(1),
      })),
      { id: address(2, 1), class: '0200', numaNodes: [0], parent: address(2) },
    ]);
    const lines = topologyTree(topology, { width: 100 })
      .split('\n')
      .filter((line) => line.includes('network'));
    expect(lines).toEqual([
      '│     ├─ network  eth0  0000:01:00.0  8086:1572  7 virtual functions',
      '│     └─ network        0000:02:00.1  8086:1572  virtual function of 0000:02:00.0',
    ]);
  });

  it('that belong to no single node have their own block, those of other kinds a count', async () => {
    const topology = await withDevices([
      { id: address(1), class: '0106', names: ['sda'] },
      { id: address(2), class: '0200', numaNodes: [0, 1] },
      { id: address(3), class: '0c03', numaNodes: [0] },
      { id: address(4), class: '0880' },
    ]);
    const text = topologyTree(topology, { width: 100 });
    expect(text).toContain(
      '\n\nPCI devices of unknown NUMA node\n  storage  sda  0000:01:00.0  8086:1572\n' +
        'PCI devices near NUMA nodes 0,1\n  network  0000:02:00.0  8086:1572\n' +
        '2 PCI devices of other kinds (listed by --output json)\n\n',
    );
    expect(text).not.toContain('0000:03:00.0');
  });

  it('keep within the width and on a page even if there are two hundred', async () => {
    const topology = await withDevices(
      Array.from({ length: 200 }, (_, i) => ({
        id: address(i),
        class: i % 2 === 0 ? '0108' : '0200',
        names: Array.from({ length: 9 }, (_, n) => `name${i}x${n}`),
        numaNodes: [0],
      })),
    );
    for (const width of [60, 100]) {
      const lines = topologyTree(topology, { width }).split('\n');
      expect(Math.max(...lines.slice(1).map((line) => line.length))).toBeLessThanOrEqual(width);
      expect(lines.length).toBeLessThan(60);
      expect(lines.filter((line) => line.includes('and 84 more (listed by --output json)'))).toHaveLength(2);
    }
  });

  it('cannot steer a terminal through their names', async () => {
    const topology = await withDevices([
      { id: address(1), class: '0200', names: ['eth\u001b[2J0'], driver: 'x\ny', numaNodes: [0] },
    ]);
    expect(topologyTree(topology, { width: 100 })).toContain(
      'network  eth?[2J0  0000:01:00.0  8086:1572  x?y\n',
    );
  });
});
