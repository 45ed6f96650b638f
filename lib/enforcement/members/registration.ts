// Registration: a member's entry, and whether it is still meant.
import { isCgroupHere, namespaceOf } from '../../processes/cgroup-owner.js';
import { isProcessRunning } from '../../processes/process-identity.js';
import type { CgroupEntry, Entry, ProcessEntry } from './member-entry.js';

// Two registrations of one process. One in doubt adds nothing to one that is not.
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
  /** Who has registered it. */
  readonly user: number;
  /** Why nobody must be moved on the word of its registrations. */
  readonly doubt: string | undefined;
  /** Whether it can be looked at from here. What cannot, may be there all the same. */
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
