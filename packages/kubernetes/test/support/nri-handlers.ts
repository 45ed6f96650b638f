// Handlers of NRI that record their calls.
import type { NriHandlers } from '../../lib/nri/handlers.js';
import type { ContainerUpdate } from '../../lib/nri/messages.js';
import type { Message } from '../../lib/protobuf/schema.js';

/** Handlers that answer with nothing. */
export function idleHandlers(): NriHandlers {
  return {
    synchronize: async () => [],
    createContainer: async () => ({}),
    updateContainer: async () => [],
    stopContainer: async () => [],
  };
}

/** Pods and containers as a test needs them: with an id and a name. */
export const podOf = (id: string, fields: object = {}) => ({
  id,
  name: `pod-${id}`,
  namespace: 'default',
  ...fields,
});
export const containerOf = (id: string, pod: string, fields: object = {}) => ({
  id,
  pod_sandbox_id: pod,
  name: `container-${id}`,
  ...fields,
});

export const updateOf = (id: string, cpus: string): ContainerUpdate => ({
  container_id: id,
  linux: { resources: { cpu: { cpus } } },
});

/** Ids and CPUs of updates as they came over the wire. */
export const cpusOf = (updates: Message[]) =>
  updates.map((each) => [each.container_id, each.linux.resources.cpu.cpus]);
