// Carries out `numalign setup` on a machine.
import { spawnSync } from 'node:child_process';
import { chownSync, rmdirSync, rmSync, statSync } from 'node:fs';
import { MACHINE_STATE_DIR, NumalignError } from 'numalign';
import { BOOT_UNIT } from '../../systemd/unit-name.js';
import { programPath } from '../../terminal/installed.js';
import { print, tell } from '../../terminal/output.js';
import { formatJson } from '../../terminal/text.js';
import { change, checkChanges, type PlannedFile } from './machine-files.js';
import { removalPlan, type SetupPlan, setupPlan } from './setup-plan.js';
import { dryRunLines, resultLines, shellWords } from './setup-text.js';
import { canEnd, livingError, type RemovedParts, removeState, stateToRemove } from './state-removal.js';

export interface SetupFlags {
  remove?: boolean;
  force?: boolean;
  dryRun?: boolean;
  root?: string;
  output: 'text' | 'json';
}

const isFolder = (path: string) => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

/** @param settings the options of `numalign configure` */
export async function setup(flags: SetupFlags, settings: readonly string[]): Promise<void> {
  const { dryRun = false, root = '/', output } = flags;
  if (!isFolder(root)) {
    const valid = 'the folder of a system';
    throw new NumalignError('ERR_INVALID_ARGUMENT', `--root ${root} is not a folder`, { value: root, valid });
  }
  const { plan, parts } = flags.remove ? await removal(flags) : install(flags, settings);
  // The settings of the command line do not apply: the boot unit stays as a user has edited it.
  if (settings.length > 0 && plan.files.some(isEditedBootUnit)) process.exitCode = 1;
  if (output === 'json') {
    const { files, before, after, notes } = plan;
    const commands = [...before, ...after];
    print(
      formatJson({ root, dryRun, commands, notes, files, ...(flags.remove && { state: parts ?? null }) }),
    );
    return;
  }
  print(`${(dryRun ? dryRunLines(plan, parts) : resultLines(plan, parts)).join('\n')}\n`);
  plan.notes.forEach(tell);
}

/** What was done, or would be. */
interface Outcome {
  readonly plan: SetupPlan;
  /** What a running system had of the state. */
  readonly parts?: RemovedParts | undefined;
}

function install({ dryRun, root = '/' }: SetupFlags, settings: readonly string[]): Outcome {
  const plan = setupPlan(root, settings);
  if (!dryRun) {
    check(plan);
    carryOut(plan);
  }
  return { plan };
}

async function removal({ dryRun, force = false, root = '/' }: SetupFlags): Promise<Outcome> {
  const { parts, unknown } = await stateToRemove(root, force);
  const refusal = parts && livingError(parts);
  if (dryRun) {
    const plan = removalPlan(root, parts && 'removed');
    const ending = parts && { ...parts, grants: parts.grants.filter(canEnd) };
    return { plan: withNotes(plan, force ? unknown : refusal?.message), parts: ending };
  }
  if (refusal && !force) throw refusal;
  const { before, ...first } = removalPlan(root);
  check({ ...first, before });
  // Services of numalign must not have the state open.
  before.forEach(run);
  const state = parts && (await removeState(parts));
  const rest = removalPlan(root, state && (state.isGone ? 'removed' : 'in-use'));
  carryOut({ ...rest, before: [] });
  // The CPUs of the machine as discovery keeps them.
  if (root === '/') rmSync(`${MACHINE_STATE_DIR}.machine`, { force: true, recursive: true });
  return { plan: withNotes({ ...rest, before }, unknown, ...(state?.notes ?? [])), parts: state?.removed };
}

const withNotes = (plan: SetupPlan, ...notes: readonly (string | undefined)[]): SetupPlan => ({
  ...plan,
  notes: [...notes.filter((note) => note !== undefined), ...plan.notes],
});

const isEditedBootUnit = ({ path, action }: PlannedFile) => action === 'kept' && path.endsWith(BOOT_UNIT);

function check({ files, before, after }: SetupPlan): void {
  checkPrograms([...before, ...after]);
  checkChanges(files);
}

function carryOut({ files, before, after, makes, folder }: SetupPlan): void {
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
