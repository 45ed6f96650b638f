// The lines that `numalign setup` prints about what it has done or would do. Pure.
import { shellWord } from 'numalign/tools';
import type { FileAction } from './machine-files.js';
import type { SetupPlan } from './setup-plan.js';

export const shellWords = (words: readonly string[]) => words.map(shellWord).join(' ');

const DONE: Readonly<Record<FileAction, string>> = {
  write: 'made',
  replace: 'replaced',
  unchanged: 'unchanged',
  remove: 'removed',
  kept: 'kept, because it was edited:',
  absent: 'missing:',
};

const folderLines = ({ folder }: SetupPlan, removal: string) => {
  if (folder === undefined) return [];
  return [folder.hasState ? `chown root:root ${folder.path}` : `${removal} ${folder.path}`];
};

export function resultLines(plan: SetupPlan): string[] {
  const { files, before, after } = plan;
  return [
    ...before.map((command) => `ran ${shellWords(command)}`),
    ...files.map(({ path, action }) => `${DONE[action]} ${path}`),
    ...after.map((command) => `ran ${shellWords(command)}`),
    ...folderLines(plan, 'removed'),
  ];
}

const DRY_RUN: Readonly<Record<FileAction, string>> = {
  write: 'make',
  replace: 'replace',
  unchanged: 'leave as it is',
  remove: 'remove',
  kept: 'keep, because it was edited:',
  absent: 'missing:',
};

export function dryRunLines(plan: SetupPlan): string[] {
  const { files, before, after } = plan;
  const indent = (text: string) =>
    text
      .trimEnd()
      .split('\n')
      .map((line) => `    ${line}`.trimEnd());
  return [
    ...before.map((command) => `run ${shellWords(command)}`),
    ...files.flatMap(({ path, action, text }) => [
      `${DRY_RUN[action]} ${path}`,
      ...(text !== undefined && ['write', 'replace'].includes(action) ? indent(text) : []),
    ]),
    ...after.map((command) => `run ${shellWords(command)}`),
    ...folderLines(plan, 'remove'),
  ];
}
