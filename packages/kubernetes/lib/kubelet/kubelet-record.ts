// KubeletRecord: the kubelet's assignments in the form of Manager.recordKubelet. Pure.
import type { Manager } from 'numalign';
import type { PodHoldings } from './holdings.js';

type RecordedPod = NonNullable<Parameters<Manager['recordKubelet']>[0]>[number];

// The kubelet's files only have the uids of some pods.
const UNKNOWN_NAMESPACE = 'unknown';

export function recordOf({ namespace, name, uid, containers }: PodHoldings): RecordedPod {
  return {
    uid: uid ?? null,
    namespace: namespace || UNKNOWN_NAMESPACE,
    name,
    containers: containers.map((container) => ({
      name: container.name,
      cpus: container.cpus,
      memory: container.memory,
      devices: Object.fromEntries(
        Object.entries(container.devices).map(([resource, list]) => [resource, list.map(({ id }) => id)]),
      ),
    })),
  };
}
