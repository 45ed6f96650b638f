// Site: where admission happens.
import type { EnforcementRequest } from '../account/levels.js';
import type { DeviceResources } from '../decision/devices/device-resources.js';
import type { HintProviders } from '../decision/hints/hint-providers.js';
import type { Enforcer } from '../enforcement/enforcer.js';
import type { Topology } from '../machine/topology.js';
import type { Quieter } from '../quiet/quieter.js';
import type { StateSource, Store } from '../state/store.js';

/** A machine, and what can be read of its state. */
export interface ReadOnlySite {
  /** Whose messages they are on the diagnostics channels. */
  readonly managerId: number;
  /** Replaced where CPUs have come that it does not have; see {@link refreshTopology}. */
  topology: Topology;
  readonly ledger: StateSource;
  readonly resources: DeviceResources;
  readonly providers: HintProviders;
  readonly quieter: Quieter;
}

/** Where admission happens: a machine, its state, and how the kernel is told. */
export interface Site extends ReadOnlySite {
  readonly ledger: Store;
  readonly enforcer: Enforcer;
  /** Of requests that do not say otherwise. */
  readonly enforcement: EnforcementRequest;
  readonly lockTimeoutMs: number;
}
