// KubeletPolicy: the policies of a kubelet on this machine, from its state files.
import { NodeError } from '../base/errors.js';
import { readStates } from './checkpoint-files.js';
import { DEVICE_FOLDER, KUBELET_FOLDER } from './pod-resources.js';

/**
 * The policies by which a kubelet assigns CPUs or memory itself; empty without a kubelet.
 * @throws like {@link readStates}
 */
export async function staticPolicies(
  folder = KUBELET_FOLDER,
  deviceFolder = DEVICE_FOLDER,
): Promise<string[]> {
  const { cpu, memory } = await readStates(folder, deviceFolder);
  return [
    ...(cpu?.policyName === 'static' ? ['cpuManagerPolicy: static'] : []),
    ...(memory?.policyName === 'Static' ? ['memoryManagerPolicy: Static'] : []),
  ];
}

/**
 * Refuses a kubelet that assigns CPUs or memory itself: it would write the same cpusets as the
 * plugin.
 * @throws NodeError ERR_KUBELET_STATIC; like {@link readStates}
 */
export async function refuseStaticKubelet(
  folder = KUBELET_FOLDER,
  deviceFolder = DEVICE_FOLDER,
): Promise<void> {
  const flaws = await staticPolicies(folder, deviceFolder);
  if (flaws.length === 0) return;
  throw new NodeError(
    'ERR_KUBELET_STATIC',
    `the kubelet of ${folder} places containers itself (${flaws.join(', ')}): set cpuManagerPolicy: none and memoryManagerPolicy: None, remove cpu_manager_state and memory_manager_state, and start it again; or leave containers to it (--no-nri)`,
    { value: flaws, valid: 'cpuManagerPolicy: none, memoryManagerPolicy: None' },
  );
}
