// The types that parts of the runner share: a recorded case, the result of its replay, and the
// means of a replay.
import type * as numalign from '../support/package.js';

/**
 * The package under test, as its entry exports it. The runner gets it handed in and imports none of
 * it.
 */
export type Numalign = Omit<typeof numalign, 'openManager'> & {
  openManager(options?: numalign.ManagerOptions): Promise<numalign.Manager>;
};

/** One line of a file of cases. Fields by kind: see vectors/README.md. */
export interface Case {
  readonly id: string;
  readonly [field: string]: unknown;
}

/** The kubelet that recorded a case: its id says so, for those of 1.32 say nothing. */
export const versionOf = ({
  id,
}: Pick<Case, 'id'>): NonNullable<numalign.ManagerOptions['kubeletVersion']> =>
  /^[a-z]+136-/.test(id) ? 'v1.36' : 'v1.32';

/**
 * How the replay of one case came out. `letter` is the divergence it counts under
 * (docs/differences.md).
 */
export type Result =
  | { readonly outcome: 'passed' }
  | { readonly outcome: 'diverged'; readonly letter: string }
  | { readonly outcome: 'failed'; readonly detail: { readonly expected: string; readonly got: string } };

/** A machine by name: as recorded, and as the package sees it. */
export interface Machine {
  readonly recorded: numalign.MachineJson;
  readonly topology: numalign.Topology;
}

export interface Context {
  /** A machine as it is recorded. */
  described(name: string): numalign.MachineJson;
  readonly numalign: Numalign;
  /**
   * A machine of the topologies file beside the cases. Rejects for an unknown name, with InputError
   * where there is no such file.
   */
  machine(name: string): Promise<Machine>;
}

/** One kind of cases. */
export interface Kind {
  readonly name: string;
  /** Whether the fields are those of this kind. No case is of two kinds. */
  matches(vector: Case): boolean;
  run(vector: Case, context: Context): Result | Promise<Result>;
}

export const passed: Result = { outcome: 'passed' };

export function diverged(letter: string): Result {
  return { outcome: 'diverged', letter };
}

export function failed(expected: string, got: string): Result {
  return { outcome: 'failed', detail: { expected, got } };
}

/** An error as a failure shows it, with the code if it has one. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return `a thrown ${String(error)}`;
  const code = 'code' in error ? ` ${String(error.code)}` : '';
  return `${error.name}${code} (${error.message})`;
}

/** The outcome of an action: its value, or its error. */
export type Attempt<Value> = { readonly value: Value } | { readonly error: unknown };

export function attempt<Value>(action: () => Value): Attempt<Value> {
  try {
    return { value: action() };
  } catch (error) {
    return { error };
  }
}

/**
 * Passed if every field of `got` equals the case's; a field that the case omits is not compared.
 */
export function compareFields(vector: Case, got: Readonly<Record<string, unknown>>): Result {
  const fields = Object.keys(got).filter((field) => vector[field] !== undefined);
  if (fields.length === 0) return failed('a recorded answer', 'a case without one');
  const different = fields.filter((field) => JSON.stringify(vector[field]) !== JSON.stringify(got[field]));
  if (different.length === 0) return passed;
  const show = (from: Readonly<Record<string, unknown>>) =>
    different.map((field) => `${field} ${JSON.stringify(from[field])}`).join(', ');
  return failed(show(vector), show(got));
}

/**
 * For a recorded error: any error that the package throws on purpose is the same answer, anything
 * else is not.
 */
export function compareError(recorded: unknown, answer: Attempt<unknown>, { numalign }: Context): Result {
  if ('error' in answer && answer.error instanceof numalign.NumalignError) return passed;
  const got = 'error' in answer ? describeError(answer.error) : JSON.stringify(answer.value);
  return failed(`the error "${String(recorded)}"`, got);
}
