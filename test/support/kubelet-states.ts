// Any states of the kubelet's managers, for properties.
import fc from 'fast-check';
import { CpuSet } from '../../lib/index.js';
import type { CpuManagerState } from '../../lib/kubelet/cpu-manager-state.js';
import type { KubeletNumaNode, MemoryManagerState } from '../../lib/kubelet/memory-manager-state.js';

const name = fc.oneof(
  fc.constantFrom(
    'app',
    'pod-a',
    '__proto__',
    'constructor',
    '<&>\u2028',
    'a"b\\c',
    '\ud83d\ude00',
    '\ufffd',
    '\b\f\u007f',
    '',
  ),
  fc.string({ unit: 'grapheme', maxLength: 8 }),
);
const cpus = fc
  .uniqueArray(fc.integer({ min: 0, max: 300 }), { maxLength: 12 })
  .map((ids) => CpuSet.from(ids));
const bytes = fc.oneof(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), fc.nat().map(BigInt));
const id = fc.integer({ min: -2, max: 1100 });
const ids = fc.array(id, { maxLength: 4 });

function mapOf<K, V>(key: fc.Arbitrary<K>, value: fc.Arbitrary<V>): fc.Arbitrary<ReadonlyMap<K, V>> {
  return fc.array(fc.tuple(key, value), { maxLength: 4 }).map((entries) => new Map(entries));
}

export const cpuManagerStates: fc.Arbitrary<CpuManagerState> = fc.record({
  policyName: fc.oneof(fc.constantFrom('static', 'none'), name),
  defaultCpuSet: cpus,
  entries: mapOf(name, mapOf(name, cpus)),
});

const table = fc.record({
  total: bytes,
  systemReserved: bytes,
  allocatable: bytes,
  reserved: bytes,
  free: bytes,
});
const type = fc.oneof(fc.constantFrom('memory', 'hugepages-2Mi', 'hugepages-1Gi'), name);
const numaNode: fc.Arbitrary<KubeletNumaNode> = fc.record({
  numberOfAssignments: fc.integer(),
  memoryMap: mapOf(type, table),
  cells: ids,
});
const block = fc.record({ numaAffinity: ids, type, size: bytes });

export const memoryManagerStates: fc.Arbitrary<MemoryManagerState> = fc.record({
  policyName: fc.oneof(fc.constantFrom('Static', 'None'), name),
  machineState: mapOf(id, numaNode),
  entries: mapOf(name, mapOf(name, fc.array(block, { maxLength: 3 }))),
});
