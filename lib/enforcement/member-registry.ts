// MemberRegistry: who is registered as a shared member, in members/ of the state folder: a file for each registration.
import { readFileSync, realpathSync, statSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { isCgroupFolder } from '../cgroups/cgroup-files.js';
import { NumalignError } from '../errors.js';
import { type NativeFolder, type NativeOwner, native } from '../native.js';
import { namespaceOf } from '../state/cgroup-owner.js';
import { processCommand, readableCommand } from '../state/owners.js';
import { identifyProcess, isProcessRunning, type ProcessIdentity, pidNamespace } from '../state/process-identity.js';
import { programName } from '../state/program-name.js';

export interface ProcessEntry extends ProcessIdentity {
  readonly kind: 'process';
  readonly command: string;
  /** The grant that it was attached to: there it stays. */
  readonly grant: string | null;
  /** And which of its containers; null: all of them. */
  readonly container: string | null;
  /** Grants of nobody for which it has pinned threads of its own. */
  readonly pinned?: readonly string[];
}

/** A cgroup by its folder; another that comes under the same path has another inode. */
export interface CgroupEntry {
  readonly kind: 'cgroup';
  readonly path: string;
  readonly device: string;
  readonly inode: string;
  /** The cgroup namespace in which `path` is meant; {@link DAMAGED} where nothing of it can be read. */
  readonly namespace: string;
}

export type Entry = ProcessEntry | CgroupEntry;

/** A registered process or cgroup, with the names of its registrations. */
export interface Registered<E extends Entry = Entry> {
  readonly entry: E;
  readonly names: readonly string[];
}

export const MASKS = '.masks';
export const DAMAGED = '';
const EXPLICIT = 'r';
// p<pid>-<start>-<namespace>, and by whom
const PROCESS_FILE = /^(p(\d+)-(\d+)-(\d+))-\w+$/;
const CGROUP_FILE = /^c(\d+)-(\d+)$/;

// One for all environments of a process: affinity belongs to threads, whichever manager moves them.
export function processName({ pid, start, namespace }: ProcessIdentity): string {
  return `p${pid}-${start}-${/\d+/.exec(namespace)?.[0] ?? 0}`;
}

const isRegistration = (name: string) => PROCESS_FILE.test(name) || /^c\d+-\d+$/.test(name);

const cgroupName = ({ device, inode }: Pick<CgroupEntry, 'device' | 'inode'>) => `c${device}-${inode}`;

/** Every member but {@link look} and {@link leave} REQUIRES the state's lock. */
export class MemberRegistry {
  readonly folder: NativeFolder;
  readonly #path: string;
  // Registrations that this environment has made, each with a lock: from another pid namespace only that tells that their process lives.
  readonly #own = new Map<string, NativeOwner>();
  #openers = 0;

  /** `folder`: members/ of the state folder; `path`: where this process sees it. */
  constructor(folder: NativeFolder, path: string) {
    this.folder = folder;
    this.#path = path;
  }

  /** The name of this environment's own registration, while it has one. */
  get ownName(): string | undefined {
    return this.#openers > 0 ? this.#nameOfSelf() : undefined;
  }

  #nameOfSelf(): string | undefined {
    const own = identifyProcess(process.pid);
    return own && `${processName(own)}-${native.threadId()}`;
  }

  /** This process runs in the shared pool from now on, where it has no grant. As often as {@link leave}. */
  join(): void {
    this.#openers++;
    const own = identifyProcess(process.pid);
    const name = this.#nameOfSelf();
    if (own && name) this.#register(name, { kind: 'process', ...own, command: processCommand(), ...NO_GRANT });
  }

  /** The last that leaves takes the registration with him; threads stay where they are. */
  leave(): boolean {
    if (--this.#openers > 0) return false;
    const name = this.#nameOfSelf();
    if (name) this.#unregister(name);
    return true;
  }

  /** @throws ERR_UNKNOWN_MEMBER where there is no such process */
  addProcess(pid: number, attached: Pick<ProcessEntry, 'grant' | 'container'> = NO_GRANT): void {
    const found = identifyProcess(pid);
    if (!found) throw unknownMember(pid, 'the pid of a process that runs');
    this.#register(`${processName(found)}-${EXPLICIT}`, {
      kind: 'process',
      ...found,
      command: commandOf(pid),
      ...attached,
    });
  }

  /** Threads of this process are pinned for a grant that is no process's: they may stay on it. */
  notePinned(grant: string): void {
    const name = this.ownName;
    const entry = name === undefined ? undefined : this.#read(name);
    if (entry?.kind !== 'process' || entry.pinned?.includes(grant)) return;
    this.#register(name!, { ...entry, pinned: [...(entry.pinned ?? []), grant] });
  }

  /** Whether a file is root's, our own, or of the user of the process that it is about. */
  isTrusted(name: string, pid: number): boolean {
    const user = statSync(join(this.#path, name), { throwIfNoEntry: false })?.uid;
    if (user === undefined || user === 0 || user === process.geteuid?.()) return true;
    return statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid === user;
  }

  /** How a process is registered by {@link addProcess}. */
  findProcess(pid: number): ProcessEntry | undefined {
    const found = identifyProcess(pid);
    const name = found && `${processName(found)}-${EXPLICIT}`;
    return name !== undefined && this.folder.version(name) !== undefined
      ? (this.#read(name) as ProcessEntry)
      : undefined;
  }

  /** @throws ERR_UNKNOWN_MEMBER where it is no cgroup */
  addCgroup(path: string): CgroupEntry {
    const found = identifyCgroup(path);
    if (!found) throw unknownMember(path, 'the absolute path of a cgroup');
    this.folder.replace(cgroupName(found), JSON.stringify(found));
    return found;
  }

  /** @throws ERR_UNKNOWN_MEMBER where it is none */
  removeProcess(pid: number): void {
    const found = identifyProcess(pid);
    const name = found && `${processName(found)}-${EXPLICIT}`;
    if (name === undefined || this.folder.version(name) === undefined) throw unknownMember(pid, 'a registered process');
    this.#unregister(name);
  }

  /** @throws ERR_UNKNOWN_MEMBER where it is none */
  removeCgroup(path: string): void {
    const real = identifyCgroup(path)?.path ?? path;
    const found = this.all().find(({ entry }) => entry.kind === 'cgroup' && entry.path === real);
    if (!found) throw unknownMember(path, 'a registered cgroup');
    for (const name of found.names) this.folder.remove(name);
  }

  #register(name: string, entry: ProcessEntry): void {
    const known = this.#own.get(name);
    // Somebody may have removed it.
    if (known && this.folder.isOwnerAlive(name)) {
      known.write(JSON.stringify(entry));
      return;
    }
    known?.close();
    this.#own.delete(name);
    // Of another environment, or of a process before us that has ended.
    if (this.folder.version(name) !== undefined) this.folder.remove(name);
    const lock = this.folder.createOwner(name);
    try {
      lock.write(JSON.stringify(entry));
    } catch (error) {
      lock.close();
      this.folder.remove(name);
      throw error;
    }
    this.#own.set(name, lock);
  }

  #unregister(name: string): void {
    this.#own.get(name)?.close();
    this.#own.delete(name);
    this.folder.remove(name);
  }

  /** Each member once; those that have ended are forgotten. */
  all(names: readonly string[] = this.folder.list()): Registered[] {
    const found = this.look(names);
    const known = new Set(found.flatMap((each) => each.names));
    for (const name of names) {
      const isGone =
        !known.has(name) && (isRegistration(name) ? this.#read(name) !== undefined : this.#isLeft(name, found));
      if (isGone) this.folder.remove(name);
    }
    return found;
  }

  /** The same, but nothing is changed. Needs no lock. */
  look(names: readonly string[] = this.folder.list()): Registered[] {
    const found = new Map<string, { entry: Entry; names: string[] }>();
    for (const name of names) {
      const entry = isRegistration(name) ? this.#read(name) : undefined;
      if (!entry || !this.#isThere(name, entry)) continue;
      const key = PROCESS_FILE.exec(name)?.[1] ?? name;
      const known = found.get(key);
      if (known) {
        known.names.push(name);
        known.entry = joined(known.entry, entry);
      } else found.set(key, { entry, names: [name] });
    }
    return [...found.values()];
  }

  // What stands beside registrations that are gone. Processes of registered cgroups have masks and no registration.
  #isLeft(name: string, found: readonly Registered[]): boolean {
    const [, prefix, pid, start, namespace] = /^(p(\d+)-(\d+)-(\d+))(-\w+)?\.\w+$/.exec(name) ?? [];
    if (prefix === undefined || found.some(({ names: [first] }) => first?.startsWith(`${prefix}-`))) return false;
    const now = identifyProcess(Number(pid));
    const isHere = now !== undefined && processName({ ...now, pid: 0, start: '' }).endsWith(`-${namespace}`);
    return !name.endsWith(MASKS) || (isHere && now.start !== start) || now === undefined;
  }

  // A cgroup of another namespace cannot be seen from here.
  #isThere(name: string, entry: Entry): boolean {
    if (entry.kind === 'process') return isProcessRunning(entry) ?? this.folder.isOwnerAlive(name);
    if (entry.namespace !== namespaceOf('cgroup')) return true;
    const found = statSync(entry.path, { bigint: true, throwIfNoEntry: false });
    return String(found?.dev) === entry.device && String(found?.ino) === entry.inode;
  }

  #read(name: string): Entry | undefined {
    const text = this.folder.read(name)?.toString('utf8');
    if (text === undefined) return undefined;
    try {
      const entry = JSON.parse(text) as Entry;
      if (hasShape(entry) && nameOf(entry) === name.replace(PROCESS_FILE, '$1')) return this.#trusted(name, entry);
    } catch {
      // Its name says enough.
    }
    return this.#trusted(name, entryByName(name));
  }

  // Whoever may write the folder could have root move anybody's threads: a registration counts if it is root's, our own, or of the one that it is about.
  #trusted(name: string, entry: Entry): Entry | undefined {
    if (entry.kind === 'process') {
      const isHere = entry.namespace === pidNamespace();
      return !isHere || this.isTrusted(name, entry.pid) ? entry : undefined;
    }
    const user = statSync(join(this.#path, name), { throwIfNoEntry: false })?.uid;
    const isOwn = user === undefined || user === 0 || user === process.geteuid?.();
    return isOwn || statSync(entry.path, { throwIfNoEntry: false })?.uid === user ? entry : undefined;
  }
}

