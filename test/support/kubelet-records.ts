// Records of the kubelet's allocations.
import fc from 'fast-check';
import type { KubeletRecord } from '../../lib/account/kubelet-record.js';
import { CpuSet } from '../../lib/index.js';

const text = fc.string({ unit: 'grapheme', maxLength: 12 });
const unknown = fc.dictionary(fc.constantFrom('future', 'toString', 'x-y'), fc.jsonValue());

const container = fc.record({
  name: text,
  cpus: fc.uniqueArray(fc.nat(300), { maxLength: 4 }).map((ids) => CpuSet.from(ids)),
  memory: fc.array(fc.record({ nodes: fc.constantFrom([0], [1, 2]), type: text, bytes: fc.nat(2 ** 40) }), {
    maxLength: 2,
  }),
  devices: fc.dictionary(text, fc.array(text, { maxLength: 2 }), { maxKeys: 2 }),
});

export const kubeletRecords: fc.Arbitrary<KubeletRecord> = fc.record({
  pods: fc.array(
    fc.record({
      uid: fc.option(text),
      namespace: text,
      name: text,
      containers: fc.array(container, { maxLength: 2 }),
    }),
    { maxLength: 3 },
  ),
  keeper: fc.record({
    kind: fc.constant('process' as const),
    uuid: fc.uuid(),
    pid: fc.nat(),
    command: text,
    cgroup: fc.constant(null),
    unknown,
  }),
  since: text,
  updatedAt: text,
  unknown,
});

/** One pod, `default/web`, with these CPUs. `uuid`: of its keeper. */
export function kubeletRecord(cpus: string, uuid = 'ab'): KubeletRecord {
  const held = { name: 'main', cpus: CpuSet.parse(cpus), memory: [], devices: {} };
  return {
    pods: [{ uid: null, namespace: 'default', name: 'web', containers: [held] }],
    keeper: { kind: 'process', uuid, pid: 1, command: 'node', cgroup: null, unknown: {} },
    since: '2025-12-31',
    updatedAt: 'now',
    unknown: {},
  };
}
