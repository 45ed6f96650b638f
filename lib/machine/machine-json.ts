// A JSON machine (see MachineJson in topology.ts) -> the flat arrays of the addon. Checks shapes;
// Topology::create checks the sense.
import { inspect } from 'node:util';
import { NumalignError } from '../base/errors.js';
import {
  CPU_COLUMNS,
  HUGEPAGE_COLUMNS,
  type NativePciDevice,
  type TopologyDescription,
} from '../base/native-tables.js';
import type { Words } from '../base/words.js';
import { CpuSet, NodeSet } from './cpu-set.js';
import { wordsOf } from './id-set.js';
import { PCI_ADDRESS } from './pci-address.js';

// Names of a CPU's columns in the file, and what may stand in for a column that is left out.
const FILE_COLUMNS = {
  cpu: 'cpu',
  core: 'core',
  package: 'socket',
  die: 'die',
  l3: 'uncoreCache',
  node: 'numa',
} as const;
const REQUIRED_COLUMNS = ['cpu', 'core', 'socket', 'numa'];

function fail(message: string, value: unknown): never {
  throw new NumalignError('ERR_INVALID_TOPOLOGY', `not a JSON machine: ${message}`, {
    value,
    valid:
      '{ columns: ["cpu", "core", "socket", "numa", …], cpus: [[0, 0, 0, 0], …], nodes: [{ id: 0 }, …] }',
  });
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function wholeNumber(value: unknown, maximum: number, what: string): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= maximum) return value;
  return fail(`${what} must be a whole number from 0 to ${maximum}, not ${inspect(value)}`, value);
}

function list(value: unknown, what: string): unknown[] {
  return Array.isArray(value) ? value : fail(`${what} must be a list`, value);
}

function parseCpus(machine: Record<string, unknown>): Int32Array {
  const columns = list(machine.columns, 'columns');
  for (const name of REQUIRED_COLUMNS) if (!columns.includes(name)) fail(`columns lack "${name}"`, columns);
  const at = (name: string) => columns.indexOf(name);
  const rows = list(machine.cpus, 'cpus').map((row, i) => {
    const numbers = list(row, `cpus[${i}]`).map((cell, c) =>
      wholeNumber(cell, CpuSet.MAX_ID, `cpus[${i}][${c}]`),
    );
    return numbers.length === columns.length
      ? numbers
      : fail(`cpus[${i}] has not as many numbers as there are columns`, row);
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
        const substitute = column === 'die' ? lowestCpu.get(socket)! : socket;
        return row[at(FILE_COLUMNS[column])] ?? substitute;
      }),
    ),
  );
}

function parseHugepages(value: unknown, what: string): { bytes: number; count: number }[] {
  const pools = list(value, what).map((pool) => {
    if (!isRecord(pool)) return fail(`a pool of ${what} must be an object`, pool);
    const sizeKiB = wholeNumber(pool.sizeKiB, 2 ** 40, `a sizeKiB of ${what}`);
    if (!Number.isInteger(Math.log2(sizeKiB))) fail(`a sizeKiB of ${what} must be a power of two`, sizeKiB);
    return {
      bytes: 1024 * sizeKiB,
      count: wholeNumber(pool.count, Number.MAX_SAFE_INTEGER, `a count of ${what}`),
    };
  });
  if (new Set(pools.map(({ bytes }) => bytes)).size < pools.length)
    fail(`${what} must have each size once`, value);
  return pools;
}

function parseNodes(
  machine: Record<string, unknown>,
): Pick<TopologyDescription, 'nodes' | 'memory' | 'distances' | 'hugepages'> {
  const nodes = list(machine.nodes, 'nodes').map((node, i) => {
    if (!isRecord(node)) return fail(`nodes[${i}] must be an object`, node);
    const { distances = null, memory = 0, hugepages = [] } = node;
    return {
      id: wholeNumber(node.id, NodeSet.MAX_ID, `nodes[${i}].id`),
      memory: wholeNumber(memory, Number.MAX_SAFE_INTEGER, `nodes[${i}].memory`),
      distances:
        distances === null
          ? undefined
          : list(distances, `nodes[${i}].distances`).map((d) =>
              wholeNumber(d, 2 ** 32 - 1, `a distance of nodes[${i}]`),
            ),
      hugepages: parseHugepages(hugepages, `nodes[${i}].hugepages`),
    };
  });
  // Sums stay exact.
  const all = nodes.flatMap((node) => [
    node.memory,
    ...node.hugepages.map(({ bytes, count }) => bytes * count),
  ]);
  if (all.reduce((sum, bytes) => sum + bytes, 0) > Number.MAX_SAFE_INTEGER) {
    fail('the memory of all nodes together must be at most 2^53 - 1 bytes', machine.nodes);
  }
  nodes.sort((a, b) => a.id - b.id);
  const known = nodes.filter((node) => node.distances !== undefined);
  if (known.length > 0 && nodes.some((node) => node.distances?.length !== nodes.length)) {
    fail('every node must have a distance to every node, or none', machine.nodes);
  }
  return {
    nodes: Int32Array.from(nodes, (node) => node.id),
    memory: Float64Array.from(nodes, (node) => node.memory),
    distances: Uint32Array.from(known.flatMap((node) => node.distances!)),
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
  return list(devices, 'devices').map((device, i) => {
    if (!isRecord(device)) return fail(`devices[${i}] must be an object`, device);
    const text = (key: string, valid: RegExp, what: string): string => {
      const value = device[key];
      if (typeof value === 'string' && valid.test(value)) return value;
      return fail(`devices[${i}].${key} must be ${what}, not ${inspect(value)}`, value);
    };
    const number = (key: string) =>
      Number.parseInt(text(key, /^[0-9a-f]{4}$/i, 'four hexadecimal digits'), 16);
    const optional = (key: string, valid: RegExp, what: string) =>
      device[key] === undefined || device[key] === null ? '' : text(key, valid, `${what}, or null`);
    const address = 'an address such as "0000:3b:00.0"';
    return {
      id: text('id', PCI_ADDRESS, address),
      class: number('class'),
      vendor: number('vendor'),
      device: number('device'),
      driver: optional('driver', /./s, 'a name'),
      names: list(device.names ?? [], `devices[${i}].names`).map((name) =>
        typeof name === 'string' && name !== ''
          ? name
          : fail(`devices[${i}].names must be a list of names`, name),
      ),
      nodes: list(device.numaNodes ?? [], `devices[${i}].numaNodes`).map((node) =>
        wholeNumber(node, NodeSet.MAX_ID, `a node of devices[${i}].numaNodes`),
      ),
      parent: optional('parent', PCI_ADDRESS, address),
    };
  });
}

/**
 * @throws ERR_INVALID_TOPOLOGY, which names the field. Counts (numCpus and so on) and kinds of
 *   devices are derived and not read.
 */
export function parseMachine(machine: unknown): TopologyDescription {
  if (!isRecord(machine)) fail('the file must hold an object', machine);
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
