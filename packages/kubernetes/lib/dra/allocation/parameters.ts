// Parameters: how a claim wants its CPUs and memory, as its opaque configuration says. Pure.
import type { AdmitOptions } from 'numalign';
import {
  AIMED_LEVELS,
  BY_CGROUPS,
  checkAcquireOptions,
  checkOptions,
  ENFORCEMENT_LEVELS,
  invalidOption,
  isAtLeast,
  type RequestPlacementOptions,
} from 'numalign/tools';
import { NodeError } from '../../base/errors.js';
import { RULE_OPTIONS } from '../../placement/rules.js';
import { baseRequest, type ClaimConfig } from './allocated-claim.js';

export const PARAMETERS_KIND = 'ClaimParameters';

/** The versions of {@link PARAMETERS_KIND}, the newest last. */
export const parametersVersions = (driver: string): readonly string[] => [`${driver}/v1alpha1`];

export interface ClaimParameters
  extends RequestPlacementOptions,
    Pick<AdmitOptions, 'quiet' | 'require' | 'enforcement'> {}

// Containers are in cgroups of the runtime, and a partition would take the CPUs from these.
const LEVELS = ENFORCEMENT_LEVELS.filter((level) => isAtLeast(BY_CGROUPS, level));

const FIELDS = [...RULE_OPTIONS, 'quiet', 'require'];

// Devices say where CPUs and memory are.
const isOfDevices = (key: string) =>
  ['within', 'cpu', 'memory'].includes(key) ? 'capacity of the request? Devices say where it is' : undefined;

/**
 * The parameters of a request, of all configurations that are for it: members of later ones replace
 * those of earlier ones.
 * @throws ERR_CLAIM_PARAMETERS, which names the value and what is valid
 */
export function parametersOf(
  driver: string,
  configs: readonly ClaimConfig[],
  request: string,
): ClaimParameters {
  const names = [request, baseRequest(request)];
  const all = configs
    .filter(({ requests }) => requests.length === 0 || requests.some((name) => names.includes(name)))
    .map(({ parameters }) => checked(() => parsed(driver, parameters), parameters));
  const merged: ClaimParameters = Object.assign({}, ...all);
  // Each may be right, and both together wrong.
  return all.length > 1 ? checked(() => withAim(merged), merged) : merged;
}

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

function parsed(driver: string, value: unknown): ClaimParameters {
  const { apiVersion, kind, ...rest } = checkOptions(
    value,
    ['apiVersion', 'kind', ...FIELDS],
    'parameters',
    isOfDevices,
  );
  const versions = parametersVersions(driver);
  if (!versions.includes(apiVersion as string))
    invalidOption('apiVersion', apiVersion, `one of ${versions.join(', ')}`);
  if (kind !== PARAMETERS_KIND) invalidOption('kind', kind, PARAMETERS_KIND);
  return withAim(rest as ClaimParameters);
}

/** What enforcement is aimed at follows from what is required. */
function withAim({ enforcement: _, ...parameters }: ClaimParameters): ClaimParameters {
  const { require } = parameters;
  const level = typeof require === 'object' ? require.enforcement : require;
  if (level !== undefined && !LEVELS.includes(level))
    invalidOption('require', level, `one of ${LEVELS.join(', ')}: containers are in cgroups of the runtime`);
  checkAcquireOptions({ cpu: 1, ...parameters });
  const enforcement = AIMED_LEVELS.find((each) => each === level);
  return enforcement === undefined ? parameters : { ...parameters, enforcement };
}
