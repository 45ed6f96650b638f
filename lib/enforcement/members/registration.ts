// Registration: a member's entry, and whether it can be trusted.
import { isCgroupHere, namespaceOf } from '../../processes/cgroup-owner.js';
import { isProcessRunning } from '../../processes/process-identity.js';
import type { CgroupEntry, Entry, ProcessEntry } from './member-entry.js';

// Joins two registrations of one process. A doubtful one adds nothing to a trusted one.
export function joined(a: Registration, b: Registration): Registration {
  if (a.doubt !== b.doubt && (a.doubt === undefined || b.doubt === undefined))
    return a.doubt === undefined ? a : b;
  if (a.entry.kind !== 'process' || b.entry.kind !== 'process') return a;
  const attached = b.entry.grant === null ? a : b;
  const pinned = [...(a.entry.pinned ?? []), ...(b.entry.pinned ?? [])];
  return { ...attached, entry: { ...(attached.entry as ProcessEntry), pinned } };
}

// What one file says.
export type Registration = Omit<Registered, 'names' | 'isSeen'>;

/** A registered process or cgroup, with the names of its registrations. */
export interface Registered<E extends Entry = Entry> {
  readonly entry: E;
  readonly names: readonly string[];
  /** The user who registered it. */
  readonly user: number;
  /** Why nothing may be moved because of its registrations. */
  readonly doubt: string | undefined;
  /** Whether this process can look at it. A member that cannot be seen may still exist. */
  readonly isSeen: boolean;
}

// Whether a cgroup can be seen from here.
export function isHere(cgroup: CgroupEntry): boolean {
  try {
    return cgroup.namespace === namespaceOf('cgroup') && isCgroupHere(cgroup);
  } catch {
    return false;
  }
}

export const isSelf = (entry: Entry) =>
  entry.kind === 'process' && entry.pid === process.pid && isProcessRunning(entry) === true;

export const doubtOf = (name: string, isWhole: boolean) =>
  isWhole
    ? `others may have written or renamed its registration members/${name}: remove it, and register it again`
    : `its registration members/${name} is damaged: remove it, and register it again`;
