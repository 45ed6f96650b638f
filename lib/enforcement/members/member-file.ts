// MemberFile: a file of members/, and whose word it is. Where several users may put files there,
// each of them can link and rename the files of another, and write those whose modes allow it.
import type { NativeFolder } from '../../base/native-files.js';
import { usersOf } from '../../processes/process-identity.js';

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
 * Whether a user's word about a process counts here: root's does, this user's, and that of a user
 * who may move the process. If /proc hides the process, it does too: nobody here can move it.
 */
export function mayVouch(user: number, pid: number): boolean {
  return isTrustworthy(user) || (usersOf(pid)?.includes(user) ?? true);
}

/** The same about a cgroup; `owner`: of its folder. */
export function mayVouchForGroup(user: number, owner: number): boolean {
  return isTrustworthy(user) || user === owner;
}

/** Undefined where there is no such file. */
export function readMemberFile(folder: NativeFolder, name: string): MemberFile | undefined {
  const found = folder.readFound(name);
  if (!found) return undefined;
  const { user, mode } = folder.owner();
  const isNameSure = isClosed(mode) && isTrustworthy(user);
  const isSure = isNameSure || (isClosed(found.mode) && found.links === 1);
  return { text: found.bytes.toString('utf8'), user: found.user, isSure, isNameSure };
}
