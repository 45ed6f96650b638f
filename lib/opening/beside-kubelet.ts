// A manager of the whole machine beside a kubelet, which may manage it too.
import type { Assignments } from '../account/assignments.js';
import { universe } from '../account/pools.js';
import type { Site } from '../admission/site.js';
import type { Config } from '../input/config.js';
import { checkBesideKubelet } from '../kubelet/kubelet-conflict.js';
import { readKubeletFacts } from '../kubelet/kubelet-facts.js';
import { kubeletStatus } from '../kubelet/record/kubelet-status.js';

// Refuses to manage the whole machine if a kubelet does. @throws ERR_KUBELET_CONFLICT
export function refuseBesideKubelet(
  { ledger, topology }: Site,
  { besideKubelet }: Config,
  { settings, kubelet }: Pick<Assignments, 'settings' | 'kubelet'>,
): void {
  if (ledger.scope !== 'machine' || topology.isSimulated || besideKubelet) return;
  const record = kubeletStatus(kubelet, (uuid) => ledger.owners.isProcessAlive(uuid));
  const managed = universe(settings, { online: topology.cpus });
  checkBesideKubelet(readKubeletFacts(), managed, topology.cpus, record);
}
