// Why a member cannot be moved, in words.
import type { StuckMember } from './confinement.js';
import { ownerText } from './member-registry.js';

export const stuckText = ({ member, reason }: StuckMember) =>
  member.kind === 'process'
    ? `process ${member.pid} (${member.command}) cannot be moved: ${reason}${/\bEPERM$/.test(reason) ? ownerText(member.pid) : ''}`
    : `a process in ${member.path} cannot be moved: ${reason}`;
