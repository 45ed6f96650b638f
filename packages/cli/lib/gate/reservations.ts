// What a node reserves, and the memory that its configuration reserves on NUMA nodes.
import { binaryBytes, isMemoryType, parseQuantity } from 'numalign/tools';
import type { Topology } from 'numalign/topology';
import { because, type Fields, type Finding, fieldsOf, findingOf, listOf, wrong } from './findings.js';

const NO_NANOS = 0n;
// The finding of a wrong amount is the library's.
function nanosOf(amount: unknown): bigint {
  try {
    return parseQuantity(amount ?? 0, '');
  } catch {
    return NO_NANOS;
  }
}

const reservedOf = (fields: Fields, resource: string): bigint =>
  nanosOf(fieldsOf(fields.kubeReserved)[resource]) + nanosOf(fieldsOf(fields.systemReserved)[resource]);

/** Whether the amounts of a node reserve CPUs. */
export const reservesCpus = (fields: Fields): boolean => reservedOf(fields, 'cpu') > NO_NANOS;

/**
 * Why the Memory Manager would not start: each node's memory that is reserved must add up to what the
 * node reserves.
 */
export function memoryFindings(fields: Fields, topology: Topology): Finding[] {
  const entries = listOf(fields.reservedMemory);
  const seen = new Set<string>();
  const amounts: { field: string; type: string; nanos: bigint }[] = [];
  const findings = entries.flatMap((entry, i) => {
    const { numaNode, limits } = fieldsOf(entry);
    const at = `reservedMemory[${i}]`;
    const isHere = topology.nodes.some(({ id }) => id === numaNode);
    return [
      ...(isHere ? [] : [wrong(`${at}.numaNode`, numaNode, 'a NUMA node of this machine')]),
      ...Object.entries(fieldsOf(limits)).flatMap(([type, amount]): Finding[] => {
        const field = `${at}.limits.${type}`;
        if (!isMemoryType(type)) return [because(field, 'only memory and hugepages-<size> can be reserved')];
        const refusal = findingOf(() => parseQuantity(amount, field), field);
        if (refusal) return [refusal];
        const nanos = nanosOf(amount);
        if (nanos === NO_NANOS) return [wrong(field, amount, 'more than zero')];
        const key = `${numaNode} ${type}`;
        if (seen.has(key)) return [because(field, `NUMA node ${numaNode} has another amount of ${type}`)];
        seen.add(key);
        amounts.push({ field: at, type, nanos });
        return [];
      }),
    ];
  });
  if (findings.length > 0 || fields.memoryManagerPolicy !== 'Static') return findings;
  if (amounts.length === 0)
    return [because('memoryManagerPolicy', `Static needs reservedMemory: ${sumText(fields, topology)}`)];
  const types = new Set([...amounts.map(({ type }) => type), ...reservedTypes(fields)]);
  return [...types].flatMap((type) => {
    const sum = amounts.reduce((total, each) => (each.type === type ? total + each.nanos : total), NO_NANOS);
    const needed =
      reservedOf(fields, type) + (type === 'memory' ? evictionNanos(fields, topology) : NO_NANOS);
    if (sum === needed) return [];
    const valid =
      type === 'memory' ? sumText(fields, topology) : `it must be ${bytesOf(needed)}, as it is reserved`;
    return [because('reservedMemory', `its ${type} is ${bytesOf(sum)} in all: ${valid}`)];
  });
}

const reservedTypes = (fields: Fields) =>
  ['kubeReserved', 'systemReserved']
    .flatMap((name) => Object.keys(fieldsOf(fields[name])))
    .filter(isMemoryType);

const bytesOf = (nanos: bigint) => binaryBytes(Number(nanos / 10n ** 9n));

function sumText(fields: Fields, topology: Topology): string {
  const eviction = evictionNanos(fields, topology);
  const parts = [
    nanosOf(fieldsOf(fields.kubeReserved).memory),
    nanosOf(fieldsOf(fields.systemReserved).memory),
  ];
  const [kube, system] = parts.map(bytesOf);
  const sum = bytesOf(parts[0]! + parts[1]! + eviction);
  return `it must be ${sum}, kubeReserved (${kube}) + systemReserved (${system}) + the eviction threshold (${bytesOf(eviction)})`;
}

const DEFAULT_EVICTION = '100Mi';

// The hard threshold of memory. A map without it has none, unless the defaults are merged in.
function evictionNanos(fields: Fields, topology: Topology): bigint {
  const hard = fieldsOf(fields.evictionHard);
  const hasDefaults = Object.keys(hard).length === 0 || fields.mergeDefaultEvictionSettings === true;
  const threshold = hard['memory.available'] ?? (hasDefaults ? DEFAULT_EVICTION : '0');
  const [, percent] = /^([\d.]+)%$/.exec(String(threshold)) ?? [];
  if (percent === undefined) return nanosOf(threshold);
  const total = topology.nodes.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0);
  return BigInt(Math.floor((total * Number(percent)) / 100)) * 10n ** 9n;
}
