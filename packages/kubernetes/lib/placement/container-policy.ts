// ContainerPolicy: what an operator has decided for containers. It may change between two of them.
import type { RequestPlacementOptions } from 'numalign/tools';
import type { Rule } from './rules.js';

export interface ContainerPolicy {
  /** Options of each request; those left out are the manager's. */
  readonly placement: RequestPlacementOptions;
  /** The first that matches a container counts. */
  readonly rules: readonly Rule[];
}

/** As the manager was opened. */
export const NO_POLICY: ContainerPolicy = { placement: {}, rules: [] };
