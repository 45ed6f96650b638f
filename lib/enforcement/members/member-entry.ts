// The registration of a member, a process or a cgroup: its name and the text of its file.
import { realpathSync, statSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { textOf } from '../../base/errors.js';
import { isCgroupFolder } from '../../cgroups/files/cgroup-files.js';
import { namespaceOf } from '../../processes/cgroup-owner.js';
import type { ProcessIdentity } from '../../processes/process-identity.js';
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

/** A cgroup, identified by its folder: another one at the same path has another inode. */
export interface CgroupEntry {
  readonly kind: 'cgroup';
  readonly path: string;
  readonly device: string;
  readonly inode: string;
  /** The cgroup namespace that `path` belongs to; {@link DAMAGED} if the file cannot be read. */
  readonly namespace: string;
}

export type Entry = ProcessEntry | CgroupEntry;

export const MASKS = '.masks';

export const DAMAGED = '';

export const EXPLICIT = 'r';

// p<pid>-<start>-<namespace>, and a suffix for the registering side
export const PROCESS_FILE = /^(p(\d+)-(\d+)-(\d+))-\w+$/;

const CGROUP_FILE = /^c(\d+)-(\d+)$/;

// One name for all environments of a process: affinity belongs to threads, whichever manager moves
// them.
export function processName({ pid, start, namespace }: ProcessIdentity): string {
  return `p${pid}-${start}-${/\d+/.exec(namespace)?.[0] ?? 0}`;
}

/**
 * Whether another process has registered this one. The lock of such a file says nothing about this
 * one.
 */
export const isExplicit = (name: string) => name.endsWith(`-${EXPLICIT}`);

export const isRegistration = (name: string) => PROCESS_FILE.test(name) || /^c\d+-\d+$/.test(name);

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

export function identifyCgroup(path: string): CgroupEntry | undefined {
  try {
    const real = realpathSync(path);
    if (!isCgroupFolder(real)) return undefined;
    const { dev, ino } = statSync(real, { bigint: true });
    return {
      kind: 'cgroup',
      path: real,
      device: `${dev}`,
      inode: `${ino}`,
      namespace: namespaceOf('cgroup'),
    };
  } catch {
    return undefined;
  }
}

/** The program that a process runs, without arguments; empty if that cannot be read. */
export const commandOf = (pid: number): string =>
  readableCommand(programName((textOf(`/proc/${pid}/cmdline`) ?? '').split('\0')));
