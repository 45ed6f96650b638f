// MemberRequests: members that nobody here can move (another pid namespace, another user) are asked
// to leave CPUs themselves, and answer when they have. The one that asks holds the state's lock.
// Whoever is asked only leaves: late or early, that takes CPUs from nobody.
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { NativeFolder } from '../../base/native-files.js';
import { CpuSet } from '../../machine/cpu-set.js';
import { FileWatch } from '../../state/files/file-watch.js';
import { IN_MOVED_TO, watchFolder } from '../../state/files/folder-events.js';
import { type MemberFile, readMemberFile } from './member-file.js';

const REQUEST = 'clear';
const ANSWER = '.left';
const LOOK_MS = 2;
// A process that removes a registration may be about to remove the state folder; and what cannot be obeyed
// now may be a moment later.
const LATER_MS = 1000;

export interface ClearRequest {
  readonly id: string;
  /** The registrations that are asked. */
  readonly names: readonly string[];
  readonly taken: CpuSet;
  readonly pool: CpuSet;
  /** CPUs have been given back: nobody waits for an answer. */
  readonly isOver: boolean;
}

// With the name, so that nobody can rename one member's answer to another's.
const answerText = (id: string, name: string) => `${id} ${name}`;

function isAnswer({ text, isSure }: MemberFile, id: string, name: string): boolean {
  return isSure && text === answerText(id, name);
}

// The folder may be gone, or closed to us: the process that asks hears nothing, and says so.
function quietly<T>(look: () => T): () => T | undefined {
  return () => {
    try {
      return look();
    } catch {
      return undefined;
    }
  };
}

export class MemberRequests {
  readonly #folder: NativeFolder;
  readonly #path: string;
  #watch: FileWatch | undefined;
  #endRequests = () => {};
  readonly #later = new Map<() => void, NodeJS.Timeout>();
  #answered = '';

  /** `path`: of the folder, as this process sees it. */
  constructor(folder: NativeFolder, path: string) {
    this.#folder = folder;
    this.#path = path;
  }

  /**
   * Asks, and waits for the answers of those that are there; returns the registrations that have
   * answered. `mayAnswer`: whether a user may answer for a registration. REQUIRES: the lock.
   */
  async ask(
    request: Omit<ClearRequest, 'id'>,
    timeoutMs: number,
    isThere: (name: string) => boolean,
    mayAnswer: (name: string, user: number) => boolean,
  ): Promise<ReadonlySet<string>> {
    const id = this.tell(request);
    const answered = new Set<string>();
    for (const end = performance.now() + timeoutMs; ; ) {
      // Asked before: this process may be held up at any moment, and what was answered meanwhile
      // counts.
      const isLate = performance.now() >= end;
      for (const name of request.names) {
        const file = readMemberFile(this.#folder, `${name}${ANSWER}`);
        if (file && isAnswer(file, id, name) && mayAnswer(name, file.user)) answered.add(name);
      }
      // Whoever has ended answers no more.
      const isWaiting = request.names.some((name) => !answered.has(name) && isThere(name));
      if (!isWaiting || isLate) return answered;
      await pause(LOOK_MS);
    }
  }

  /** Asks, and does not wait. */
  tell({ names, taken, pool, isOver }: Omit<ClearRequest, 'id'>): string {
    const id = randomUUID();
    this.#folder.replace(REQUEST, JSON.stringify({ id, names, taken: `${taken}`, pool: `${pool}`, isOver }));
    return id;
  }

  /**
   * Has `obey` called with what the registration `name` is asked; it is answered where that is
   * true. Has `missing` called where somebody has removed the registration, but not the state
   * folder. Does not keep the process alive.
   */
  listen(name: string, obey: (request: ClearRequest) => boolean, missing: () => void): void {
    if (this.#watch) return;
    this.restart = () => {
      this.stop();
      this.listen(name, obey, missing);
    };
    const look = () => {
      const request = this.#read();
      if (!request?.names.includes(name) || request.id === this.#answered) return;
      this.#answered = request.id;
      if (obey(request)) this.#folder.replace(`${name}${ANSWER}`, answerText(request.id, name));
      else {
        this.#answered = '';
        this.#lookLater(look);
      }
    };
    const isMissing = () => this.#folder.version(name) === undefined;
    const check = () => {
      // Where the folder is gone too, its return is told.
      if (!isMissing() || !existsSync(dirname(this.#path))) return;
      missing();
      this.#lookLater(check);
    };
    const listen = quietly(() => {
      this.#endRequests();
      this.#endRequests = watchFolder(this.#path, IN_MOVED_TO, (mask, file) => {
        if (mask !== IN_MOVED_TO || file === REQUEST) quietly(look)();
      });
    });
    // With whatever becomes of the folder the registration is not there any more.
    this.#watch = new FileWatch(join(this.#path, name), () => {
      listen();
      quietly(look)();
      if (quietly(isMissing)()) this.#lookLater(check);
    });
    this.#watch.start();
    listen();
  }

  #lookLater(look: () => void): void {
    if (this.#later.has(look)) return;
    const timer = setTimeout(() => {
      this.#later.delete(look);
      quietly(look)();
    }, LATER_MS);
    this.#later.set(look, timer.unref());
  }

  /** Another folder is at the path. */
  restart = () => {};

  stop(): void {
    for (const timer of this.#later.values()) clearTimeout(timer);
    this.#later.clear();
    this.#watch?.stop();
    this.#watch = undefined;
    this.#endRequests();
    this.#endRequests = () => {};
  }

  #read(): ClearRequest | undefined {
    try {
      const file = readMemberFile(this.#folder, REQUEST);
      if (!file?.isSure) return undefined;
      const given = JSON.parse(file.text);
      return { ...given, taken: CpuSet.parse(given.taken), pool: CpuSet.parse(given.pool) };
    } catch {
      return undefined;
    }
  }
}
