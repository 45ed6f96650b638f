// ReadStatus: reads a StateStatus. Only looks: makes, locks and changes nothing.
import { cpusNow } from '../account/cpus-now.js';
import { withoutPods } from '../account/pod-changes.js';
import { freeCpus, sharedPool } from '../account/pools.js';
import type { ReadOnlyHost } from '../admission/host.js';
import { lapsedGrants, settingWarnings } from '../admission/warnings.js';
import { settingsNow } from '../decision/machine-settings.js';
import { memoryTables } from '../decision/memory/memory-tables.js';
import { kubeletStatus } from '../kubelet/record/kubelet-status.js';
import { grantsOf } from './grant-status.js';
import { readingIn, readingWithout, type StateReading } from './state-reading.js';
import type { StateStatus } from './status.js';

/**
 * The state of a host now. Always reads the file; of a damaged one, what can be recovered.
 * @throws ERR_STATE_FOLDER if this process may not open the folder, ERR_STATE_CORRUPT if nothing
 *   can be recovered, ERR_STATE_VERSION
 */
export function readStatus(host: ReadOnlyHost): StateStatus {
  return statusOf(host, (host.ledger.scope !== 'memory' && readingIn(host)) || readingWithout(host));
}

function statusOf(host: ReadOnlyHost, found: StateReading): StateStatus {
  const { ledger, topology } = host;
  const { exists, isOfEarlierBoot, damage, checkpoint, members, waiting } = found;
  const { generation, assignments, refusal } = checkpoint;
  const state = isOfEarlierBoot ? withoutPods(assignments) : assignments;
  const present = cpusNow(topology, state.pods);
  const { managedCPUs, isolatedCPUs } = state.settings;
  return {
    stateDir: ledger.scope === 'memory' ? '' : ledger.path,
    scope: ledger.scope,
    exists,
    generation,
    isOfEarlierBoot,
    settings: {
      ...settingsNow(state.settings, present),
      managesAll: managedCPUs === null,
      isolatedByKernel: isolatedCPUs === null,
    },
    sharedPool: sharedPool(state, present),
    free: freeCpus(state, present),
    freeIsolated: freeCpus(state, present, 'isolated'),
    memory: memoryTables(state, topology),
    kubelet: kubeletStatus(state.kubelet, found.isProcessAlive),
    grants: grantsOf(host, state, present, found.isAlive),
    sharedMembers: members,
    waiting,
    damage,
    refusal: refusal ?? null,
    lapsed: isOfEarlierBoot ? lapsedGrants(assignments) : [],
    warnings: settingWarnings(state, topology, present.online),
  };
}
