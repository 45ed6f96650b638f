// KubeletImport: imports what the kubelet has assigned, in one transaction: everything or nothing.
import type { MachineSettings } from '../account/assignments.js';
import { cpusNow } from '../account/cpus-now.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import type { Host } from '../admission/host.js';
import { transact } from '../admission/transact.js';
import { aimOfAdoption } from '../adoption/adopt.js';
import { checkOptions, invalidOption } from '../base/check-options.js';
import { checkSignal } from '../input/requests/request.js';
import { type CpuManagerFormatOptions, parseCpuManagerState } from './cpu-manager-state.js';
import { withKubeletPods } from './kubelet-pods.js';
import type { KubeletFiles, KubeletStates } from './kubelet-states.js';
import { parseMemoryManagerState } from './memory-manager-state.js';

/** The options of {@link Manager.importKubelet}. */
export interface KubeletImportOptions
  extends Pick<CpuManagerFormatOptions, 'allowUnverified' | 'runningContainers'> {
  /**
   * Aborts the wait for the lock of the state.
   * @default none
   */
  signal?: AbortSignal;
}

/** @throws ERR_INVALID_OPTION, ERR_KUBELET_STATE */
export function parseKubeletFiles(
  files: KubeletFiles,
  options: KubeletImportOptions,
  { kubeletVersion, featureGates }: Pick<MachineSettings, 'kubeletVersion' | 'featureGates'>,
): KubeletStates & { readonly verified: boolean } {
  const checkedFiles = checkOptions(files, ['cpuManagerState', 'memoryManagerState'], "the kubelet's files");
  const [cpuFile, memoryFile] = (['cpuManagerState', 'memoryManagerState'] as const).map((name) => {
    const file = checkedFiles[name] ?? null;
    return file === null || typeof file === 'string'
      ? file
      : invalidOption(name, file, 'the text of the file, or null');
  });
  if (cpuFile === null && memoryFile === null)
    invalidOption("the kubelet's files", files, 'at least one of them');
  const { allowUnverified, runningContainers, signal } = checkOptions(
    options,
    ['allowUnverified', 'runningContainers', 'signal'],
    'importKubelet',
  );
  if (allowUnverified !== undefined && typeof allowUnverified !== 'boolean') {
    invalidOption('allowUnverified', allowUnverified, 'true or false');
  }
  if (
    runningContainers !== undefined &&
    (typeof runningContainers !== 'object' || runningContainers === null)
  ) {
    invalidOption('runningContainers', runningContainers, '[pod uid, container name] by container id');
  }
  checkSignal(signal);
  const { allowUnverified: isAllowed = false, runningContainers: running = {} } = options;
  const podLevelResourceManagers = featureGates.PodLevelResourceManagers;
  const format = { allowUnverified: isAllowed, podLevelResourceManagers, kubeletVersion };
  const cpu = parseCpuManagerState(cpuFile!, { ...format, runningContainers: running });
  const memory = parseMemoryManagerState(memoryFile!, format);
  return { cpu, memory, verified: cpu.verified && memory.verified };
}

/**
 * Locks, reloads, clears the shared members and commits. The pods are then on record as persistent.
 * @throws ERR_POD_CONFLICT, ERR_KUBELET_IMPORT, and what the ledger throws
 */
export function importPods(
  host: Host,
  states: KubeletStates,
  signal: AbortSignal | undefined,
): Promise<readonly PodAssignment[]> {
  const { topology, ledger, providers } = host;
  return transact(host, signal, async (state, commit, stateOnRecord) => {
    const newOwner = () => ledger.owners.recordFor('persistent');
    const facts = { newOwner, now: new Date(), present: cpusNow(topology, stateOnRecord.pods) };
    const { next, pods } = withKubeletPods(state, topology, states, facts);
    if (pods.length === 0) return pods;
    await commit(next, providers.isEmpty, { request: aimOfAdoption(host) });
    for (const pod of pods) providers.keep(pod);
    return pods;
  });
}
