// Survivors: processes that keep a grant after its owner has ended.
import type { OwnerRecord } from '../../account/pod-assignment.js';
import { innerPid, visiblePids } from '../../processes/process-identity.js';
import { hasOpen } from './descent.js';
import { commandOf } from './member-entry.js';

/** A process that keeps a grant after its owner has ended. */
export interface Survivor {
  /** Its pid, in the pid namespace of the caller. */
  readonly pid: number;
  /** Its program without arguments; empty if it cannot be read. */
  readonly command: string;
}

/**
 * The processes that keep the grants of owners that have ended or released them, by the owner's
 * uuid: those that inherited the owner's lock. An owner that has its lock, or whose lock cannot be
 * seen, has none.
 */
export function survivorsOf(owners: readonly OwnerRecord[]): ReadonlyMap<string, readonly Survivor[]> {
  const hasEnded = ({ kind, pid, uuid }: OwnerRecord) =>
    kind === 'process' && pid !== null && hasOpen(pid, `/owners/${uuid}`) === false;
  const endedOwners = owners.filter(hasEnded);
  const found = new Map<string, readonly Survivor[]>();
  if (endedOwners.length === 0) return found;
  const pids = visiblePids();
  for (const { uuid, pid: owner } of endedOwners) {
    const holders = pids.filter((pid) => hasOpen(pid, `/owners/${uuid}`) === true);
    // The owner itself may have another pid here than in its own namespace.
    if (holders.length === 0 || holders.some((pid) => innerPid(pid) === owner)) continue;
    found.set(
      uuid,
      holders.map((pid) => ({ pid, command: commandOf(pid) })),
    );
  }
  return found;
}
