// The part of the state files that records what the kubelet has given out. Pure.
import type { KubeletContainer, KubeletPod, KubeletRecord } from '../../account/kubelet-record.js';
import { decodeOwner, memoryBlock } from './pod-record.js';
import { cpuSet, list, listOf, object, orNull, record, text, unknownOf } from './shapes.js';

function decodeContainer(value: unknown, where: string): KubeletContainer {
  const { name, cpus, memory, devices } = object(value, where);
  return {
    name: text(name, 'name'),
    cpus: cpuSet(cpus, 'cpus'),
    memory: listOf(memory, 'memory', memoryBlock),
    devices: record(devices, 'devices', (ids, at) => listOf(list(ids, at), at, text)),
  };
}

function decodePod(value: unknown, where: string): KubeletPod {
  const { uid, namespace, name, containers } = object(value, where);
  return {
    uid: orNull(uid, 'uid', text),
    namespace: text(namespace, 'namespace'),
    name: text(name, 'name'),
    containers: listOf(containers, 'containers', decodeContainer),
  };
}

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
