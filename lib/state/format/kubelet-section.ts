// What the state files say that the kubelet has given out. Pure.
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

/** null where nothing of it is said. @throws ERR_STATE_CORRUPT */
export function decodeKubelet(value: unknown, where: string): KubeletRecord | null {
  if (value === undefined || value === null) return null;
  const given = object(value, where);
  const known = {
    pods: listOf(given.pods, `${where}.pods`, decodePod),
    keeper: decodeOwner(given.keeper, `${where}.keeper`),
    since: text(given.since, `${where}.since`),
    updatedAt: text(given.updatedAt, `${where}.updatedAt`),
  };
  return { ...known, unknown: unknownOf(given, Object.keys(known)) };
}
