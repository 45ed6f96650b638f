// Converts a JSON machine (MachineJson in machine-description.ts) to the flat arrays of the addon.
// Checks shapes; Topology::create checks consistency.
import { inspect } from 'node:util';
import { NumalignError } from '../base/errors.js';
import {
  CPU_COLUMNS,
  HUGEPAGE_COLUMNS,
  MEMORY_TIERS,
  type MemoryTier,
  type NativePciDevice,
  type TopologyDescription,
} from '../base/native-tables.js';
import { shapes } from '../base/shapes.js';
import type { Words } from '../base/words.js';
import { CpuSet, NodeSet } from './cpu-set.js';
import { wordsOf } from './id-set.js';
import { PCI_ADDRESS } from './machine-description.js';

// The names of a CPU's columns in the file.
const FILE_COLUMNS = {
  cpu: 'cpu',
  core: 'core',
  package: 'socket',
  die: 'die',
  l3: 'uncoreCache',
  node: 'numa',
  kind: 'coreKind',
} as const;
// Those of the kernel have up to 32 bits, for example of L3 caches on arm64.
const MAX_COLUMN = 2 ** 31 - 1;
const REQUIRED_COLUMNS = ['cpu', 'core', 'socket', 'numa'];

function fail(message: string, value: unknown): never {
  throw new NumalignError('ERR_INVALID_TOPOLOGY', `not a JSON machine: ${message}`, {
    value,
    valid:
      '{ columns: ["cpu", "core", "socket", "numa", …], cpus: [[0, 0, 0, 0], …], nodes: [{ id: 0 }, …] }',
  });
}

const { object, list, listOf, matching, whole } = shapes((where, value, valid) =>
  fail(`${where} must be ${valid}, not ${inspect(value)}`, value),
);

function parseCpus(machine: Record<string, unknown>): Int32Array {
  const columns = list(machine.columns, 'columns');
  for (const name of REQUIRED_COLUMNS) if (!columns.includes(name)) fail(`columns lack "${name}"`, columns);
  const at = (name: string) => columns.indexOf(name);
  const rows = list(machine.cpus, 'cpus').map((row, i) => {
    const numbers = list(row, `cpus[${i}]`).map((cell, c) =>
      whole(cell, `cpus[${i}][${c}]`, columns[c] === 'cpu' ? CpuSet.MAX_ID : MAX_COLUMN),
    );
    return numbers.length === columns.length
      ? numbers
      : fail(`cpus[${i}] must have a number for each column`, row);
  });
  const lowestCpu = new Map<number, number>();
  for (const row of rows) {
    const [cpu, socket] = [row[at('cpu')]!, row[at('socket')]!];
    lowestCpu.set(socket, Math.min(cpu, lowestCpu.get(socket) ?? cpu));
  }
  return Int32Array.from(
    rows.flatMap((row) =>
      CPU_COLUMNS.map((column) => {
        const socket = row[at('socket')]!;
        const substitutes = { die: lowestCpu.get(socket)!, kind: 0 };
        return row[at(FILE_COLUMNS[column])] ?? substitutes[column as 'die' | 'kind'] ?? socket;
      }),
    ),
  );
}

function parseHugepages(value: unknown, what: string): { bytes: number; count: number }[] {
  const pools = list(value, what).map((item) => {
    const pool = object(item, `a pool of ${what}`);
    const sizeKiB = whole(pool.sizeKiB, `a sizeKiB of ${what}`, 2 ** 40);
    if (!Number.isInteger(Math.log2(sizeKiB))) fail(`a sizeKiB of ${what} must be a power of two`, sizeKiB);
    return {
      bytes: 1024 * sizeKiB,
      count: whole(pool.count, `a count of ${what}`),
    };
  });
  if (new Set(pools.map(({ bytes }) => bytes)).size < pools.length)
    fail(`${what} must have each size once`, value);
  return pools;
}

