// The policies of a kubelet on this machine, as its state files tell.
import { NodeError } from '../base/errors.js';
import { readStates } from './checkpoint-files.js';
import { DEVICE_FOLDER, KUBELET_FOLDER } from './pod-resources.js';

/**
 * A kubelet that gives CPUs or memory out itself and a plugin that does would write the same cpusets.
 * @throws NodeError ERR_KUBELET_STATIC; as {@link readStates}
 */
export async function refuseStaticKubelet(
  folder = KUBELET_FOLDER,
  deviceFolder = DEVICE_FOLDER,
): Promise<void> {
  const { cpu, memory } = await readStates(folder, deviceFolder);
  const flaws = [
    ...(cpu?.policyName === 'static' ? ['cpuManagerPolicy: static'] : []),
    ...(memory?.policyName === 'Static' ? ['memoryManagerPolicy: Static'] : []),
  ];
  if (flaws.length === 0) return;
  throw new NodeError(
    'ERR_KUBELET_STATIC',
    `the kubelet of ${folder} places containers itself (${flaws.join(', ')}): set cpuManagerPolicy: none and memoryManagerPolicy: None, remove cpu_manager_state and memory_manager_state, and start it again; or leave containers to it (--no-nri)`,
    { value: flaws, valid: 'cpuManagerPolicy: none, memoryManagerPolicy: None' },
  );
}
