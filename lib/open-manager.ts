// OpenManager: how a machine, and the state that its processes share, are opened.
import { cpusNow } from './account/cpus-now.js';
import { firstState } from './decision/machine-settings.js';
import { MACHINE_STATE_DIR, type ManagerOptions, parseConfig } from './input/config.js';
import { checkPlacement } from './input/placement.js';
import { discover } from './machine/discovery.js';
import { Manager } from './manager.js';
import { prepare } from './opening/prepare.js';
import { deviceResources, openStore, siteOf } from './opening/site.js';
import { hasState } from './state/folder.js';

/**
 * Opens the machine: discovers it, opens the state that its processes share, and drops the grants
 * of dead owners. Several managers in one process are allowed and see each other. That the machine
 * has changed is no reason to refuse: see {@link Manager.warnings}.
 * @throws ERR_INVALID_OPTION; ERR_STATE_FOLDER without access to the folder; ERR_CONFIG_CONFLICT
 *   where the recorded machine settings differ from those given; ERR_STATE_CORRUPT,
 *   ERR_STATE_VERSION, ERR_LOCK_TIMEOUT; ERR_SIMULATED_MACHINE; ERR_KUBELET_CONFLICT beside a
 *   kubelet that may give the same CPUs to others.
 */
export async function openManager(options: ManagerOptions = {}): Promise<Manager> {
  const config = parseConfig(options);
  const topology = config.topology ?? (await discover());
  // Before anything is made on disk. Where there is a state, settings are held against it and not
  // against the machine, which may have changed.
  checkPlacement(config.placement, topology);
  if (!hasState(config.stateDir ?? MACHINE_STATE_DIR)) firstState(config, topology, cpusNow(topology));
  const resources = deviceResources(config, topology);
  const ledger = openStore(config, topology);
  // The manager keeps it open from then on.
  const end = ledger.use();
  try {
    const site = siteOf(config, topology, ledger, resources);
    const warnings = await prepare(site, config);
    return new Manager(config, site, resources, Object.freeze(warnings));
  } finally {
    end();
  }
}
