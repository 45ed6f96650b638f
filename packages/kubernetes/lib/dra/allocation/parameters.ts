// Parameters: how a claim wants its CPUs and memory, and the request that follows. Pure.
import type { Topology } from 'numalign/topology';
import { NodeError } from '../../base/errors.js';
import { type ClaimConfig, type ClaimParameters, parametersOf, requestFor } from '../devices.js';
import type { AllocatedPart } from './claim-parts.js';

/** @throws ERR_CLAIM_PARAMETERS, which names the value and what is valid */
export const claimParameters = (
  driver: string,
  configs: readonly ClaimConfig[],
  request: string,
): ClaimParameters => checked(() => parametersOf(driver, configs, request), configs);

/** @throws ERR_CLAIM_PARAMETERS, which names the value and what is valid */
export const partRequest = (part: AllocatedPart, parameters: ClaimParameters, topology: Topology) =>
  checked(() => requestFor(part, parameters, topology), parameters);

function checked<T>(parse: () => T, value: unknown): T {
  try {
    return parse();
  } catch (cause) {
    const { message, details } = cause as Error & { details?: { value?: unknown; valid?: unknown } };
    throw new NodeError('ERR_CLAIM_PARAMETERS', `the parameters of the claim: ${message}`, {
      value: details?.value ?? value,
      valid: details?.valid,
      cause,
    });
  }
}
