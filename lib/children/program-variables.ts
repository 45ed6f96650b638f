// ProgramVariables: the variables of a program that describe the grant for numalign/preload to
// acquire.
import { NumalignError } from '../base/errors.js';

/**
 * `node --import numalign/preload` reads these variables. PM2's cluster mode passes them in `pm2_env`.
 */
export interface PreloadVariables {
  /**
   * The options of {@link Manager.acquire} as JSON. Required, unless NUMALIGN_GRANT is set.
   * `${VARIABLE}` in the `name` stands for the value of that variable.
   */
  readonly NUMALIGN_ACQUIRE: string;
  /** The options of {@link openManager} as JSON. */
  readonly NUMALIGN_MANAGER?: string;
  /** The options of {@link Grant.placeThreads} as JSON. */
  readonly NUMALIGN_THREADS?: string;
}

type Variables = Readonly<Record<string, unknown>>;

// PM2's cluster mode starts a worker with all variables of the app as JSON in this variable, and
// sets them only after the preload has run.
const PM2_VARIABLE = 'pm2_env';

function variablesOfPm2(): Variables {
  try {
    const variables: unknown = JSON.parse(process.env[PM2_VARIABLE] ?? '{}');
    return typeof variables === 'object' && variables !== null ? (variables as Variables) : {};
  } catch {
    // Another program's variable with that name.
    return {};
  }
}

/** The value of a variable of this program; undefined if it is not set. */
export function variable(name: string): string | undefined {
  const value = variablesOfPm2()[name] ?? process.env[name];
  return value === undefined || typeof value === 'string' ? value : JSON.stringify(value);
}

/**
 * A request whose `name` has variables in place of `${VARIABLE}`. So processes with the same
 * request, such as the instances of an app, can have different names.
 * @throws ERR_INVALID_ARGUMENT if a variable is not set
 */
export function withName<T extends object>(request: T): T {
  if (!('name' in request) || typeof request.name !== 'string') return request;
  const { name } = request;
  return {
    ...request,
    name: name.replace(/\$\{(\w+)\}/g, (_, variableName: string) => valueFor(variableName, name)),
  };
}

function valueFor(name: string, text: string): string {
  const value = variable(name);
  if (value !== undefined) return value;
  throw new NumalignError('ERR_INVALID_ARGUMENT', `name: '${text}' names a variable that is not set`, {
    value: name,
    valid: 'a variable of the environment',
  });
}