const NO_GRANT = Object.freeze({ grant: null, container: null });

// Two registrations of one process.
function joined(a: Entry, b: Entry): Entry {
  if (a.kind !== 'process' || b.kind !== 'process') return a;
  const attached = b.grant === null ? a : b;
  return { ...attached, pinned: [...(a.pinned ?? []), ...(b.pinned ?? [])] };
}

function hasShape(entry: Entry | null): boolean {
  if (entry?.kind === 'process') return typeof entry.pid === 'number' && typeof entry.namespace === 'string';
  return entry?.kind === 'cgroup' && typeof entry.path === 'string' && isAbsolute(entry.path);
}

const nameOf = (entry: Entry | null) => (entry?.kind === 'process' ? processName(entry) : entry && cgroupName(entry));

// What is left of a damaged registration. Nobody may take it for nobody.
function entryByName(name: string): Entry {
  const [, , pid, start, namespace] = PROCESS_FILE.exec(name) ?? [];
  if (pid !== undefined) {
    const identity = { pid: Number(pid), start: start!, namespace: `pid:[${namespace}]` };
    return { kind: 'process', ...identity, command: commandOf(identity.pid), ...NO_GRANT };
  }
  const [, device, inode] = CGROUP_FILE.exec(name)!;
  return { kind: 'cgroup', path: name, device: device!, inode: inode!, namespace: DAMAGED };
}

function identifyCgroup(path: string): CgroupEntry | undefined {
  try {
    const real = realpathSync(path);
    if (!isCgroupFolder(real)) return undefined;
    const { dev, ino } = statSync(real, { bigint: true });
    return { kind: 'cgroup', path: real, device: `${dev}`, inode: `${ino}`, namespace: namespaceOf('cgroup') };
  } catch {
    return undefined;
  }
}

/** What a process runs, without its arguments; empty where that cannot be read. */
export function commandOf(pid: number): string {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    return readableCommand(programName(words));
  } catch {
    return '';
  }
}

function unknownMember(value: unknown, valid: string): NumalignError {
  return new NumalignError('ERR_UNKNOWN_MEMBER', `${value} is not ${valid}`, {
    value,
    valid,
  });
}
