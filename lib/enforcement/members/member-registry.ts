// MemberRegistry: the registered shared members. Each registration is a file in members/ of the
// state folder.
import { statSync } from 'node:fs';
import { NumalignError } from '../../base/errors.js';
import { native } from '../../base/native.js';
import type { NativeFolder, NativeOwner } from '../../base/native-files.js';
import { mayCgroupBeThere } from '../../processes/cgroup-owner.js';
import {
  hasEndedElsewhere,
  identifyProcess,
  identifySelf,
  isProcessRunning,
  isUnused,
  type ProcessIdentity,
  pidNamespace,
} from '../../processes/process-identity.js';
import { processCommand } from '../../state/owners/owner-record.js';
import { ownerText } from './confinement.js';
import {
  cgroupName,
  commandOf,
  DAMAGED,
  decode,
  doubtOf,
  type Entry,
  EXPLICIT,
  entryByName,
  entryOfCgroup,
  isExplicit,
  isHere,
  isRegistration,
  isSelf,
  joined,
  MASKS,
  NO_GRANT,
  PROCESS_FILE,
  type ProcessEntry,
  processName,
  type Registered,
  type Registration,
} from './member-entry.js';
import { mayVouch, mayVouchForGroup, readMemberFile } from './member-file.js';

/** Every method but {@link look} and {@link leave} REQUIRES the state's lock. */
export class MemberRegistry {
  // Registrations that this environment made, each with a lock. In another pid namespace only the
  // lock shows that the process lives.
  readonly #locks = new Map<string, NativeOwner>();
  // This environment's registration of itself.
  #self: ProcessEntry | undefined;
  #openers = 0;

  /** `folder`: members/ of the state folder. */
  constructor(readonly folder: NativeFolder) {}

  /** The name of this environment's own registration, while it has one. */
  get ownName(): string | undefined {
    return this.#openers > 0 ? this.#nameOfSelf() : undefined;
  }

