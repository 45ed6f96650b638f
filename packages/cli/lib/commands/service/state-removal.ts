// What a state has on the machine: grants, kernel settings, cgroups and files, to show and remove.
import { chmodSync, lstatSync, readdirSync, rmdirSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { NumalignError, openManager } from 'numalign';
import type { GrantStatus, StateStatus } from 'numalign/diagnostics';
import { errorText, forgetFolder } from 'numalign/tools';
import { MACHINE_STATE_DIR } from '../../arguments/state-dir.js';
import { statusIn } from '../../arguments/view.js';
import { madeCgroups, removeCgroups } from './made-cgroups.js';
import { hasState } from './setup-group.js';

/** A setting of the kernel that numalign has changed. */
export interface ChangedSetting {
  readonly path: string;
  /** What it was. */
  readonly original: string;
}

/** What a state has on the machine. */
export interface StateParts {
  readonly folder: string;
  readonly grants: readonly Pick<GrantStatus, 'uid' | 'name' | 'alive' | 'owner'>[];
  readonly settings: readonly ChangedSetting[];
  /** Paths, the lowest first. */
  readonly cgroups: readonly string[];
}

/** `folder`: null if it stays. */
export type RemovedParts = Omit<StateParts, 'folder'> & { readonly folder: string | null };

/** What was removed, and why the rest stays. */
export interface StateRemoval {
  readonly removed: RemovedParts;
  /** Whether nothing stays. */
  readonly isGone: boolean;
  readonly notes: readonly string[];
}

async function changedSettings(stateDir: string): Promise<readonly ChangedSetting[]> {
  const { stateJournal } = await import('numalign/diagnostics');
  let found: { settings: readonly ChangedSetting[] } | null | undefined;
  for (const { kind, record } of stateJournal({ stateDir }).lines) {
    const says = kind === 'state' || (kind === 'change' && Object.hasOwn(record!, 'quiet'));
    if (says) found = record!.quiet as typeof found;
  }
  return (found?.settings ?? []).map(({ path, original }) => ({ path, original }));
}

const usersOf = ({ sharedMembers }: Pick<StateStatus, 'sharedMembers'>) =>
  sharedMembers.map((member) =>
    member.kind === 'cgroup' ? `the cgroup ${member.path}` : `process ${member.pid} (${member.command})`,
  );

/**
 * The state of a running system, if there is one. `force`: without one that cannot be read; `unknown`
 * says why.
 * @throws ERR_STATE_FOLDER, ERR_STATE_CORRUPT, ERR_STATE_VERSION
 */
export async function stateToRemove(
  root: string,
  force: boolean,
): Promise<{ readonly parts?: StateParts; readonly unknown?: string }> {
  if (root !== '/' || !hasState(MACHINE_STATE_DIR)) return {};
  try {
    return { parts: await partsOf(MACHINE_STATE_DIR) };
  } catch (error) {
    if (!force) throw error;
    return { unknown: `the state cannot be read: ${errorText(error as Error)}` };
  }
}

/** @throws as {@link stateToRemove} */
export async function partsOf(folder: string): Promise<StateParts> {
  const status = await statusIn({ stateDir: folder });
  if (status.refusal) throw status.refusal;
  return {
    folder,
    grants: status.grants.map(({ uid, name, alive, owner }) => ({ uid, name, alive, owner })),
    settings: await changedSettings(folder),
    cgroups: madeCgroups(folder),
  };
}

/** For people. */
export function holderOf({ uid, name, owner }: StateParts['grants'][number]): string {
  const title = name === uid ? uid : `${uid} (${name})`;
  if (owner.kind === 'process') return `${title} of process ${owner.pid} (${owner.command})`;
  return owner.kind === 'cgroup' ? `${title} of the cgroup ${owner.cgroup}` : `${title}, which is persistent`;
}

/** Whether a removal ends the grant: no living process owns it. */
export const canEnd = ({ alive, owner }: Pick<GrantStatus, 'alive' | 'owner'>) =>
  !alive || owner.kind !== 'process';

/** ERR_OWNER_ALIVE if a grant lives. */
export function livingError({ folder, grants }: StateParts): NumalignError | undefined {
  const living = grants.filter(({ alive }) => alive);
  if (living.length === 0) return undefined;
  const names = living.map(holderOf).join('; ');
  const message = `${folder} has grants that live: ${names}. End or release them; --force releases those that no process owns, and leaves what the others need`;
  return new NumalignError('ERR_OWNER_ALIVE', message, {
    value: living[0]!.uid,
    valid: 'a state without grants that live, or --force',
  });
}

/**
 * Ends what can end: grants of dead owners and, of the living ones, those that no process owns; what
 * these changed; memberships; cgroups; and, if nothing stays in use, the folder.
 */
export async function removeState(parts: StateParts): Promise<StateRemoval> {
  const { folder } = parts;
  const notes: string[] = [];
  const left = await endAll(folder, notes);
  const settings = await changedSettings(folder);
  const users = usersOf(left);
  notes.push(
    ...left.grants.map((grant) => `grant ${holderOf(grant)} lives, and stays`),
    ...settings.map(({ path, original }) => `${path} is not put back: it was ${JSON.stringify(original)}`),
    ...users.map((user) => `${user} has ${folder} open`),
  );
  const isInUse = left.grants.length > 0 || users.length > 0;
  const cgroups = await removeCgroups(folder, isInUse, notes);
  const isUnused = !isInUse && settings.length === 0 && madeCgroups(folder).length === 0;
  const isGone = isUnused && removeFiles(folder, notes);
  if (!isGone) notes.push(`${folder} stays: end what uses it, and run this again`);
  const uids = left.grants.map(({ uid }) => uid);
  const paths = settings.map(({ path }) => path);
  return {
    removed: {
      grants: parts.grants.filter(({ uid }) => !uids.includes(uid)),
      settings: parts.settings.filter(({ path }) => !paths.includes(path)),
      cgroups,
      folder: isGone ? folder : null,
    },
    isGone,
    notes,
  };
}

// Opening a manager takes back what dead owners have.
async function endAll(stateDir: string, notes: string[]): Promise<StateStatus> {
  const manager = await openManager({ stateDir, besideKubelet: true, sharedMember: false });
  const unless = (what: string, step: Promise<unknown>) =>
    step.catch((error: Error) => notes.push(`${what}: ${error.message}`));
  try {
    for (const { uid, owner } of manager.grants())
      if (owner.kind !== 'process') await unless(`grant ${uid}`, manager.release(uid));
    for (const member of manager.sharedMembers()) {
      const target = member.kind === 'cgroup' ? { cgroup: member.path } : { pid: member.pid };
      await unless(Object.values(target).join(), manager.removeSharedMember(target));
    }
    await manager.reconcile();
    return manager.status();
  } finally {
    manager.close();
  }
}

const FOLDERS = ['archive', 'cgroups', 'members', 'owners', 'quarantine', 'waiting'];

// Its group may write to it: root follows no link in it, and removes only files, at two levels.
function removeFiles(folder: string, notes: string[]): boolean {
  try {
    close(folder);
    for (const name of readdirSync(folder)) {
      const path = join(folder, name);
      if (!FOLDERS.includes(name)) unlinkSync(path);
      else if (close(path)) removeFolder(path);
    }
    rmdirSync(folder);
    forgetFolder(folder);
    return true;
  } catch (error) {
    notes.push(errorText(error as Error));
    return false;
  }
}

function close(path: string): boolean {
  if (!lstatSync(path).isDirectory()) return false;
  chmodSync(path, 0o700);
  return true;
}

function removeFolder(path: string): void {
  for (const name of readdirSync(path)) unlinkSync(join(path, name));
  rmdirSync(path);
}
