// Owners: who a grant belongs to, and whether it still lives. A process owns through a locked file in owners/; the kernel drops the lock when
// the process dies, in whatever pid namespace.
import { randomUUID } from 'node:crypto';
import { NumalignError } from '../errors.js';
import { type NativeFolder, type NativeOwner, native } from '../native.js';
import type { OwnerRecord, PodAssignment } from './assignments.js';
import { encodePod } from './checkpoint.js';
import type { OwnerRegistry } from './store.js';

const MAX_COMMAND_LENGTH = 200;

/** What this process runs, for people; cut to a readable length. */
export function processCommand(): string {
  return process.argv.join(' ').slice(0, MAX_COMMAND_LENGTH);
}

// This environment (main thread or Worker) as an owner: its locked file says which grants are its own.
interface OwnOwner {
  readonly uuid: string;
  readonly file: NativeOwner;
  readonly pods: Map<string, PodAssignment>;
}

function writeFile({ uuid, file }: OwnOwner, pods: Iterable<PodAssignment>): void {
  const header = { format: 'numalign-owner', version: 1, uuid, pid: process.pid, command: processCommand() };
  file.write(`${JSON.stringify({ ...header, pods: [...pods].map(encodePod) })}\n`);
}

/** The owners of one state folder, this environment among them. Every member but the questions REQUIRES the state's lock. */
export class Owners implements OwnerRegistry {
  readonly #folder: NativeFolder;
  #own: OwnOwner | undefined;

  /** `folder`: owners/ of the state folder. */
  constructor(folder: NativeFolder) {
    this.#folder = folder;
  }

  /** The record of this environment as an owner, made on first use. */
  ownRecord(): OwnerRecord {
    if (!this.#own) {
      const uuid = randomUUID();
      this.#own = { uuid, file: this.#folder.createOwner(uuid), pods: new Map() };
    }
    return {
      kind: 'process',
      uuid: this.#own.uuid,
      pid: process.pid,
      command: processCommand(),
      cgroup: null,
      unknown: {},
    };
  }

  /** Whether the grant belongs to this environment. */
  isOwn(owner: OwnerRecord): boolean {
    return owner.kind === 'process' && this.#own?.uuid === owner.uuid;
  }

  /** Descriptor of the own file, for a child that shall keep the grants alive. */
  ownFd(): number | undefined {
    return this.#own?.file.fd;
  }

  /** Copies a grant of this environment into its file. Called before the commit: the file may claim more than the state, never less. */
  claim(pod: PodAssignment): void {
    const own = this.#own;
    if (!own || own.uuid !== pod.owner.uuid) return;
    writeFile(own, new Map(own.pods).set(pod.uid, pod).values());
    own.pods.set(pod.uid, pod);
  }

  /** Takes a grant out of the own file. Called once it is off the record; that the file then claims too much does no harm. */
  disclaim(pod: PodAssignment): void {
    const own = this.#own;
    if (!own?.pods.delete(pod.uid)) return;
    try {
      writeFile(own, own.pods.values());
    } catch (error) {
      if (!(error instanceof NumalignError)) throw error;
    }
  }

  /**
   * Gives up this environment's copy of the lock that its only grant lives by, and says whether a child still has one.
   * @throws ERR_OWNER_SHARED where other grants live by the same lock
   */
  handOver(uid: string): boolean {
    const own = this.#own;
    if (!own?.pods.has(uid)) return false;
    if (own.pods.size > 1) {
      throw new NumalignError(
        'ERR_OWNER_SHARED',
        `this process holds ${own.pods.size} grants by one lock: only a sole grant can be handed over`,
        { value: uid, valid: [...own.pods.keys()] },
      );
    }
    own.file.close();
    this.#own = undefined;
    return this.#folder.isOwnerAlive(own.uuid);
  }

  /** Grants of Workers of this process that have ended, whose threads are still on the CPUs. */
  orphans(pods: readonly PodAssignment[]): PodAssignment[] {
    return pods.filter(({ owner }) => owner.kind === 'process' && native.isOrphanedOwner(owner.uuid));
  }

  isAlive(owner: OwnerRecord): boolean {
    return owner.kind !== 'process' || this.isProcessAlive(owner.uuid);
  }

  /** Whether the process (or Worker) with this file lives. */
  isProcessAlive(uuid: string): boolean {
    return this.#own?.uuid === uuid || this.#folder.isOwnerAlive(uuid);
  }

  /** The grants whose owners are dead. Looks at each owner once. */
  deadPods(pods: readonly PodAssignment[]): PodAssignment[] {
    const alive = new Map<string, boolean>();
    return pods.filter(({ owner, formerOwner }) => {
      if (!alive.has(owner.uuid)) alive.set(owner.uuid, this.isAlive(owner));
      return !alive.get(owner.uuid) && !(formerOwner !== null && this.isProcessAlive(formerOwner));
    });
  }

  /** Whether any owner, known to the state or not, lives. */
  anyAlive(): boolean {
    return this.#folder.list().some((name) => this.#folder.isOwnerAlive(name));
  }

  /** Removes the files of dead owners. REQUIRES: a state that names none of them. */
  sweep(): void {
    for (const name of this.#folder.list()) {
      if (this.#own?.uuid !== name && !this.#folder.isOwnerAlive(name)) this.#folder.remove(name);
    }
  }
}
