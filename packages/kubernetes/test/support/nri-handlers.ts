// Handlers of NRI that say what they were called with.
import type { NriHandlers } from '../../lib/nri/handlers.js';

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
