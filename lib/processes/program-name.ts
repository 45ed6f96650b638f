// The name of a program, from the words of its command line. Leaves out arguments, which may
// contain passwords. Pure.
import { basename } from 'node:path';

// Node's options that take the next word as their value.
const WITH_VALUE =
  '-r -C --require --import --loader --experimental-loader --conditions --env-file --title'.split(' ');
const takesValue = (word: string) =>
  WITH_VALUE.includes(word) || (word.startsWith('--test-') && !word.includes('='));

// Options after which the first word is not a script: -e, -p and -pe with code; - for standard
// input.
const hasNoScript = (option: string) =>
  ['-', '--eval', '--print'].includes(option) || [...option.slice(1)].every((each) => 'ep'.includes(each));

const RUN = 'numalign run -- ';
const SUPERVISE = '--supervise';

/**
 * For example `server`, `node server.mjs`, `numalign run -- server`. REQUIRES: a command line as in
 * /proc.
 */
export function programName(words: readonly string[]): string {
  // A program may overwrite its words with a title, which is then one word.
  const name = basename((words[0] ?? '').split(/\s/)[0]!);
  const at = name === 'node' || name === 'nodejs' ? scriptAt(words) : 0;
  const script = `/${words[at] ?? ''}`;
  if (!script.endsWith('/numalign') && !script.endsWith('/cli/dist/main.cjs'))
    return at === 0 ? name : `${name} ${basename(script)}`;
  const rest = words.slice(at + 1);
  const end = rest.indexOf('--');
  if (rest[0] === 'run' && end > 0) return `${RUN}${programName(rest.slice(end + 1))}`;
  return ['run', 'agent'].includes(rest[0] ?? '') ? `numalign ${rest[0]}` : 'numalign';
}

/**
 * The name of this command line's process once it owns something. `numalign run` becomes its
 * command, unless it stays as a supervisor.
 */
export function ownerName(words: readonly string[]): string {
  const name = programName(words);
  return words.slice(0, words.indexOf('--')).includes(SUPERVISE) ? name : name.replace(RUN, '');
}

// 0 if there is none.
function scriptAt(words: readonly string[]): number {
  for (let at = 1; at < words.length; at++) {
    const word = words[at]!;
    if (!word.startsWith('-')) return at;
    if (hasNoScript(word)) return 0;
    if (takesValue(word)) at++;
  }
  return 0;
}
