// The registration of a member, a process or a cgroup: its name and the text of its file.
import { isAbsolute } from 'node:path';
import type { CgroupIdentity } from '../../account/pod-assignment.js';
import { textOf, unlessThrown } from '../../base/errors.js';
import { cgroupAt, isCgroupHere, isNamespaceHere } from '../../processes/cgroup-owner.js';
import { isProcessRunning, type ProcessIdentity } from '../../processes/process-identity.js';
import { programName } from '../../processes/program-name.js';
import { readableCommand } from '../../state/owners/owner-record.js';

export interface ProcessEntry extends ProcessIdentity {
  readonly kind: 'process';
  readonly command: string;
  /** The grant that it was attached to, where it stays. */
  readonly grant: string | null;
  /** The container of that grant; null: all of them. */
  readonly container: string | null;
  /** Grants without an owner process for which it has pinned threads. */
  readonly pinned?: readonly string[];
}

/** A cgroup. `namespace`: {@link DAMAGED} if its file cannot be read. */
export interface CgroupEntry extends CgroupIdentity {
  readonly kind: 'cgroup';
}

export type Entry = ProcessEntry | CgroupEntry;

export const MASKS = '.masks';

export const DAMAGED = '';

export const EXPLICIT = 'r';

// p<pid>-<start>-<namespace>, a suffix for the registering side, and an extension of what is no
// registration.
export const PROCESS_FILE = /^(p(\d+)-(\d+)-(\d+))(-\w+)?(\.\w+)?$/;

const CGROUP_FILE = /^c(\d+)-(\d+)$/;

// One name for all environments of a process: affinity belongs to threads, whichever manager moves
// them.
export function processName({ pid, start, namespace }: ProcessIdentity): string {
  if (namespace !== lastNamespace.link)
    lastNamespace = { link: namespace, number: /\d+/.exec(namespace)?.[0] ?? '0' };
  return `p${pid}-${start}-${lastNamespace.number}`;
}

// Most processes are in one.
let lastNamespace = { link: '', number: '0' };

/**
 * Whether another process has registered this one. The lock of such a file says nothing about this
 * one.
 */
export const isExplicit = (name: string) => name.endsWith(`-${EXPLICIT}`);

export const isRegistration = (name: string) =>
  !name.includes('.') && (PROCESS_FILE.exec(name)?.[5] !== undefined || CGROUP_FILE.test(name));

export const cgroupName = ({ device, inode }: Pick<CgroupEntry, 'device' | 'inode'>) => `c${device}-${inode}`;

export const NO_GRANT = Object.freeze({ grant: null, container: null });

// Undefined if it is damaged, or does not match its name.
export function decode(name: string, text: string): Entry | undefined {
  try {
    const entry = JSON.parse(text) as Entry;
    return hasShape(entry) && nameOf(entry) === name.replace(PROCESS_FILE, '$1') ? entry : undefined;
  } catch {
    return undefined;
  }
}

function hasShape(entry: Entry | null): boolean {
  if (entry?.kind === 'process')
    return Number.isInteger(entry.pid) && entry.pid > 0 && typeof entry.namespace === 'string';
  return entry?.kind === 'cgroup' && typeof entry.path === 'string' && isAbsolute(entry.path);
}

const nameOf = (entry: Entry | null) =>
  entry?.kind === 'process' ? processName(entry) : entry && cgroupName(entry);

// What the name says of a damaged registration, which must still count.
export function entryByName(name: string): Entry {
  const [, , pid, start, namespace] = PROCESS_FILE.exec(name) ?? [];
  if (pid !== undefined) {
    const identity = { pid: Number(pid), start: start!, namespace: `pid:[${namespace}]` };
    return { kind: 'process', ...identity, command: commandOf(identity.pid), ...NO_GRANT };
  }
  const [, device, inode] = CGROUP_FILE.exec(name)!;
  return { kind: 'cgroup', path: name, device: device!, inode: inode!, namespace: DAMAGED };
}

export function entryOfCgroup(path: string): CgroupEntry | undefined {
  try {
    const found = cgroupAt(path);
    return found && { kind: 'cgroup', ...found };
  } catch {
    return undefined;
  }
}

/** The program that a process runs, without arguments; empty if that cannot be read. */
export const commandOf = (pid: number): string =>
  readableCommand(programName((textOf(`/proc/${pid}/cmdline`) ?? '').split('\0')));

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
  return unlessThrown(() => isNamespaceHere(cgroup.namespace, cgroup.path) && isCgroupHere(cgroup), false);
}

export const isSelf = (entry: Entry) =>
  entry.kind === 'process' && entry.pid === process.pid && isProcessRunning(entry) === true;

export const doubtOf = (name: string, isWhole: boolean) =>
  isWhole
    ? `others may have written or renamed its registration members/${name}: remove it, and register it again`
    : `its registration members/${name} is damaged: remove it, and register it again`;
