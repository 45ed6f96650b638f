// FileWatch: tells that a file may have changed: what is in it, or which file its path leads to.
import { existsSync, realpathSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { unlessRefused } from '../../base/errors.js';
import {
  IN_ATTRIB,
  IN_CREATE,
  IN_DELETE_SELF,
  IN_MODIFY,
  IN_MOVE_SELF,
  IN_MOVED_TO,
  watchFile,
  watchFolder,
} from './folder-events.js';

const GONE = IN_DELETE_SELF | IN_MOVE_SELF;
// Where another file takes its place or its name is removed, the file has one link fewer.
const REPLACED = IN_ATTRIB | GONE;
// Where the kernel has no watch left to give (inotify's limits).
const PERIOD_WITHOUT_INOTIFY_MS = 50;

/**
 * The file and the folders above may be made, removed and replaced at any time. Everything that
 * happens after `start` is told, perhaps more than once, and nothing else wakes the process; which
 * this never keeps alive.
 */
export class FileWatch {
  readonly #path: string;
  readonly #changed: () => void;
  #isStarted = false;
  #ends: (() => void)[] = [];
  // One of them.
  #endFile: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** `changed` is called to look after the file is watched, and so misses nothing. */
  constructor(path: string, changed: () => void) {
    this.#path = path;
    this.#changed = changed;
  }

  start(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    this.#follow();
  }

  stop(): void {
    this.#isStarted = false;
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#unwatch();
  }

  /** Nothing that happens to the file is told until {@link resume}. */
  pause(): void {
    this.#endFile?.();
    this.#endFile = undefined;
  }

  resume(): void {
    if (this.#isStarted && !this.#endFile) this.#follow();
  }

  /** The path may lead to something else. */
  restart(): void {
    this.#tell(IN_MOVE_SELF);
  }

  #unwatch(): void {
    for (const end of this.#ends) end();
    this.#ends = [];
    this.#endFile = undefined;
  }

  // Where the kernel does not watch, it is asked again at each look.
  #follow(): void {
    const before = this.#ends;
    this.#ends = [];
    try {
      this.#watch();
      clearInterval(this.#timer);
      this.#timer = undefined;
    } catch {
      this.#unwatch();
      this.#timer ??= setInterval(() => this.restart(), PERIOD_WITHOUT_INOTIFY_MS).unref();
    } finally {
      // After the new ones: what is watched still, the kernel is not asked to watch again.
      for (const end of before) end();
    }
  }

  // The file; else the folders in which it, or a folder that leads to it, will be made.
  #watch(): void {
    const folder = dirname(this.#path);
    for (;;) {
      if (
        this.#add(() => watchFile(this.#path, IN_MODIFY | REPLACED, (mask) => this.#tell(mask & ~IN_MODIFY)))
      ) {
        this.#endFile = this.#ends.at(-1);
        if (this.#add(() => watchFolder(folder, GONE, () => this.#tell(GONE)))) return;
      }
      this.#unwatch();
      // It may have been made before it was watched for.
      if (!existsSync(this.#watchMaking())) return;
      this.#unwatch();
    }
  }

  // Answers what is made first. All folders above: one that is removed while somebody has it open
  // does not say so.
  #watchMaking(): string {
    let first: string | undefined;
    for (let path = this.#path; path !== dirname(path); path = dirname(path)) {
      const watch = () => this.#watchMakingOf(path);
      if (first === undefined ? watch() : unlessRefused(watch)) first ??= path;
    }
    return first!;
  }

  // False where there is no folder in which it could be made.
  #watchMakingOf(path: string): boolean {
    const made = (mask: number, name: string) => {
      if (name === '' || name === basename(path)) this.#tell(mask);
    };
    const folder = () => realpathSync(dirname(path));
    return this.#add(() => watchFolder(folder(), IN_CREATE | IN_MOVED_TO | GONE, made));
  }

  // False where nothing is at the path.
  #add(watch: () => () => void): boolean {
    try {
      this.#ends.push(watch());
      return true;
    } catch (error) {
      if (isMissing(error)) return false;
      throw error;
    }
  }

  // `change`: beside what is in the file.
  #tell(change: number): void {
    if (!this.#isStarted) return;
    if (change !== 0) this.#follow();
    this.#changed();
  }
}

function isMissing(error: unknown): boolean {
  const { code, errnoName } = error as { code?: string; errnoName?: string };
  return code === 'ENOENT' || errnoName === 'ENOENT';
}
