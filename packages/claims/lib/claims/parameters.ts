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
  PLACEMENT_OPTIONS,
  type RequestPlacementOptions,
} from 'numalign/tools';

export const PARAMETERS_KIND = 'ClaimParameters';

/** The versions of {@link PARAMETERS_KIND}, the newest last. */
export const parametersVersions = (driver: string): readonly string[] => [`${driver}/v1alpha1`];

/** Opaque parameters, and the requests that they are for; none: all of the claim. */
export interface ClaimConfig {
  readonly requests: readonly string[];
  readonly value: unknown;
}

export interface ClaimParameters
  extends RequestPlacementOptions,
    Pick<AdmitOptions, 'quiet' | 'require' | 'enforcement' | 'mixed' | 'movable'> {}

/** Options of placement that containers and claims may have, unlike whole managers. */
export const REQUEST_OPTIONS = (Object.keys(PLACEMENT_OPTIONS) as (keyof typeof PLACEMENT_OPTIONS)[]).filter(
  (name) =>
    PLACEMENT_OPTIONS[name].by !== 'manager' &&
    !['scope', 'initContainerLookahead', 'ignoreMask'].includes(name),
);

// Containers are in cgroups of the runtime, and a partition would take the CPUs from these.
const LEVELS = ENFORCEMENT_LEVELS.filter((level) => isAtLeast(BY_CGROUPS, level));

const FIELDS = [...REQUEST_OPTIONS, 'quiet', 'require', 'mixed', 'movable'];

// Devices say where CPUs and memory are.
const isOfDevices = (key: string) =>
  ['within', 'cpu', 'memory'].includes(key) ? 'capacity of the request? Devices say where it is' : undefined;

/** The name of a request without that of its alternative, as containers name it. */
export const baseRequest = (request: string): string => request.split('/')[0]!;

/**
 * The parameters of a request, of all configurations that are for it: members of later ones replace
 * those of earlier ones.
 * @throws ERR_INVALID_OPTION
 */
export function parametersOf(
  driver: string,
  configs: readonly ClaimConfig[],
  request: string,
): ClaimParameters {
  const names = [request, baseRequest(request)];
  const all = configs
    .filter(({ requests }) => requests.length === 0 || requests.some((name) => names.includes(name)))
    .map(({ value }) => parsed(driver, value));
  const merged: ClaimParameters = Object.assign({}, ...all);
  // Each may be right, and both together wrong.
  return all.length > 1 ? withAim(merged) : merged;
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
