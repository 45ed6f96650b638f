// DeviceCheckpoint: the kubelet's file of devices, kubelet_internal_checkpoint. Pure.
import { CpuSet } from 'numalign';
import { NodeError } from '../base/errors.js';
import type { FiledContainer } from './holdings.js';

/** The file's name in the folder of device plugins. */
export const DEVICE_CHECKPOINT = 'kubelet_internal_checkpoint';

function unusable(what: string, value: unknown, cause?: unknown): never {
  throw new NodeError('ERR_KUBELET_STATE', `${DEVICE_CHECKPOINT}: ${what}`, {
    value,
    valid: 'a checkpoint of devices, as the kubelet writes it',
    cause,
  });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    return unusable(`it is not JSON (${(cause as Error).message})`, text, cause);
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((each) => typeof each === 'string');

// Keyed by NUMA node, -1 if the plugin reports none. Kubelets before 1.20 only write the ids.
function devicesIn(ids: unknown) {
  if (isTexts(ids)) return ids.map((id) => ({ id, nodes: [] }));
  if (!isObject(ids)) return unusable('the ids of devices are missing', ids);
  const nodesOf = new Map<string, number[]>();
  for (const [node, list] of Object.entries(ids)) {
    if (!/^(-1|\d+)$/.test(node) || !isTexts(list))
      return unusable('the ids of devices are not lists by NUMA node', ids);
    for (const id of list)
      nodesOf.set(id, [...(nodesOf.get(id) ?? []), ...(node === '-1' ? [] : [Number(node)])]);
  }
  return Array.from(nodesOf, ([id, nodes]) => ({ id, nodes }));
}

/**
 * The containers that hold devices. The checksum is ignored, since it is computed over Go's own
 * rendering.
 * @throws ERR_KUBELET_STATE
 */
export function parseDeviceCheckpoint(text: string): FiledContainer[] {
  const file = parseJson(text);
  const data = isObject(file) ? file.Data : undefined;
  if (!isObject(data)) return unusable('it has no Data', file);
  const entries = data.PodDeviceEntries ?? [];
  if (!Array.isArray(entries)) return unusable('PodDeviceEntries is not a list', entries);
  return entries.map((entry: unknown) => {
    const {
      PodUID: uid,
      ContainerName: name,
      ResourceName: resource,
      DeviceIDs,
    } = isObject(entry) ? entry : {};
    if (!isTexts([uid, name, resource]))
      return unusable('an entry names no pod, container or resource', entry);
    const [podUid, container, resourceName] = [uid, name, resource] as [string, string, string];
    return {
      uid: podUid,
      name: container,
      cpus: CpuSet.EMPTY,
      memory: [],
      devices: { [resourceName]: devicesIn(DeviceIDs) },
    };
  });
}
