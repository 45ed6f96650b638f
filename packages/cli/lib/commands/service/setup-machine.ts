// Carries out `numalign setup` on a machine.
import { spawnSync } from 'node:child_process';
import { chownSync, rmdirSync, statSync } from 'node:fs';
import { NumalignError } from 'numalign';
import { BOOT_UNIT } from '../../systemd/unit-name.js';
import { programPath } from '../../terminal/installed.js';
import { print, tell } from '../../terminal/output.js';
import { formatJson } from '../../terminal/text.js';
import { change, checkChanges, type PlannedFile } from './machine-files.js';
import { removalPlan, type SetupPlan, setupPlan } from './setup-plan.js';
import { dryRunLines, resultLines, shellWords } from './setup-text.js';

export interface SetupFlags {
  remove?: boolean;
  dryRun?: boolean;
  root?: string;
  output: 'text' | 'json';
}

const isFolder = (path: string) => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

/** @param settings the options of `numalign configure` */
export function setup(
  { remove = false, dryRun = false, root = '/', output }: SetupFlags,
  settings: readonly string[],
): void {
  if (!isFolder(root)) {
    const valid = 'the folder of a system';
    throw new NumalignError('ERR_INVALID_ARGUMENT', `--root ${root} is not a folder`, { value: root, valid });
  }
  const plan = remove ? removalPlan(root) : setupPlan(root, settings);
  if (!dryRun) carryOut(plan);
  // The settings of the command line do not apply: the boot unit stays as a user has edited it.
  if (settings.length > 0 && plan.files.some(isEditedBootUnit)) process.exitCode = 1;
  if (output === 'json') {
    const { files, before, after, notes } = plan;
    print(formatJson({ root, dryRun, commands: [...before, ...after], notes, files }));
    return;
  }
  print(`${(dryRun ? dryRunLines(plan) : resultLines(plan)).join('\n')}\n`);
  plan.notes.forEach(tell);
}

const isEditedBootUnit = ({ path, action }: PlannedFile) => action === 'kept' && path.endsWith(BOOT_UNIT);

function carryOut(plan: SetupPlan): void {
  const { files, before, after, makes, folder } = plan;
  checkPrograms([...before, ...after]);
  checkChanges(files);
  before.forEach(run);
  change(files);
  after.forEach(run);
  // If something else is at this path, systemd-tmpfiles leaves it and reports success.
  if (makes !== undefined && !isFolder(makes)) {
    throw new NumalignError(
      'ERR_COMMAND_FAILED',
      `systemd-tmpfiles has not made ${makes}: something else is there`,
      {
        value: makes,
        valid: 'a folder, or nothing there',
      },
    );
  }
  // The group is removed: a later group with its id must not get access.
  if (folder?.hasState) chownSync(folder.path, 0, 0);
  else if (folder) rmdirSync(folder.path);
}

function checkPrograms(commands: SetupPlan['after']): void {
  const missing = commands.map(([name]) => name!).filter((name) => !programPath(name).startsWith('/'));
  if (missing.length === 0) return;
  const text = `${[...new Set(missing)].join(', ')} cannot be found: this needs systemd; --dry-run shows what setup would do`;
  throw new NumalignError('ERR_OPTIONAL_DEPENDENCY', text, {
    value: missing[0],
    valid: 'a system with systemd',
  });
}

/** @throws ERR_COMMAND_FAILED */
function run(command: readonly string[]): void {
  const [name, ...words] = command;
  const { status, signal, stderr, error } = spawnSync(name!, words, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  if (status === 0) return;
  const why = error?.message ?? (stderr.trim() || `it ended with ${signal ?? status}`);
  throw new NumalignError(
    'ERR_COMMAND_FAILED',
    `${shellWords(command)}: ${why}; correct this, then run setup again`,
    {
      value: command,
      exitCode: status,
      valid: 'a command that ends with 0',
    },
  );
}
