// ContainerPolicy: what an operator has decided for containers. It may change between two of them.
import type { RequestPlacementOptions } from 'numalign/tools';

export interface ContainerPolicy {
  /** Options of each request; those left out are the manager's. */
  readonly placement: RequestPlacementOptions;
}

/** As the manager was opened. */
export const NO_POLICY: ContainerPolicy = { placement: {} };
