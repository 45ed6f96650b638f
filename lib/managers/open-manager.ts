// openManager: opens a machine, and the state that its processes share.
import { cpusNow } from '../account/cpus-now.js';
import { reclaim } from '../admission/transact.js';
import { grantWarnings, settingWarnings } from '../admission/warnings.js';
import { obstacleOf } from '../base/refusal.js';
import { turnIfDue } from '../base/steps.js';
import type { DeviceResource } from '../decision/devices/device-resources.js';
import { checkRecorded, firstState } from '../decision/machine-settings.js';
import { totalsOf } from '../decision/memory/memory-tables.js';
import { SharedMembers } from '../enforcement/members/shared-members.js';
import type { Optional } from '../grants/empty-grant.js';
import { type Config, MACHINE_STATE_DIR, type ManagerOptions, parseConfig } from '../input/config.js';
import { checkPlacement } from '../input/placement.js';
import { discover } from '../machine/discovery.js';
import type { Topology } from '../machine/topology.js';
import { hasState } from '../state/folder/folder.js';
import { ReadOnlyStore } from '../state/read-only-store.js';
import { EmptyManager } from './empty-manager.js';
import { Manager } from './manager.js';
import { Lifetime } from './manager-parts.js';
import { ManagerView } from './manager-view.js';
import { BLIND_MS, ManagerWatch } from './manager-watch.js';
import { prepare } from './prepare.js';
import { deviceResources, openStore, readOnlySiteOf, siteOf } from './site.js';

/**
 * The options of {@link openManager} for a {@link ManagerView}, which only reads. `lockTimeoutMs`,
 * `sharedMember`, `besideKubelet` and the options of enforcement and reconciling have no effect,
 * and `optional` is refused.
 */
export interface ViewOptions extends Omit<ManagerOptions, 'readOnly' | 'stateDir'> {
  /** Opens the state for reading only. */
  readOnly: true;
  /**
   * As {@link ManagerOptions.stateDir}. null: no state, as if nothing were granted.
   * @default `/run/numalign`
   */
  stateDir?: string | null;
}

/**
 * Opens the machine: discovers it, opens the state that its processes share, and takes grants of
 * dead owners back. Several managers in one process are allowed and see each other. Changes of the
 * machine are no reason to refuse: see {@link Manager.warnings}. With `optional: true`, the result
 * is an {@link EmptyManager} if the machine cannot be opened.
 * @throws ERR_INVALID_OPTION; ERR_STATE_FOLDER without access to the folder; ERR_CONFIG_CONFLICT if
 *   the recorded settings differ from the given ones; ERR_STATE_CORRUPT, ERR_STATE_VERSION,
 *   ERR_LOCK_TIMEOUT; ERR_SIMULATED_MACHINE; ERR_KUBELET_CONFLICT beside a kubelet that may give
 *   the same CPUs away
 */
export async function openManager(options: Optional<ManagerOptions>): Promise<Manager | EmptyManager>;
export async function openManager(options?: ManagerOptions): Promise<Manager>;
/**
 * With `readOnly: true`, only reads: see {@link ManagerView}. Recorded settings must agree with the
 * given ones.
 * @throws ERR_INVALID_OPTION; ERR_STATE_FOLDER if the folder is closed to this process;
 *   ERR_CONFIG_CONFLICT; ERR_SIMULATED_MACHINE; ERR_STATE_CORRUPT, ERR_STATE_VERSION
 */
export async function openManager(options: ViewOptions): Promise<ManagerView>;
export async function openManager(
  options: ManagerOptions | ViewOptions | Optional<ManagerOptions> = {},
): Promise<ManagerView | EmptyManager> {
  const isOptional = (options as Partial<Optional<ManagerOptions>> | null)?.optional === true;
  return isOptional
    ? openMachine(options).catch((error) => new EmptyManager(obstacleOf(error)))
    : openMachine(options);
}

async function openMachine(options: ManagerOptions | ViewOptions): Promise<ManagerView> {
  const config = parseConfig(options);
  await turnIfDue();
  const topology = config.topology ?? (await discover());
  // A view checks the placement only when it plans a pod: it may never plan one.
  if (!config.readOnly) checkPlacement(config.placement, topology);
  const resources = deviceResources(config, topology);
  return config.readOnly ? openView(config, topology, resources) : open(config, topology, resources);
}

type Resources = Map<string, DeviceResource>;

async function open(config: Config, topology: Topology, resources: Resources): Promise<Manager> {
  // Checks the settings before anything is made on disk. An existing state checks them against its
  // own settings instead: the machine may have changed since.
  if (!hasState(config.stateDir ?? MACHINE_STATE_DIR)) firstState(config, topology, cpusNow(topology));
  const ledger = openStore(config, topology);
  // The new manager keeps it open by itself.
  const endUse = ledger.use();
  try {
    const site = siteOf(config, topology, ledger, resources);
    const openingWarnings = Object.freeze(await prepare(site, config));
    const watch = new ManagerWatch(site, {
      // Frequent reconciling reports changes of the CPUs itself.
      isBlind: config.reconcilePeriodMs === 0 || config.reconcilePeriodMs > BLIND_MS,
      reclaim: async () => reclaim(site),
    });
    return new Manager({ config, site, resources, lifetime: new Lifetime(), watch, openingWarnings });
  } finally {
    endUse();
  }
}

function openView(config: Config, topology: Topology, resources: Resources): ManagerView {
  const path = config.stateDir === undefined && !topology.isSimulated ? MACHINE_STATE_DIR : config.stateDir;
  const store = new ReadOnlyStore(
    path ?? undefined,
    () => firstState(config, topology, cpusNow(topology)),
    totalsOf(topology),
  );
  try {
    return viewOf(store, config, topology, resources);
  } catch (error) {
    store.close();
    throw error;
  }
}

function viewOf(store: ReadOnlyStore, config: Config, topology: Topology, resources: Resources): ManagerView {
  const { assignments } = store.read();
  const now = cpusNow(topology, assignments.pods);
  checkRecorded(assignments, config, { topology, now, path: store.path });
  const site = readOnlySiteOf(topology, store, resources);
  return new ManagerView({
    site,
    placement: config.placement,
    lifetime: new Lifetime(),
    watch: new ManagerWatch(site, { isBlind: true, reclaim: async () => {} }),
    openingWarnings: Object.freeze([
      ...settingWarnings(assignments, topology, now.online),
      ...grantWarnings(assignments, topology, resources, now),
    ]),
    sharedMembers: () =>
      store.lookInto('members', (folder, at) => new SharedMembers(folder, at).list()) ?? [],
    release: () => store.close(),
  });
}
