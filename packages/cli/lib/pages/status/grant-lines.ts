// Lines about grants below their table. Pure.
import { idLength } from '@numalign/page/words';
import type { GrantStatus, MemoryBinding } from 'numalign/diagnostics';
import { nodesNamed } from 'numalign/tools';
import { printable } from '../../terminal/text.js';
import { quietLines } from '../quiet-text.js';

function grantTitle({ uid, name }: GrantStatus, length: number): string {
  return name === uid ? uid.slice(0, length) : `${uid.slice(0, length)} ${name}`;
}

/** A line for each grant with flags. */
export function flagLines(grants: readonly GrantStatus[]): string[] {
  const length = idLength(grants.map((grant) => grant.uid));
  return grants
    .filter(({ flags }) => flags.length > 0)
    .map((grant) =>
      printable(`${grantTitle(grant, length)}: ${grant.flags.map(({ message }) => message).join('; ')}`),
    );
}

/** A line for each requested part of quiet that a grant has not fully reached. */
export function quietGrantLines(grants: readonly GrantStatus[]): string[] {
  const length = idLength(grants.map((grant) => grant.uid));
  return grants.flatMap((grant) =>
    quietLines(grant.quiet).map((line) => printable(`${grantTitle(grant, length)}: ${line}`)),
  );
}

/** A line for each cgroup of a grant. */
export function cgroupLines(grants: readonly GrantStatus[]): string[] {
  const length = idLength(grants.map((grant) => grant.uid));
  return grants.flatMap((grant) =>
    grant.cgroups.map(({ container, path, isMade }) => {
      const binding = grant.memoryEnforcement.find(({ cgroup }) => cgroup === path);
      const of =
        grant.containers.length === 1
          ? ''
          : container === null
            ? ', all containers'
            : `, container ${container}`;
      return printable(
        `${grantTitle(grant, length)}${of}: ${path}${isMade ? memoryWords(binding) : ' (not made yet)'}`,
      );
    }),
  );
}

function memoryWords(binding: MemoryBinding | undefined): string {
  if (!binding) return '';
  const { wanted, nodes, applied, reason } = binding;
  if (applied) return `, memory of ${nodesNamed(wanted)}`;
  return `, memory of ${nodes === null ? 'unknown nodes' : nodesNamed(nodes)} instead of ${wanted}: ${reason}`;
}
