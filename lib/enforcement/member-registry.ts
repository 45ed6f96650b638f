// MemberRegistry: who is registered as a shared member, in members/ of the state folder: a file for each registration.
import { readFileSync, realpathSync, statSync } from 'node:fs';
import { isCgroupFolder } from '../cgroups/cgroup-files.js';
import { NumalignError } from '../errors.js';
import { type NativeFolder, type NativeOwner, native } from '../native.js';
import { namespaceOf } from '../state/cgroup-owner.js';
import { processCommand, readableCommand } from '../state/owners.js';
import { identifyProcess, isProcessRunning, type ProcessIdentity } from '../state/process-identity.js';

export interface ProcessEntry extends ProcessIdentity {
  readonly kind: 'process';
  readonly command: string;
  /** The grant that it was attached to: there it stays. */
  readonly grant: string | null;
}

/** A cgroup by its folder; another that comes under the same path has another inode. */
export interface CgroupEntry {
  readonly kind: 'cgroup';
  readonly path: string;
  readonly device: string;
  readonly inode: string;
  /** The cgroup namespace in which `path` is meant. */
  readonly namespace: string;
}

export type Entry = ProcessEntry | CgroupEntry;

/** A registered process or cgroup, with the names of its registrations. */
export interface Registered<E extends Entry = Entry> {
  readonly entry: E;
  readonly names: readonly string[];
}

export const MASKS = '.masks';
const EXPLICIT = 'r';
// p<pid>-<start>-<namespace>, and by whom
const PROCESS_FILE = /^(p\d+-\d+-\d+)-\w+$/;

// One for all environments of a process: affinity belongs to threads, whichever manager moves them.
export function processName({ pid, start, namespace }: ProcessIdentity): string {
  return `p${pid}-${start}-${/\d+/.exec(namespace)?.[0] ?? 0}`;
}

const isRegistration = (name: string) => PROCESS_FILE.test(name) || /^c\d+-\d+$/.test(name);

const cgroupName = ({ device, inode }: Pick<CgroupEntry, 'device' | 'inode'>) => `c${device}-${inode}`;

/** Every member but {@link look} and {@link leave} REQUIRES the state's lock. */
export class MemberRegistry {
  readonly folder: NativeFolder;
  // Registrations that this environment has made, each with a lock: from another pid namespace only that tells that their process lives.
  readonly #own = new Map<string, NativeOwner>();
  #openers = 0;

  /** `folder`: members/ of the state folder. */
  constructor(folder: NativeFolder) {
    this.folder = folder;
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
    if (own && name) this.#register(name, { kind: 'process', ...own, command: processCommand(), grant: null });
  }

  /** The last that leaves takes the registration with him; threads stay where they are. */
  leave(): boolean {
    if (--this.#openers > 0) return false;
    const name = this.#nameOfSelf();
    if (name) this.#unregister(name);
    return true;
  }

  /** @throws ERR_UNKNOWN_MEMBER where there is no such process */
  addProcess(pid: number, grant: string | null = null): void {
    const found = identifyProcess(pid);
    if (!found) throw unknownMember(pid, 'the pid of a process that runs');
    this.#register(`${processName(found)}-${EXPLICIT}`, { kind: 'process', ...found, command: commandOf(pid), grant });
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
    if (known) {
      known.write(JSON.stringify(entry));
      return;
    }
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
      if (known) known.names.push(name);
      else found.set(key, { entry, names: [name] });
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
    try {
      return text === undefined || text === '' ? undefined : (JSON.parse(text) as Entry);
    } catch {
      return undefined;
    }
  }
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

function commandOf(pid: number): string {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    return readableCommand(words.join(' ').trim());
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
