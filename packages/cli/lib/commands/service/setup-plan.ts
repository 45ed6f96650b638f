// SetupPlan: what `numalign setup` changes, and what it leaves. It only reads.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { MACHINE_STATE_DIR } from '../../arguments/state-dir.js';
import { AGENT_UNIT } from '../../systemd/agent-service.js';
import { uneditedBody } from '../../systemd/kept-text.js';
import { GROUP } from '../../systemd/service-unit.js';
import {
  isForeignGroup,
  type Setup,
  SLICE,
  SYSUSERS,
  settingsOf,
  setupFiles,
  TMPFILES,
  UNITS,
} from '../../systemd/setup-files.js';
import { BOOT_UNIT } from '../../systemd/unit-name.js';
import { commandWord } from '../../systemd/unit-word.js';
import { installedLauncher } from '../../terminal/installed.js';
import { type PlannedFile, planFile, planRemoval, textOf } from './machine-files.js';
import { hasGroup, hasState, membersOf } from './setup-group.js';

export interface SetupPlan {
  readonly files: readonly PlannedFile[];
  /** The commands to run before the files change, and after. */
  readonly before: readonly (readonly string[])[];
  readonly after: readonly (readonly string[])[];
  /** The state folder that the commands make; undefined if they make none. */
  readonly makes: string | undefined;
  /** The state folder to remove. With a state in it, it gets root as owner and group instead. */
  readonly folder: { readonly path: string; readonly hasState: boolean } | undefined;
  /** Messages for the user. */
  readonly notes: readonly string[];
}

/** The command lines of systemd's programs for a root. */
function programs(root: string) {
  const ofRoot = root === '/' ? [] : [`--root=${root}`];
  // Another system reads its units when it starts.
  const isRunning = root === '/' && existsSync('/run/systemd/system');
  const offline = isRunning ? [] : [`--root=${root}`];
  return {
    sysusers: ['systemd-sysusers', ...ofRoot, 'numalign.conf'],
    tmpfiles: ['systemd-tmpfiles', ...ofRoot, '--create', 'numalign.conf'],
    groupdel: ['groupdel', ...(root === '/' ? [] : ['--prefix', root]), GROUP],
    reload: isRunning ? [['systemctl', 'daemon-reload']] : [],
    systemctl: (...words: string[]) => ['systemctl', ...offline, ...words],
    isRunning,
  };
}

const below = (root: string, path: string) => join(root, path);

const bodyOf = (root: string, path: string) => uneditedBody(textOf(below(root, path)) ?? '');

function setupOf(root: string, words: readonly string[]): Setup {
  const bootUnit = textOf(below(root, `${UNITS}/${BOOT_UNIT}`));
  const sysusers = bodyOf(root, SYSUSERS);
  // The settings of an edited unit may be unreadable. That does not matter: setup keeps the file.
  const current = bootUnit === undefined ? undefined : (settingsOf(bootUnit) ?? '');
  return {
    launcher: installedLauncher(),
    settings: words.length > 0 ? words.map(commandWord).join(' ') : current,
    stateDir: MACHINE_STATE_DIR,
    hasForeignGroup: sysusers === undefined ? hasGroup(root) : isForeignGroup(sysusers),
  };
}

/** @param settings the options of `numalign configure` */
export function setupPlan(root: string, settings: readonly string[]): SetupPlan {
  const files = setupFiles(setupOf(root, settings)).map(({ path, body }) =>
    planFile({ path: below(root, path), body }),
  );
  const { sysusers, tmpfiles, reload, systemctl, isRunning } = programs(root);
  const bootUnit = files.find(({ path }) => path.endsWith(BOOT_UNIT));
  return {
    files,
    before: [],
    after: [
      sysusers,
      tmpfiles,
      ...reload,
      systemctl('enable', ...(bootUnit ? [BOOT_UNIT] : []), AGENT_UNIT),
      // Without new settings the next boot is early enough.
      ...(isRunning && bootUnit?.action !== 'unchanged' && settings.length > 0
        ? [systemctl('restart', BOOT_UNIT)]
        : []),
      // The code may have changed.
      ...(isRunning ? [systemctl('restart', AGENT_UNIT)] : []),
    ],
    makes: below(root, MACHINE_STATE_DIR),
    folder: undefined,
    notes: [],
  };
}

function groupNote(root: string): string | undefined {
  const sysusers = bodyOf(root, SYSUSERS);
  const members = membersOf(root);
  if (sysusers === undefined || members === undefined) return undefined;
  if (isForeignGroup(sysusers)) return `the group ${GROUP} was there before, and stays`;
  if (members.length > 0)
    return `the group ${GROUP} stays: ${members.join(', ')} ${members.length === 1 ? 'is' : 'are'} in it`;
  return undefined;
}

/**
 * `state`: what becomes of the folder of a running system, with its state; undefined: no state, or one
 * of a system that does not run.
 */
export function removalPlan(root: string, state?: 'removed' | 'in-use'): SetupPlan {
  const units = [AGENT_UNIT, BOOT_UNIT];
  const paths = [...[...units, SLICE].map((name) => `${UNITS}/${name}`), TMPFILES, SYSUSERS];
  // The group and the folder are made again at each boot as long as a later removal needs their files.
  const isNeeded = (path: string) => state === 'in-use' && [TMPFILES, SYSUSERS].includes(path);
  const files = paths.map((path) => planRemoval(below(root, path), isNeeded(path)));
  const isRemoved = (path: string) => files[paths.indexOf(path)]!.action === 'remove';
  const { reload, groupdel, systemctl, isRunning } = programs(root);
  const note = state === 'in-use' ? undefined : groupNote(root);
  const removesGroup = isRemoved(SYSUSERS) && hasGroup(root) && note === undefined;
  const folder = isRemoved(TMPFILES) && state === undefined ? folderOf(root) : undefined;
  return {
    files,
    before: units
      .filter((name) => isRemoved(`${UNITS}/${name}`))
      .map((name) => systemctl('disable', ...(isRunning ? ['--now'] : []), name)),
    after: [
      ...(files.some(({ action }) => action === 'remove') ? reload : []),
      ...(removesGroup ? [groupdel] : []),
    ],
    makes: undefined,
    folder: folder && (removesGroup || !folder.hasState) ? folder : undefined,
    notes: [
      ...(note === undefined ? [] : [note]),
      ...(folder?.hasState ? [`${folder.path} has a state in it, and stays until the next boot`] : []),
    ],
  };
}

function folderOf(root: string): SetupPlan['folder'] {
  const path = below(root, MACHINE_STATE_DIR);
  const isFull = hasState(path);
  return isFull === undefined ? undefined : { path, hasState: isFull };
}
