// Configure: changes the settings for all users of a machine.
import type { Assignments } from '../account/assignments.js';
import { cpusNow } from '../account/cpus-now.js';
import { universe } from '../account/pools.js';
import type { Site } from '../admission/site.js';
import { transact } from '../admission/transact.js';
import {
  applySettings,
  checkCgroupRoot,
  checkKnown,
  checkLeavesPool,
  chosenSettings,
} from '../decision/machine-settings.js';
import type { Config } from '../input/config.js';
import { type MachineOptions, parseMachineOptions } from '../input/machine-options.js';
import { checkBesideKubelet } from '../kubelet/kubelet-conflict.js';
import { readKubeletFacts } from '../kubelet/kubelet-facts.js';
import { kubeletStatus } from '../kubelet/record/kubelet-status.js';

/** @throws like {@link Manager.configure} */
export async function configure(site: Site, config: Config, options: MachineOptions): Promise<void> {
  const changes = parseMachineOptions(options);
  await transact(site, undefined, async (state, commit) => {
    checkKnown(changes, site.topology, state.settings);
    const now = cpusNow(site.topology, state.pods);
    const required = chosenSettings(changes, config.placement, site.topology, now, state.settings);
    const settings = applySettings(state.settings, required);
    const next = { ...state, settings };
    checkLeavesPool(next, now);
    checkCgroupRoot(state, settings);
    refuseBesideKubelet(site, config, next);
    if (changes.cgroupRoot !== undefined) site.ledger.rootChoice?.checkPlace();
    await commit(next);
    if (changes.cgroupRoot !== undefined) site.ledger.rootChoice?.record(changes.cgroupRoot);
    site.enforcer.apply(next);
  });
}

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
