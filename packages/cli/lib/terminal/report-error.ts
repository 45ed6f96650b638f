// Prints errors as a few lines for people, or as JSON. It does not load the addon, which may be
// missing.
import { CommanderError } from 'commander';
import { NumalignError } from 'numalign';
import type { Explanation } from 'numalign/diagnostics';
import { isNumalignError } from 'numalign/tools';
import { printToStderr } from './output.js';
import { jsonLine, printable } from './text.js';

const FAILURE = 1;
const USAGE = 2;

/** What is wrong in a file, and where. */
export interface PlacedFinding {
  readonly code: string;
  readonly message: string;
  /** Such as `spec.containers[0].name`. */
  readonly field: string;
  readonly line: number;
  readonly column: number;
}

/** All that is wrong in files: a line each. */
export class FindingsError extends Error {
  readonly findings: readonly PlacedFinding[];

  constructor(findings: readonly PlacedFinding[]) {
    super(findings.map(({ message }) => message).join('\n'));
    this.findings = findings;
  }
}

/** The lines for an error. */
export function errorText(error: unknown, debug = false): string {
  if (error instanceof FindingsError)
    return error.findings.map(({ code, message }) => `numalign: ${printable(message)} [${code}]\n`).join('');
  const message = error instanceof Error ? error.message : String(error);
  const code = error instanceof NumalignError ? ` [${error.code}]` : '';
  const lines = [`numalign: ${messageLines(error, message).join('\n')}${code}`];
  if (isNumalignError(error, 'ERR_STATE_FOLDER')) {
    // An ordinary user cannot repair the folder.
    lines.push(
      'numalign: use --state-dir DIR, a folder of your own; only programs that use the same folder know its grants',
    );
  }
  // Only commands that make a request have the option; `share` does not.
  if (
    error instanceof NumalignError &&
    error.code === 'ERR_MEMBER_UNMOVABLE' &&
    String(error.details.valid).includes('unmovableMembers')
  ) {
    lines.push(
      'numalign: --unmovable-members report grants all the same; that process may then run on these CPUs',
    );
  }
  if (debug && error instanceof Error) {
    lines.push(error.stack ?? '');
    if (error.cause !== undefined) lines.push(`cause: ${String(error.cause)}`);
  } else if (!(error instanceof NumalignError)) {
    lines.push(
      'numalign: this is not an error that numalign knows; NUMALIGN_DEBUG=1 shows where it happened',
    );
  }
  return `${lines.join('\n')}\n`;
}

/** What explains a rejection, which another error may quote. */
export function explanationOf(error: unknown): Explanation | undefined {
  if (!(error instanceof NumalignError) || !('explanation' in error.details)) return undefined;
  return error.details.explanation;
}

// Splits a rejection's one-line message into the lines of its explanation. Any other message
// becomes one line: its line feeds may come from a name.
function messageLines(error: unknown, message: string): string[] {
  const explanation = explanationOf(error);
  if (!explanation) return [printable(message.replace(/\s*\n\s*/g, ' '))];
  const rest = explanation.text.split('\n').slice(1);
  const tail = rest.map((line) => `; ${line.trim()}`).join('');
  const isInOne = rest.length > 0 && message.endsWith(tail);
  return isInOne
    ? [message.slice(0, -tail.length), ...rest].map(printable)
    : message.split('\n').map(printable);
}

function codeAndDetails(error: unknown): { code: string | null; details: object } {
  if (error instanceof FindingsError)
    return { code: error.findings[0]!.code, details: { findings: error.findings } };
  return error instanceof NumalignError ? error : { code: null, details: {} };
}

/** The error as a line of JSON. The code is null for an error that is not numalign's. */
export function errorJson(error: unknown, debug = false): string {
  const { code, details } = codeAndDetails(error);
  const message = error instanceof Error ? error.message : String(error);
  const stack = debug && error instanceof Error ? { stack: error.stack } : {};
  const plain = (_: string, value: unknown) => {
    if (typeof value === 'bigint') return String(value);
    return value instanceof Error ? value.message : value;
  };
  const line = (facts: object) => jsonLine({ error: { code, message, details: facts, ...stack } }, plain);
  try {
    return line(details);
  } catch {
    // JSON cannot represent some values, such as circular references.
    return line({});
  }
}

/**
 * Prints the error to stderr. Returns the exit code: 2 for a wrong command line, 0 for --help and
 * --version, else 1.
 */
export function reportError(error: unknown, format: 'text' | 'json' = 'text'): number {
  // Commander has printed its message or the help.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE;
  const isDebug = process.env.NUMALIGN_DEBUG === '1';
  printToStderr((format === 'json' ? errorJson : errorText)(error, isDebug));
  return FAILURE;
}
