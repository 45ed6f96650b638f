// ProgramVariables: what the environment of a program says of the grant that numalign/preload is to
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

// PM2 starts a worker of its cluster mode with all variables of the app as JSON in this one, and sets
// them when the preload has run already.
const OF_PM2 = 'pm2_env';

function variablesOfPm2(): Variables {
  try {
    const variables: unknown = JSON.parse(process.env[OF_PM2] ?? '{}');
    return typeof variables === 'object' && variables !== null ? (variables as Variables) : {};
  } catch {
    // Somebody else's variable of that name.
    return {};
  }
}

/** The value of a variable of this program; undefined where it is not set. */
export function variable(name: string): string | undefined {
  const value = variablesOfPm2()[name] ?? process.env[name];
  return value === undefined || typeof value === 'string' ? value : JSON.stringify(value);
}

/**
 * A request whose `name` has the values of variables for `${VARIABLE}`, so that several processes of
 * one environment, such as the instances of an app, have a name each.
 * @throws ERR_INVALID_ARGUMENT a variable that is not set
 */
export function withName<T extends object>(request: T): T {
  if (!('name' in request) || typeof request.name !== 'string') return request;
  const { name } = request;
  return { ...request, name: name.replace(/\$\{(\w+)\}/g, (_, each: string) => valueFor(each, name)) };
}

function valueFor(name: string, text: string): string {
  const value = variable(name);
  if (value !== undefined) return value;
  throw new NumalignError('ERR_INVALID_ARGUMENT', `name: '${text}' names a variable that is not set`, {
    value: name,
    valid: 'a variable of the environment',
  });
}
