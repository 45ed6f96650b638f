// MemberRequests: asks members that this process cannot move (another pid namespace, another user)
// to leave CPUs. They answer once they have left. The asking process holds the state's lock. A
// member that is asked only leaves CPUs, so a late answer takes nothing from others.

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { unlessThrown } from '../../base/errors.js';
import { native } from '../../base/native.js';
import type { NativeFolder } from '../../base/native-files.js';
import { CpuSet } from '../../machine/cpu-set.js';
import { FileWatch } from '../../state/files/file-watch.js';
import { IN_MOVED_TO, watchFolder } from '../../state/files/folder-events.js';
import { type MemberFile, readMemberFile } from './member-file.js';

const REQUEST = 'clear';
const ANSWER = '.left';
const LOOK_MS = 2;
// A process that removes a registration may be about to remove the state folder, and a request that
// fails now may succeed a moment later.
const LATER_MS = 1000;

export interface ClearRequest {
  readonly id: string;
  /** The registrations that the request is for. */
  readonly names: readonly string[];
  readonly taken: CpuSet;
  readonly pool: CpuSet;
  /** True if CPUs were given back, so no answer is expected. */
  readonly isOver: boolean;
}

// The text contains the name, so that renaming a file cannot forge an answer.
const answerText = (id: string, name: string) => `${id} ${name}`;

function isAnswer({ text, isSure }: MemberFile, id: string, name: string): boolean {
  return isSure && text === answerText(id, name);
}

// The folder may no longer exist, or may be inaccessible. The asking process then gets no answer,
// and reports that.
function quietly<T>(look: () => T): () => T | undefined {
  return () => {
    return unlessThrown(() => look());
  };
}

export class MemberRequests {
  #watch: FileWatch | undefined;
  #endRequests = () => {};
  readonly #timers = new Map<() => void, NodeJS.Timeout>();
  #lastAnswer = '';

  /** `path`: the folder as this process sees it. */
  constructor(
    private readonly folder: NativeFolder,
    private readonly path: string,
  ) {}

  /**
   * Sends a request, and waits for the answers of members that live. Returns the registrations that
   * have answered. `mayAnswer`: whether a user may answer for a registration. REQUIRES: the lock.
   */
  async ask(
    request: Omit<ClearRequest, 'id'>,
    timeoutMs: number,
    isThere: (name: string) => boolean,
    mayAnswer: (name: string, user: number) => boolean,
  ): Promise<ReadonlySet<string>> {
    const id = this.send(request);
    const respondents = new Set<string>();
    // performance.now() would make Node load another module.
    for (const endS = process.uptime() + timeoutMs / 1000; ; ) {
      // The time is read before the files: this process may be suspended at any moment, and answers
      // from that time count.
      const isLate = process.uptime() >= endS;
      for (const name of request.names) {
        const file = readMemberFile(this.folder, `${name}${ANSWER}`);
        if (file && isAnswer(file, id, name) && mayAnswer(name, file.user)) respondents.add(name);
      }
      // A process that has ended does not answer.
      const isWaiting = request.names.some((name) => !respondents.has(name) && isThere(name));
      if (!isWaiting || isLate) return respondents;
      await pause(LOOK_MS);
    }
  }

  /** Sends a request without waiting. */
  send({ names, taken, pool, isOver }: Omit<ClearRequest, 'id'>): string {
    const id = native.randomUuid();
    this.folder.replace(REQUEST, JSON.stringify({ id, names, taken: `${taken}`, pool: `${pool}`, isOver }));
    return id;
  }

  /**
   * Calls `obey` with each request to the registration `name`, and answers if it returns true.
   * Calls `missing` if another program has removed the registration, but not the state folder. Does
   * not keep the process alive.
   */
  listen(name: string, obey: (request: ClearRequest) => boolean, missing: () => void): void {
    if (this.#watch) return;
    this.restart = () => {
      this.stop();
      this.listen(name, obey, missing);
    };
    const look = () => {
      const request = this.#read();
      if (!request?.names.includes(name) || request.id === this.#lastAnswer) return;
      this.#lastAnswer = request.id;
      if (obey(request)) this.folder.replace(`${name}${ANSWER}`, answerText(request.id, name));
      else {
        this.#lastAnswer = '';
        this.#lookLater(look);
      }
    };
    const isMissing = () => this.folder.version(name) === undefined;
    const check = () => {
      // If the folder is gone too, the watch reports its return.
      if (!isMissing() || !existsSync(dirname(this.path))) return;
      missing();
      this.#lookLater(check);
    };
    const listen = quietly(() => {
      this.#endRequests();
      this.#endRequests = watchFolder(this.path, IN_MOVED_TO, (mask, file) => {
        if (mask !== IN_MOVED_TO || file === REQUEST) quietly(look)();
      });
    });
    // Any change of the folder at this path may also remove the registration.
    this.#watch = new FileWatch(join(this.path, name), () => {
      listen();
      quietly(look)();
      if (quietly(isMissing)()) this.#lookLater(check);
    });
    this.#watch.start();
    listen();
  }

  #lookLater(look: () => void): void {
    if (this.#timers.has(look)) return;
    const timer = setTimeout(() => {
      this.#timers.delete(look);
      quietly(look)();
    }, LATER_MS);
    this.#timers.set(look, timer.unref());
  }

  /** Call this if another folder is at the path. */
  restart = () => {};

  stop(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
    this.#watch?.stop();
    this.#watch = undefined;
    this.#endRequests();
    this.#endRequests = () => {};
  }

  #read(): ClearRequest | undefined {
    try {
      const file = readMemberFile(this.folder, REQUEST);
      if (!file?.isSure) return undefined;
      const request = JSON.parse(file.text);
      return { ...request, taken: CpuSet.parse(request.taken), pool: CpuSet.parse(request.pool) };
    } catch {
      return undefined;
    }
  }
}