function parseNodes(
  machine: Record<string, unknown>,
): Pick<TopologyDescription, 'nodes' | 'memory' | 'tiers' | 'distances' | 'hugepages'> {
  const nodes = listOf(machine.nodes, 'nodes', (item, at) => {
    const node = object(item, at);
    const { distances = null, memory = 0, tier = 'other', hugepages = [] } = node;
    if (!MEMORY_TIERS.includes(tier as MemoryTier))
      fail(`${at}.tier must be one of ${MEMORY_TIERS.join(', ')}, not ${inspect(tier)}`, tier);
    return {
      id: whole(node.id, `${at}.id`, NodeSet.MAX_ID),
      memory: whole(memory, `${at}.memory`),
      tier: MEMORY_TIERS.indexOf(tier as MemoryTier),
      distances:
        distances === null
          ? undefined
          : list(distances, `${at}.distances`).map((d) => whole(d, `a distance of ${at}`, 2 ** 32 - 1)),
      hugepages: parseHugepages(hugepages, `${at}.hugepages`),
    };
  });
  // Keeps sums exact.
  const all = nodes.flatMap((node) => [
    node.memory,
    ...node.hugepages.map(({ bytes, count }) => bytes * count),
  ]);
  if (all.reduce((sum, bytes) => sum + bytes, 0) > Number.MAX_SAFE_INTEGER) {
    fail('the memory of all nodes together must be at most 2^53 - 1 bytes', machine.nodes);
  }
  nodes.sort((a, b) => a.id - b.id);
  const measured = nodes.filter((node) => node.distances !== undefined);
  if (measured.length > 0 && nodes.some((node) => node.distances?.length !== nodes.length)) {
    fail('every node must have a distance to every node, or none', machine.nodes);
  }
  return {
    nodes: Int32Array.from(nodes, (node) => node.id),
    memory: Float64Array.from(nodes, (node) => node.memory),
    tiers: Int32Array.from(nodes, (node) => node.tier),
    distances: Uint32Array.from(measured.flatMap((node) => node.distances!)),
    hugepages: Float64Array.from(
      nodes.flatMap((node) =>
        node.hugepages.flatMap((pool) =>
          HUGEPAGE_COLUMNS.map((column) => ({ ...pool, node: node.id })[column]),
        ),
      ),
    ),
  };
}

function parseDevices({ devices = [] }: Record<string, unknown>): NativePciDevice[] {
  return listOf(devices, 'devices', (item, at) => {
    const device = object(item, at);
    const field = (key: string, form: RegExp, valid: string) =>
      matching(device[key], `${at}.${key}`, form, valid);
    const number = (key: string) =>
      Number.parseInt(field(key, /^[0-9a-f]{4}$/i, 'four hexadecimal digits'), 16);
    const optional = (key: string, valid: RegExp, what: string) =>
      device[key] === undefined || device[key] === null ? '' : field(key, valid, `${what}, or null`);
    const address = 'an address such as "0000:3b:00.0"';
    return {
      id: field('id', PCI_ADDRESS, address),
      class: number('class'),
      vendor: number('vendor'),
      device: number('device'),
      driver: optional('driver', /./s, 'a name'),
      names: list(device.names ?? [], `${at}.names`).map((name) =>
        matching(name, `${at}.names`, /./s, 'a list of names'),
      ),
      nodes: list(device.numaNodes ?? [], `${at}.numaNodes`).map((node) =>
        whole(node, `a node of ${at}.numaNodes`, NodeSet.MAX_ID),
      ),
      parent: optional('parent', PCI_ADDRESS, address),
    };
  });
}

/**
 * Parses a machine. Ignores counts (numCpus and so on) and kinds of devices, which are derived.
 * @throws ERR_INVALID_TOPOLOGY, which names the field
 */
export function parseMachine(file: unknown): TopologyDescription {
  const machine = object(file, 'the file');
  const cpus = parseCpus(machine);
  const ids = wordsOf(cpus.filter((_, i) => i % CPU_COLUMNS.length === 0));
  const set = (name: string, otherwise: Words) =>
    machine[name] === undefined ? otherwise : cpuWords(machine[name], name);
  return {
    cpus,
    ...parseNodes(machine),
    devices: parseDevices(machine),
    possible: set('possible', ids),
    isolated: set('isolated', new Uint32Array()),
    allowed: set('allowed', ids),
  };
}

function cpuWords(value: unknown, name: string): Words {
  try {
    return CpuSet.parse(value as string).words;
  } catch (error) {
    return fail(`${name}: ${(error as Error).message}`, value);
  }
}
