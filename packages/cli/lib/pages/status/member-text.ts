// Shared members and waiting processes in words. Pure.
import { processText } from '@numalign/page/words';
import type { GrantStatus, StateStatus } from 'numalign/diagnostics';
import { printable } from '../../terminal/text.js';

type MemberStatus = StateStatus['sharedMembers'][number];

export const memberText = (member: MemberStatus) =>
  member.kind === 'cgroup' ? printable(`cgroup ${member.path}`) : processText(member);

// A process that is attached to exclusive CPUs, with its grant; undefined for members in the shared
// pool.
export function attachedText(member: MemberStatus, grants: readonly GrantStatus[]): string | undefined {
  const grant = member.kind === 'process' ? grants.find(({ uid }) => uid === member.grant) : undefined;
  if (!grant || member.kind === 'cgroup') return undefined;
  const { container } = member;
  const cpus =
    container === null ? grant.cpus : grant.containers.find(({ name }) => name === container)?.cpus;
  if (!cpus || cpus.isEmpty) return undefined;
  return `${processText(member)}: ${printable(grant.name)}${container === null ? '' : `, container ${printable(container)}`}`;
}
