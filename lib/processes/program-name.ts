// The name of a program, from the words of its command line. Arguments may have passwords: they are
// not to be recorded. Pure.
import { basename } from 'node:path';

const NODE = /^node(js)?$/;
const NUMALIGN = /(^|\/)(numalign|cli\/main\.js)$/;
// Node's options that take the word after them.
const TAKES_VALUE =
  /^(-r|-C|--(require|import|loader|experimental-loader|conditions|env-file|title|test-[\w-]+))$/;
// Those after which the first word is no script: -e, -p and -pe with code; - for standard input.
const NO_SCRIPT = /^(-[ep]+|--eval|--print|-)$/;

const RUN = 'numalign run -- ';
const SUPERVISE = '--supervise';

/** `server`; `node server.mjs`; `numalign run -- server`. REQUIRES: a command line as in /proc. */
export function programName(words: readonly string[]): string {
  // Where a program has written a title over its words, the title is one of them.
  const name = basename((words[0] ?? '').split(/\s/)[0]!);
  const at = NODE.test(name) ? scriptAt(words) : 0;
  const script = words[at] ?? '';
  if (!NUMALIGN.test(script)) return at === 0 ? name : `${name} ${basename(script)}`;
  const rest = words.slice(at + 1);
  const end = rest.indexOf('--');
  if (rest[0] === 'run' && end > 0) return `${RUN}${programName(rest.slice(end + 1))}`;
  return ['run', 'agent'].includes(rest[0] ?? '') ? `numalign ${rest[0]}` : 'numalign';
}

/**
 * What the process of this command line is once it owns something: `numalign run` becomes its command,
 * unless it stays beside it.
 */
export function ownerName(words: readonly string[]): string {
  const name = programName(words);
  return words.slice(0, words.indexOf('--')).includes(SUPERVISE) ? name : name.replace(RUN, '');
}

// 0 where there is none.
function scriptAt(words: readonly string[]): number {
  for (let at = 1; at < words.length; at++) {
    const word = words[at]!;
    if (NO_SCRIPT.test(word)) return 0;
    if (!word.startsWith('-')) return at;
    if (TAKES_VALUE.test(word)) at++;
  }
  return 0;
}
