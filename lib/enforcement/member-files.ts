// MemberFiles: the files of members/, and whose word they are. Where several users may put files there, each of them can link, rename and, if the modes allow it, write a file of another.
import type { NativeFolder } from '../native.js';
import { usersOf } from '../state/process-identity.js';

export interface MemberFile {
  readonly text: string;
  /** Who owns it. */
  readonly user: number;
  /** What it says is its owner's word, though maybe about what was under another name. */
  readonly isSure: boolean;
  /** Only root and this user can put files here: its name is its owner's word too. */
  readonly isNameSure: boolean;
}

const WRITABLE_BY_OTHERS = 0o022;
const isClosed = (mode: number) => (mode & WRITABLE_BY_OTHERS) === 0;

const isTrustworthy = (user: number) => user === 0 || user === process.geteuid?.();

/**
 * Whether a user's word about a process counts here: root's and one's own do, and that of the user who may move the process himself. Of one that /proc hides nobody can tell, and nobody here moves it.
 */
export function mayVouch(user: number, pid: number): boolean {
  return isTrustworthy(user) || (usersOf(pid)?.includes(user) ?? true);
}

/** The same about a cgroup; `owner`: of its folder. */
export const mayVouchForGroup = (user: number, owner: number) => isTrustworthy(user) || user === owner;

/** Undefined where there is no such file. */
export function readMemberFile(folder: NativeFolder, name: string): MemberFile | undefined {
  const found = folder.readFound(name);
  if (!found) return undefined;
  const { user, mode } = folder.owner();
  const isNameSure = isClosed(mode) && isTrustworthy(user);
  const isSure = isNameSure || (isClosed(found.mode) && found.links === 1);
  return { text: found.bytes.toString('utf8'), user: found.user, isSure, isNameSure };
}
