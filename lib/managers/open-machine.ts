// What openManager does: from options to a manager, a view of the state, or an empty manager.
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
import { type Config, type ManagerOptions, parseConfig } from '../input/config.js';
import { checkPlacement } from '../input/placement.js';
import { discoverMachine } from '../machine/discovery.js';
import type { Topology } from '../machine/topology.js';
import { defaultStateDir } from '../state/folder/chosen-folder.js';
import { hasState } from '../state/folder/folder.js';
import { ReadOnlyStore } from '../state/read-only-store.js';
import { EmptyManager } from './empty-manager.js';
import { deviceResources, hostOf, openStore, readOnlyHostOf } from './host.js';
import { Manager } from './manager.js';
import { Lifetime } from './manager-parts.js';
import { ManagerView } from './manager-view.js';
import { BLIND_MS, ManagerWatch } from './manager-watch.js';
import { prepare } from './prepare.js';

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
   * @default `/run/numalign`; with the variable `NUMALIGN_STATE_DIR`, that folder
   */
  stateDir?: string | null;
}

/** As openManager says. */
export async function openMachine(
  options: ManagerOptions | ViewOptions | Optional<ManagerOptions>,
): Promise<ManagerView | EmptyManager> {
  const isOptional = (options as Partial<Optional<ManagerOptions>> | null)?.optional === true;
  return isOptional
    ? openOne(options).catch((error) => new EmptyManager(obstacleOf(error)))
    : openOne(options);
}

async function openOne(options: ManagerOptions | ViewOptions): Promise<ManagerView> {
  const config = parseConfig(options);
  await turnIfDue();
  const hasDevices = Object.keys(config.devices).length > 0;
  const topology = config.topology ?? (await discoverMachine(hasDevices));
  // A view checks the placement only when it plans a pod: it may never plan one.
  if (!config.readOnly) checkPlacement(config.placement, topology);
  const resources = deviceResources(config, topology);
  return config.readOnly ? openView(config, topology, resources) : open(config, topology, resources);
}

type Resources = Map<string, DeviceResource>;

async function open(config: Config, topology: Topology, resources: Resources): Promise<Manager> {
  // Checks the settings before anything is made on disk. An existing state checks them against its
  // own settings instead: the machine may have changed since.
  if (!hasState(config.stateDir ?? defaultStateDir())) firstState(config, topology, cpusNow(topology));
  const ledger = openStore(config, topology);
  // The new manager keeps it open by itself.
  const endUse = ledger.use();
  try {
    const host = hostOf(config, topology, ledger, resources);
    const openingWarnings = Object.freeze(await prepare(host, config));
    const watch = new ManagerWatch(host, {
      // Frequent reconciling reports changes of the CPUs itself.
      isBlind: config.reconcilePeriodMs === 0 || config.reconcilePeriodMs > BLIND_MS,
      reclaim: async () => reclaim(host),
    });
    return new Manager({ config, host, resources, lifetime: new Lifetime(), watch, openingWarnings });
  } finally {
    endUse();
  }
}

function openView(config: Config, topology: Topology, resources: Resources): ManagerView {
  const path = config.stateDir === undefined && !topology.isSimulated ? defaultStateDir() : config.stateDir;
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
  const host = readOnlyHostOf(topology, store, resources);
  return new ManagerView({
    host,
    placement: config.placement,
    lifetime: new Lifetime(),
    watch: new ManagerWatch(host, { isBlind: true, reclaim: async () => {} }),
    openingWarnings: Object.freeze([
      ...settingWarnings(assignments, topology, now.online),
      ...grantWarnings(assignments, topology, resources, now),
    ]),
    sharedMembers: () =>
      store.lookInto('members', (folder, at) => new SharedMembers(folder, at).list()) ?? [],
    release: () => store.close(),
  });
}
