// ContainerPolicy: what an operator has decided for containers. It may change between two of them.
import type { AdmitOptions, CpuSet } from 'numalign';
import type { RequestPlacementOptions } from 'numalign/tools';
import type { ContainerRequest } from './container-request.js';
import type { Rule } from './rules.js';

export interface ContainerPolicy {
  /** Options of each request; those left out are the manager's. */
  readonly placement: RequestPlacementOptions;
  /** The first that matches a container counts. */
  readonly rules: readonly Rule[];
}

/** As the manager was opened. */
export const NO_POLICY: ContainerPolicy = { placement: {}, rules: [] };

/** The options of an admission. `choice`: the CPUs to choose from, of those that a rule allows. */
export function admitOptions(
  policy: ContainerPolicy,
  { placement, within, quiet }: Pick<ContainerRequest, 'placement' | 'within' | 'quiet'>,
  choice?: CpuSet,
): AdmitOptions {
  const cpus = (choice && within?.intersection(choice)) ?? choice ?? within;
  return {
    // The runtime writes the cpusets of containers, and makes others leave.
    ...{ owner: 'persistent', enforcement: 'members', ...policy.placement, ...placement },
    ...(quiet && { quiet: quiet.quiet, require: { quiet: quiet.required } }),
    ...(cpus && { within: cpus }),
  };
}
