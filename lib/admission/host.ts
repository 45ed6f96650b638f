// Host: where admission happens.
import type { EnforcementRequest } from '../account/levels.js';
import type { DeviceResources } from '../decision/devices/device-resources.js';
import type { HintProviders } from '../decision/hints/hint-providers.js';
import type { Enforcer } from '../enforcement/enforcer.js';
import type { Topology } from '../machine/topology.js';
import type { Quieter } from '../quiet/quieter.js';
import type { StateSource, Store } from '../state/store.js';

/** A machine, and what can be read of its state. */
export interface ReadOnlyHost {
  /** Identifies the manager on the diagnostics channels. */
  readonly managerId: number;
  /** Replaced when CPUs appear that it lacks, see {@link refreshTopology}. */
  topology: Topology;
  readonly ledger: StateSource;
  readonly resources: DeviceResources;
  readonly providers: HintProviders;
  readonly quieter: Quieter;
}

/** A machine, its state, and what enforces grants in the kernel. */
export interface Host extends ReadOnlyHost {
  readonly ledger: Store;
  readonly enforcer: Enforcer;
  /** The enforcement of requests that choose none. */
  readonly enforcement: EnforcementRequest;
  readonly lockTimeoutMs: number;
}
