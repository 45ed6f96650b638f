// The content of the files of a state folder, read by docs/state-format.md without code of the
// package.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { decodeMembers, decodeOwner } from '../torture/state-file.mjs';

/** The members of the state as they stand now. */
export const membersOf = (stateDir: string) => decodeMembers(readFileSync(join(stateDir, 'state.json')));

/** The members of an owner's file. */
export const ownerMembersOf = (stateDir: string, uuid: string) =>
  decodeOwner(readFileSync(join(stateDir, 'owners', uuid)));

/** The state file as it was before its last commit. REQUIRES: that was appended. */
export function stateBefore(stateDir: string): Buffer {
  const bytes = readFileSync(join(stateDir, 'state.json'));
  const before = bytes.subarray(0, bytes.lastIndexOf('\n', bytes.length - 2) + 1);
  decodeMembers(before);
  return before;
}
