// FileWatch: reports that a file may have changed: its contents, or which file its path leads to.
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

const REMOVED = IN_DELETE_SELF | IN_MOVE_SELF;
// Replacing or unlinking the file lowers its link count, which IN_ATTRIB reports.
const REPLACED = IN_ATTRIB | REMOVED;
// Used if inotify has reached its limits.
const PERIOD_WITHOUT_INOTIFY_MS = 50;

/**
 * Watches a file that may be made, removed or replaced at any time, as may the folders above it.
 * Reports every change after `start`, perhaps more than once. Nothing else wakes the process, and a
 * watch never keeps the process alive.
 */
export class FileWatch {
  #isStarted = false;
  #ends: (() => void)[] = [];
  // The watch of the file itself; also in #ends.
  #endFile: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;

  /**
   * `onChange` runs after the watch on the file is in place, so that a look misses no later change.
   */
  constructor(
    private readonly path: string,
    private readonly onChange: () => void,
  ) {}

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

  /** Reports nothing about the file itself until {@link resume}. */
  pause(): void {
    this.#endFile?.();
    this.#endFile = undefined;
  }

  resume(): void {
    if (this.#isStarted && !this.#endFile) this.#follow();
  }

  /** Watches again: the path may lead to another file. */
  restart(): void {
    this.#tell(IN_MOVE_SELF);
  }

  #unwatch(): void {
    for (const end of this.#ends) end();
    this.#ends = [];
    this.#endFile = undefined;
  }

  // If inotify refuses, each look tries again.
  #follow(): void {
    const before = this.#ends;
    this.#ends = [];
    try {
      this.#watch();
      if (this.#timer) clearInterval(this.#timer);
      this.#timer = undefined;
    } catch {
      this.#unwatch();
      this.#timer ??= setInterval(() => this.restart(), PERIOD_WITHOUT_INOTIFY_MS).unref();
    } finally {
      // Watch first, then end the old watches: the kernel keeps a watch that both share.
      for (const end of before) end();
    }
  }

  // Watches the file if it exists; if not, the folders where it, or a folder above it, may appear.
  #watch(): void {
    const folder = dirname(this.path);
    for (;;) {
      if (
        this.#add(() => watchFile(this.path, IN_MODIFY | REPLACED, (mask) => this.#tell(mask & ~IN_MODIFY)))
      ) {
        this.#endFile = this.#ends.at(-1);
        if (this.#add(() => watchFolder(folder, REMOVED, () => this.#tell(REMOVED)))) return;
      }
      this.#unwatch();
      // The file may have appeared before the watch began.
      if (!existsSync(this.#watchMaking())) return;
      this.#unwatch();
    }
  }

  // Returns the path that must appear first. Watches all folders above: the kernel reports no
  // removal of a folder that a process has open.
  #watchMaking(): string {
    let first: string | undefined;
    for (let path = this.path; path !== dirname(path); path = dirname(path)) {
      const watch = () => this.#watchMakingOf(path);
      if (first === undefined ? watch() : unlessRefused(watch)) first ??= path;
    }
    return first!;
  }

  // False if the parent folder does not exist.
  #watchMakingOf(path: string): boolean {
    const onEvent = (mask: number, name: string) => {
      if (name === '' || name === basename(path)) this.#tell(mask);
    };
    const folder = () => realpathSync(dirname(path));
    return this.#add(() => watchFolder(folder(), IN_CREATE | IN_MOVED_TO | REMOVED, onEvent));
  }

  // False if nothing is at the path.
  #add(watch: () => () => void): boolean {
    try {
      this.#ends.push(watch());
      return true;
    } catch (error) {
      if (isMissing(error)) return false;
      throw error;
    }
  }

  // `change`: the events other than IN_MODIFY.
  #tell(change: number): void {
    if (!this.#isStarted) return;
    if (change !== 0) this.#follow();
    this.onChange();
  }
}

function isMissing(error: unknown): boolean {
  const { code, errnoName } = error as { code?: string; errnoName?: string };
  return code === 'ENOENT' || errnoName === 'ENOENT';
}
