// What the kubelet has given out, as Manager.recordKubelet takes it. Pure.
import type { Manager } from 'numalign';
import type { PodHoldings } from './holdings.js';

type RecordedPod = NonNullable<Parameters<Manager['recordKubelet']>[0]>[number];

// The kubelet's files know some pods by their uids alone.
const UNKNOWN_NAMESPACE = 'unknown';

export function recordOf({ namespace, name, uid, containers }: PodHoldings): RecordedPod {
  return {
    ...{ uid: uid ?? null, namespace: namespace || UNKNOWN_NAMESPACE, name },
    containers: containers.map((container) => ({
      ...{ name: container.name, cpus: container.cpus, memory: container.memory },
      devices: Object.fromEntries(
        Object.entries(container.devices).map(([resource, held]) => [resource, held.map(({ id }) => id)]),
      ),
    })),
  };
}
