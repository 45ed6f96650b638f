// The part of the state files that records what the kubelet has given out. Pure.
import type { KubeletContainer, KubeletPod, KubeletRecord } from '../../account/kubelet-record.js';
import { decodeOwner, memoryBlocks } from './pod-record.js';
import { cpuSet, listOf, members, nullable, object, record, text, unknownOf } from './shapes.js';

const decodeContainer = members<KubeletContainer>({
  name: text,
  cpus: cpuSet,
  memory: memoryBlocks,
  devices: (value, where) => record(value, where, (ids, at) => listOf(ids, at, text)),
});

const decodePod = members<KubeletPod>({
  uid: nullable(text),
  namespace: text,
  name: text,
  containers: (value, where) => listOf(value, where, decodeContainer),
});

/** null if the section is missing. @throws ERR_STATE_CORRUPT */
export function decodeKubelet(value: unknown, where: string): KubeletRecord | null {
  if (value === undefined || value === null) return null;
  const fields = object(value, where);
  const section = {
    pods: listOf(fields.pods, `${where}.pods`, decodePod),
    keeper: decodeOwner(fields.keeper, `${where}.keeper`),
    since: text(fields.since, `${where}.since`),
    updatedAt: text(fields.updatedAt, `${where}.updatedAt`),
  };
  return { ...section, unknown: unknownOf(fields, Object.keys(section)) };
}
