// Prints errors as a few lines for people, or as JSON. It does not load the addon, which may be
// missing.
import { CommanderError } from 'commander';
import { NumalignError } from 'numalign';
import { printToStderr } from './output.js';
import { jsonLine, printable } from './text.js';

const FAILURE = 1;
const USAGE = 2;

/** The lines for an error. */
export function errorText(error: unknown, debug = false): string {
  const { findings } = error instanceof NumalignError ? error.details : {};
  // All that is wrong in files, a line each.
  if (Array.isArray(findings))
    return findings.map(({ code, message }) => `numalign: ${printable(message)} [${code}]\n`).join('');
  const message = error instanceof Error ? error.message : String(error);
  const code = error instanceof NumalignError ? ` [${error.code}]` : '';
  const lines = [`numalign: ${messageLines(error, message).join('\n')}${code}`];
  if (error instanceof NumalignError && error.code === 'ERR_STATE_FOLDER') {
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

// Splits a rejection's one-line message into the lines of its explanation. Any other message
// becomes one line: its line feeds may come from a name.
function messageLines(error: unknown, message: string): string[] {
  const { explanation } = error instanceof NumalignError ? error.details : {};
  if (!explanation) return [printable(message.replace(/\s*\n\s*/g, ' '))];
  const rest = explanation.text.split('\n').slice(1);
  const tail = rest.map((line) => `; ${line.trim()}`).join('');
  const isInOne = rest.length > 0 && message.endsWith(tail);
  return isInOne
    ? [message.slice(0, -tail.length), ...rest].map(printable)
    : message.split('\n').map(printable);
}

/** The error as a line of JSON. The code is null for an error that is not numalign's. */
export function errorJson(error: unknown, debug = false): string {
  const { code, details } = error instanceof NumalignError ? error : { code: null, details: {} };
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
