// FolderWatch: tells when another process commits, and those that wait in the queue when another
// stops waiting. Between these nothing wakes the process. A stream of commits wakes a process that
// does not wait once a second, however many they are.
import { join } from 'node:path';
import { FileWatch } from './file-watch.js';
import { IN_DELETE, IN_MOVED_FROM, watchFolder } from './folder-events.js';
import { LookBudget } from './look-budget.js';

/**
 * Told of everything that may have changed who holds what. It says only that a look is worth while.
 */
export type Listener = () => void;

/** How somebody listens. */
export interface Listening {
  /** It does not keep the process alive. */
  readonly isQuiet?: boolean;
  /** It waits in the queue: hears of each commit at once, and when another stops waiting. */
  readonly queue?: boolean;
}

// The longest that a timer takes: it keeps the process alive, and wakes it every 24 days.
const LONGEST_MS = 2 ** 31 - 1;

/** Watches while it has listeners, and keeps the process alive as long as one of them is not quiet. */
export class FolderWatch {
  readonly #queuePath: string;
  readonly #file: FileWatch;
  readonly #listeners = new Map<Listener, Listening>();
  readonly #rung = new Set<'state' | 'queue'>();
  #endQueue: (() => void) | undefined;
  #alive: NodeJS.Timeout | undefined;
  readonly #budget = new LookBudget();
  // Of those that do not wait in the queue.
  #next: NodeJS.Timeout | undefined;

  /** `file`: the one in the folder that commits change. */
  constructor(path: string, file: string) {
    this.#queuePath = join(path, 'waiting');
    this.#file = new FileWatch(join(path, file), () => this.#ring('state'));
  }

  /** Answers how to end it. */
  add(listener: Listener, listening: Listening = {}): () => void {
    // Wrapped, so that one function can listen twice.
    const own = () => listener();
    this.#listeners.set(own, listening);
    this.#follow();
    return () => {
      if (this.#listeners.delete(own)) this.#follow();
    };
  }

  /** Calls everybody that listens: something has happened that the folder does not show. */
  ring(): void {
    this.#ring('state');
  }

  /** Another folder is at the path. */
  restart(): void {
    this.#file.restart();
    this.#endQueue?.();
    this.#endQueue = undefined;
    this.#follow();
  }

  #follow(): void {
    const all = [...this.#listeners.values()];
    if (all.length > 0) this.#file.start();
    else {
      this.#file.stop();
      clearTimeout(this.#next);
      this.#next = undefined;
    }
    if (!all.some(({ queue }) => queue)) {
      this.#endQueue?.();
      this.#endQueue = undefined;
    } else {
      this.#endQueue ??= this.#watchQueue();
      this.#file.resume();
    }
    const isKept = all.some(({ isQuiet }) => !isQuiet);
    if (isKept === (this.#alive !== undefined)) return;
    clearInterval(this.#alive);
    this.#alive = isKept ? setInterval(() => {}, LONGEST_MS) : undefined;
  }

  // Who waits looks now and then besides.
  #watchQueue(): (() => void) | undefined {
    try {
      return watchFolder(this.#queuePath, IN_DELETE | IN_MOVED_FROM, () => this.#ring('queue'));
    } catch {
      return undefined;
    }
  }

  // Once for all that happens in one turn of the event loop.
  #ring(what: 'state' | 'queue'): void {
    const isFirst = this.#rung.size === 0;
    this.#rung.add(what);
    if (!isFirst) return;
    setImmediate(() => {
      const isState = this.#rung.has('state');
      this.#rung.clear();
      const isDue = isState && this.#isDue();
      for (const [listener, { queue }] of [...this.#listeners]) if (queue || isDue) listener();
    });
  }

  // Whether those that do not wait in the queue hear of it now; else they hear later. Until then
  // commits do not wake this process, unless another here waits.
  #isDue(): boolean {
    const all = [...this.#listeners.values()];
    if (all.every(({ queue }) => queue)) return false;
    const waitMs = this.#budget.take(performance.now());
    if (waitMs === 0) return true;
    if (!all.some(({ queue }) => queue)) this.#file.pause();
    this.#next ??= setTimeout(() => {
      this.#next = undefined;
      this.#file.resume();
      this.#ring('state');
    }, waitMs).unref();
    return false;
  }
}