  #nameOfSelf(): string {
    return `${processName(identifySelf())}-${native.threadId()}`;
  }

  /**
   * Registers this process as one that runs in the shared pool unless it has a grant. Call
   * {@link leave} as often.
   */
  join(): void {
    this.#openers++;
    const entry: ProcessEntry = {
      kind: 'process',
      ...identifySelf(),
      command: processCommand(),
      ...NO_GRANT,
    };
    this.#register(this.#nameOfSelf(), entry);
    this.#self = entry;
  }

  /**
   * Registers this process again if another program removed its registration. Returns whether it
   * did.
   */
  rejoin(): boolean {
    const name = this.ownName;
    if (name === undefined || !this.#self || this.folder.version(name) !== undefined) return false;
    this.#register(name, this.#self);
    return true;
  }

  /** The last call removes the registration; threads stay where they are. */
  leave(): boolean {
    if (--this.#openers > 0) return false;
    this.#unregister(this.#nameOfSelf());
    return true;
  }

  /**
   * Returns the registration, and whether it is new.
   * @throws ERR_UNKNOWN_MEMBER if there is no such process, or /proc does not show it;
   *   ERR_MEMBER_UNMOVABLE if this user may not move it
   */
  addProcess(pid: number, attached: Pick<ProcessEntry, 'grant' | 'container'> = NO_GRANT) {
    const found = identifyProcess(pid);
    if (!found)
      throw unknownMember(
        pid,
        `the pid of a process that ${isUnused(pid) ? 'runs' : '/proc shows to this one'}`,
      );
    const name = explicitName(found);
    const isKnown = this.#read(name) !== undefined;
    if (!native.mayMove(pid)) {
      // The registration of a user whose word counts must not be replaced by one whose word does
      // not.
      if (isKnown && attached === NO_GRANT) return { name, isNew: false };
      const message = `process ${pid} (${commandOf(pid)}) cannot be moved: EPERM${ownerText(pid)}`;
      const valid = 'a process that this user may move';
      throw new NumalignError('ERR_MEMBER_UNMOVABLE', message, { value: pid, valid });
    }
    this.#register(name, { kind: 'process', ...found, command: commandOf(pid), ...attached });
    return { name, isNew: !isKnown };
  }

  /**
   * Records that threads of this process are pinned for a grant that no process owns: they may
   * stay.
   */
  notePinned(grant: string): void {
    const name = this.ownName;
    const entry = name === undefined ? undefined : this.#read(name)?.entry;
    if (entry?.kind !== 'process' || entry.pinned?.includes(grant)) return;
    this.#self = { ...entry, pinned: [...(entry.pinned ?? []), grant] };
    this.#register(name!, this.#self);
  }

  /** Whether a user may answer for the process of a registration. */
  mayAnswer(name: string, user: number): boolean {
    const { entry, user: owner } = this.#read(name) ?? {};
    if (user === 0 || user === owner) return true;
    return entry?.kind === 'process' && entry.namespace === pidNamespace() && mayVouch(user, entry.pid);
  }

  /** The registration of a process by {@link addProcess}. */
  findProcess(pid: number): ProcessEntry | undefined {
    const found = identifyProcess(pid);
    return found && (this.#read(explicitName(found))?.entry as ProcessEntry | undefined);
  }

  /** Like {@link addProcess}. @throws ERR_UNKNOWN_MEMBER if it is not a cgroup */
  addCgroup(path: string) {
    const found = entryOfCgroup(path);
    if (!found) throw unknownMember(path, 'the absolute path of a cgroup');
    const name = cgroupName(found);
    const registration = this.#read(name);
    const user = process.geteuid?.() ?? 0;
    const isOurs = user === 0 || user === statSync(found.path).uid;
    if (!registration || isOurs || registration.user === user)
      this.folder.replace(name, JSON.stringify(found));
    return { name, isNew: registration === undefined };
  }

  /** @throws ERR_UNKNOWN_MEMBER if it is not registered */
  removeProcess(pid: number): void {
    const found = identifyProcess(pid);
    const name = found && explicitName(found);
    if (name === undefined || this.folder.version(name) === undefined)
      throw unknownMember(pid, 'a registered process');
    this.#unregister(name);
  }

  /** @throws ERR_UNKNOWN_MEMBER if it is not registered */
  removeCgroup(path: string): void {
    const real = entryOfCgroup(path)?.path ?? path;
    const found = this.all().find(({ entry }) => entry.kind === 'cgroup' && entry.path === real);
    if (!found) throw unknownMember(path, 'a registered cgroup');
    for (const name of found.names) this.folder.remove(name);
  }

  #register(name: string, entry: ProcessEntry): void {
    const lock = this.#locks.get(name);
    // Another program may have removed the file.
    if (lock && this.folder.isOwnerAlive(name)) {
      lock.write(JSON.stringify(entry));
      return;
    }
    this.#unlock(name);
    // Replaces the file of another environment, or of an earlier process that has ended.
    this.#locks.set(name, this.folder.createOwner(name, JSON.stringify(entry)));
  }

  /** Releases the locks of its registrations. */
  close(): void {
    for (const lock of this.#locks.values()) lock.close();
    this.#locks.clear();
  }

  #unlock(name: string): void {
    this.#locks.get(name)?.close();
    this.#locks.delete(name);
  }

  #unregister(name: string): void {
    this.#unlock(name);
    this.folder.remove(name);
  }

  /** Whether a living process is a member. Needs no lock. */
  knows(process: ProcessIdentity): boolean {
    const name = `${processName(process)}-`;
    return this.look(this.folder.list().filter((each) => each.startsWith(name))).length > 0;
  }

  /** Each member once; removes the files of those that have ended. */
  all(names: readonly string[] = this.folder.list()): Registered[] {
    const trusted = new Set<string>();
    const found = this.look(names, trusted).filter((each) => !hasEnded(each));
    const living = new Set(found.flatMap((each) => each.names));
    for (const name of names) {
      const isObsolete =
        !living.has(name) && (isRegistration(name) ? trusted.has(name) : isLeftover(name, found));
      if (isObsolete) this.folder.remove(name);
    }
    return found;
  }

  /**
   * Like {@link all}, but changes nothing and needs no lock. Adds the names of registrations to
   * `trusted` whose owners are.
   */
  look(names: readonly string[] = this.folder.list(), trusted?: Set<string>): Registered[] {
    const found = new Map<string, Registered>();
    for (const name of names) {
      const one = isRegistration(name) ? this.#read(name) : undefined;
      if (!one) continue;
      trusted?.add(name);
      const isSeen = one.entry.kind === 'process' ? isProcessRunning(one.entry) : isHere(one.entry);
      if (isSeen !== true && !this.#mayBeThere(name, one.entry, isSeen)) continue;
      const key = PROCESS_FILE.exec(name)?.[1] ?? name;
      const other = found.get(key);
      const registration = other ? joined(other, one) : one;
      found.set(key, { ...registration, names: [...(other?.names ?? []), name], isSeen: isSeen === true });
    }
    return [...found.values()];
  }

  // What cannot be seen counts as alive. A process that registered itself holds the lock of its
  // file while it lives, which every namespace can see.
  #mayBeThere(name: string, entry: Entry, isRunning: boolean | undefined): boolean {
    if (entry.kind === 'cgroup') return entry.namespace === DAMAGED || mayCgroupBeThere(entry);
    return isExplicit(name) ? isRunning === undefined : this.folder.isOwnerAlive(name);
  }

  // Undefined if the file's owner is not trusted.
  #read(name: string): Registration | undefined {
    // This process knows its own registration, whatever happened to the file.
    if (this.#self && name === this.ownName)
      return { entry: this.#self, user: process.geteuid!(), doubt: undefined };
    const file = readMemberFile(this.folder, name);
    if (!file) return undefined;
    const { user, isSure, isNameSure } = file;
    const record = decode(name, file.text);
    const entry = record ?? entryByName(name);
    if (!counts(entry, user)) return undefined;
    const doubt = isSure && (record || isNameSure) ? undefined : doubtOf(name, record !== undefined);
    return { entry, user, doubt: isSelf(entry) ? undefined : doubt };
  }
}

const explicitName = (process: ProcessIdentity) => `${processName(process)}-${EXPLICIT}`;

/** `valid`: what the value should be. */
const unknownMember = (value: unknown, valid: string) =>
  new NumalignError('ERR_UNKNOWN_MEMBER', `${value} is not ${valid}`, { value, valid });

// Otherwise a user who may write the folder could make root move any process.
function counts(entry: Entry, user: number): boolean {
  if (entry.kind === 'process') return entry.namespace !== pidNamespace() || mayVouch(user, entry.pid);
  if (entry.namespace === DAMAGED) return mayVouchForGroup(user, 0);
  const owner = isHere(entry) ? statSync(entry.path, { throwIfNoEntry: false })?.uid : undefined;
  return owner === undefined || mayVouchForGroup(user, owner);
}

// True for an ended process of another namespace that did not register itself: it has no lock to
// prove that it lives.
function hasEnded({ entry, names, isSeen }: Registered): boolean {
  return entry.kind === 'process' && !isSeen && names.every(isExplicit) && hasEndedElsewhere(entry);
}

// Whether a file remains from a registration that has ended. Processes of registered cgroups have
// masks but no registration.
function isLeftover(name: string, found: readonly Registered[]): boolean {
  const [, prefix, pid, start, namespace, , extension] = PROCESS_FILE.exec(name) ?? [];
  if (extension === undefined || found.some(({ names: [first] }) => first?.startsWith(`${prefix}-`)))
    return false;
  if (!name.endsWith(MASKS)) return true;
  const identity = { pid: Number(pid), start: start!, namespace: `pid:[${namespace}]` };
  return !(isProcessRunning(identity) ?? !hasEndedElsewhere(identity));
}
