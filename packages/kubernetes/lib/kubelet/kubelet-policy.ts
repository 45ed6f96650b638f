// The policies of a kubelet on this machine, as its state files tell.
import { NodeError } from '../base/errors.js';
import { readStates } from './checkpoint-files.js';
import { DEVICE_FOLDER, KUBELET_FOLDER } from './pod-resources.js';

/**
 * The policies by which a kubelet gives CPUs or memory out itself; none where there is no kubelet.
 * @throws as {@link readStates}
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
 * A kubelet that gives CPUs or memory out itself and a plugin that does would write the same cpusets.
 * @throws NodeError ERR_KUBELET_STATIC; as {@link readStates}
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
