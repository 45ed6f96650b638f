// Survivors: processes that keep a grant after its owner.
import { readdirSync } from 'node:fs';
import type { OwnerRecord } from '../../account/pod-assignment.js';
import { innerPid } from '../../processes/process-identity.js';
import { hasOpen } from './descent.js';
import { commandOf } from './member-entry.js';

/** A process that keeps a grant after its owner. */
export interface Survivor {
  readonly pid: number;
  readonly command: string;
}

/**
 * The processes that keep the grants of owners that have ended or given them up, by the owner's
 * uuid: those that have inherited the owner's lock. None while the owner has it, or where it cannot be seen.
 */
export function survivorsOf(owners: readonly OwnerRecord[]): ReadonlyMap<string, readonly Survivor[]> {
  const isLeft = ({ kind, pid, uuid }: OwnerRecord) =>
    kind === 'process' && pid !== null && hasOpen(pid, `/owners/${uuid}`) === false;
  const left = owners.filter(isLeft);
  const found = new Map<string, readonly Survivor[]>();
  if (left.length === 0) return found;
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  for (const { uuid, pid: owner } of left) {
    const holders = pids.map(Number).filter((pid) => hasOpen(pid, `/owners/${uuid}`) === true);
    // The owner itself has another pid here than where it is at home.
    if (holders.length === 0 || holders.some((pid) => innerPid(pid) === owner)) continue;
    found.set(
      uuid,
      holders.map((pid) => ({ pid, command: commandOf(pid) })),
    );
  }
  return found;
}
