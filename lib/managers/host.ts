// Host: the machine, the store and the enforcement of a manager.
import { newManagerId } from '../admission/diagnostics.js';
import type { Host, ReadOnlyHost } from '../admission/host.js';
import { NumalignError } from '../base/errors.js';
import type { DeviceResource } from '../decision/devices/device-resources.js';
import { HintProviders } from '../decision/hints/hint-providers.js';
import { enforcerOf, noEnforcer } from '../enforcement/enforcer.js';
import type { Config } from '../input/config.js';
import { parseDevices } from '../input/devices.js';
import type { Topology } from '../machine/topology.js';
import { NO_QUIETER, type Quieter } from '../quiet/quieter.js';
import { quieterOf } from '../quiet/quieter-of.js';
import { defaultStateDir } from '../state/folder/chosen-folder.js';
import { scopeOf } from '../state/folder/folder.js';
import { Ledger } from '../state/ledger.js';
import { MemoryStore } from '../state/memory-store.js';
import type { StateSource, Store } from '../state/store.js';

// A simulated machine must not use the real machine's folder, and needs no folder.
export function openStore({ stateDir }: Config, topology: Topology): Store {
  if (!topology.isSimulated) return Ledger.open(stateDir ?? defaultStateDir());
  if (stateDir === undefined || stateDir === null) return new MemoryStore();
  if (scopeOf(stateDir) !== 'machine') return Ledger.open(stateDir);
  throw new NumalignError(
    'ERR_SIMULATED_MACHINE',
    `a simulated machine cannot use ${stateDir}, which belongs to the real one: set another stateDir, or none`,
    { value: stateDir, valid: 'another folder' },
  );
}

export function hostOf(
  config: Config,
  topology: Topology,
  ledger: Store,
  resources: Host['resources'],
): Host {
  const { lockTimeoutMs, enforcement } = config;
  const enforcer = topology.isSimulated
    ? noEnforcer()
    : enforcerOf(() => host.topology, ledger, config.settings.cgroupRoot);
  const host: Host = Object.assign(readOnlyHostOf(topology, ledger, resources), {
    ledger,
    enforcer,
    enforcement,
    lockTimeoutMs,
  });
  return host;
}

/** The host of a view, which changes nothing. */
export function readOnlyHostOf(
  topology: Topology,
  ledger: StateSource,
  resources: Host['resources'],
): ReadOnlyHost {
  const quieter: Quieter = topology.isSimulated ? NO_QUIETER : quieterOf(() => host.topology);
  const host: ReadOnlyHost = {
    managerId: newManagerId(),
    topology,
    ledger,
    resources,
    quieter,
    providers: new HintProviders(),
  };
  return host;
}

/** The devices in the options. @throws ERR_INVALID_OPTION */
export function deviceResources({ devices }: Config, topology: Topology): Map<string, DeviceResource> {
  return new Map(
    Object.entries(devices).map(([name, selection]) => [
      name,
      { name, devices: parseDevices(selection, topology, name), preferredAllocation: undefined },
    ]),
  );
}
