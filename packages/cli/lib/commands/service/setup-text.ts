// The lines that `numalign setup` prints about what it has done or would do. Pure.
import { shellWord } from 'numalign/tools';
import type { FileAction } from './machine-files.js';
import type { SetupPlan } from './setup-plan.js';
import { holderOf, type RemovedParts } from './state-removal.js';

export const shellWords = (words: readonly string[]) => words.map(shellWord).join(' ');

const DONE: Readonly<Record<FileAction, string>> = {
  write: 'made',
  replace: 'replaced',
  unchanged: 'unchanged',
  remove: 'removed',
  kept: 'kept, because it was edited:',
  needed: 'kept for the group and the folder:',
  absent: 'missing:',
};

const folderLines = ({ folder }: SetupPlan, removal: string) => {
  if (folder === undefined) return [];
  return [folder.hasState ? `chown root:root ${folder.path}` : `${removal} ${folder.path}`];
};

const STATE_WORDS = {
  done: { grant: 'released grant', setting: 'put back', rest: 'removed' },
  planned: { grant: 'release grant', setting: 'put back', rest: 'remove' },
};

const stateLines = (parts: RemovedParts | undefined, when: keyof typeof STATE_WORDS) => {
  if (parts === undefined) return [];
  const words = STATE_WORDS[when];
  return [
    ...parts.grants.map((grant) => `${words.grant} ${holderOf(grant)}`),
    ...parts.settings.map(({ path, original }) => `${words.setting} ${path} to ${JSON.stringify(original)}`),
    ...parts.cgroups.map((path) => `${words.rest} the cgroup ${path}`),
    ...(parts.folder === null ? [] : [`${words.rest} ${parts.folder}`]),
  ];
};

/** `parts`: what was removed of a state. */
export function resultLines(plan: SetupPlan, parts?: RemovedParts): string[] {
  const { files, before, after } = plan;
  return [
    ...before.map((command) => `ran ${shellWords(command)}`),
    ...stateLines(parts, 'done'),
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
  needed: 'keep for the group and the folder:',
  absent: 'missing:',
};

export function dryRunLines(plan: SetupPlan, parts?: RemovedParts): string[] {
  const { files, before, after } = plan;
  const indent = (text: string) =>
    text
      .trimEnd()
      .split('\n')
      .map((line) => `    ${line}`.trimEnd());
  return [
    ...before.map((command) => `run ${shellWords(command)}`),
    ...stateLines(parts, 'planned'),
    ...files.flatMap(({ path, action, text }) => [
      `${DRY_RUN[action]} ${path}`,
      ...(text !== undefined && ['write', 'replace'].includes(action) ? indent(text) : []),
    ]),
    ...after.map((command) => `run ${shellWords(command)}`),
    ...folderLines(plan, 'remove'),
  ];
}
