// Configure: changes the settings for all users of a machine.
import { cpusNow } from '../account/cpus-now.js';
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
import { parseMachineOptions } from '../input/given-settings.js';
import type { MachineOptions } from '../input/machine-options.js';
import { refuseBesideKubelet } from './beside-kubelet.js';

/** @throws like {@link Manager.configure} */
export async function configure(site: Site, config: Config, options: MachineOptions): Promise<void> {
  const changes = parseMachineOptions(options);
  await transact(site, undefined, async (state, commit) => {
    checkKnown(changes, site.topology, state.settings);
    const now = cpusNow(site.topology, state.pods);
    const { placement } = config;
    const required = chosenSettings({ settings: changes, placement }, site.topology, now, state.settings);
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
