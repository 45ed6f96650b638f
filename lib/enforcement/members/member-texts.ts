// Messages about members that cannot be registered or moved.
import { NumalignError } from '../../base/errors.js';
import { usersOf } from '../../processes/process-identity.js';
import type { StuckMember } from './confinement.js';

/** Why a member cannot be moved. */
export const stuckText = ({ member, reason }: StuckMember) =>
  member.kind === 'process'
    ? `process ${member.pid} (${member.command}) cannot be moved: ${reason}${/\bEPERM$/.test(reason) ? ownerText(member.pid) : ''}`
    : `a process in ${member.path} cannot be moved: ${reason}`;

/** Whose process it is, if only its owner and root may move it; empty if that cannot be seen. */
export function ownerText(pid: number): string {
  const user = usersOf(pid)?.at(-1);
  if (user === undefined) return '';
  return user === 0 ? ` (it is root's)` : ` (it is user ${user}'s)`;
}

/** `valid`: what the value should be. */
export function unknownMember(value: unknown, valid: string): NumalignError {
  return new NumalignError('ERR_UNKNOWN_MEMBER', `${value} is not ${valid}`, {
    value,
    valid,
  });
}
