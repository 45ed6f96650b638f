// MemberFile: a file of members/, and the user who vouches for it. If several users may put files
// there, each can link and rename another's files, and write those whose modes allow it.
import type { NativeFolder } from '../../base/native-files.js';
import { usersOf } from '../../processes/process-identity.js';

export interface MemberFile {
  readonly text: string;
  /** The owner of the file. */
  readonly user: number;
  /** True if the owner wrote the text, though possibly for another name. */
  readonly isSure: boolean;
  /** True if only root and this user can put files here, so the owner also chose the name. */
  readonly isNameSure: boolean;
}

const WRITABLE_BY_OTHERS = 0o022;
const isClosed = (mode: number) => (mode & WRITABLE_BY_OTHERS) === 0;

const isTrustworthy = (user: number) => user === 0 || user === process.geteuid?.();

/**
 * Whether a user's word about a process counts here. Root's does, this user's, and that of a user
 * who may move the process. If /proc hides the process, it also counts, since nothing here can move
 * it.
 */
export function mayVouch(user: number, pid: number): boolean {
  return isTrustworthy(user) || (usersOf(pid)?.includes(user) ?? true);
}

/** The same for a cgroup; `owner`: the owner of its folder. */
export function mayVouchForGroup(user: number, owner: number): boolean {
  return isTrustworthy(user) || user === owner;
}

/** Undefined if there is no such file. */
export function readMemberFile(folder: NativeFolder, name: string): MemberFile | undefined {
  const file = folder.readFound(name);
  if (!file) return undefined;
  const { user, mode } = folder.owner();
  const isNameSure = isClosed(mode) && isTrustworthy(user);
  const isSure = isNameSure || (isClosed(file.mode) && file.links === 1);
  return { text: file.bytes.toString('utf8'), user: file.user, isSure, isNameSure };
}
