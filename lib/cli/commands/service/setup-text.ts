// What `numalign setup` has done, or would do, in lines. Pure.
import { shellWord } from '../../../base/text/shell-word.js';
import type { FileAction } from './machine-files.js';
import type { SetupPlan } from './setup-plan.js';

export const shellWords = (words: readonly string[]) => words.map(shellWord).join(' ');

const DONE: Readonly<Record<FileAction, string>> = {
  write: 'made',
  replace: 'replaced',
  unchanged: 'unchanged',
  remove: 'removed',
  kept: 'left, for it was edited:',
  absent: 'not there:',
};

const folderLines = ({ folder }: SetupPlan, removal: string) => {
  if (folder === undefined) return [];
  return [folder.hasState ? `chown root:root ${folder.path}` : `${removal} ${folder.path}`];
};

export function done(plan: SetupPlan): string[] {
  const { files, before, after } = plan;
  return [
    ...before.map((command) => `ran ${shellWords(command)}`),
    ...files.map(({ path, action }) => `${DONE[action]} ${path}`),
    ...after.map((command) => `ran ${shellWords(command)}`),
    ...folderLines(plan, 'removed'),
  ];
}

const INTENDED: Readonly<Record<FileAction, string>> = {
  write: 'make',
  replace: 'replace',
  unchanged: 'leave as it is',
  remove: 'remove',
  kept: 'leave, for it was edited:',
  absent: 'not there:',
};

export function intended(plan: SetupPlan): string[] {
  const { files, before, after } = plan;
  const indented = (text: string) =>
    text
      .trimEnd()
      .split('\n')
      .map((line) => `    ${line}`.trimEnd());
  return [
    ...before.map((command) => `run ${shellWords(command)}`),
    ...files.flatMap(({ path, action, text }) => [
      `${INTENDED[action]} ${path}`,
      ...(text !== undefined && ['write', 'replace'].includes(action) ? indented(text) : []),
    ]),
    ...after.map((command) => `run ${shellWords(command)}`),
    ...folderLines(plan, 'remove'),
  ];
}
