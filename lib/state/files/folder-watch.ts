// FolderWatch: reports commits of other processes, and to waiters in the queue that another stops
// waiting. Nothing else wakes the process. A stream of commits wakes a process outside the queue
// once a second at most.
import { join } from 'node:path';
import { FileWatch } from './file-watch.js';
import { IN_DELETE, IN_MOVED_FROM, watchFolder } from './folder-events.js';
import { LookBudget } from './look-budget.js';

/** Called when holdings may have changed. It says only that a look is worthwhile. */
export type Listener = () => void;

/** How a listener listens. */
export interface Listening {
  /** The watch does not keep the process alive. */
  readonly isQuiet?: boolean;
  /**
   * The listener waits in the queue. It hears of each commit at once, and when another stops
   * waiting.
   */
  readonly queue?: boolean;
}

// The longest delay of a Node timer. It keeps the process alive and wakes it every 24 days.
const LONGEST_MS = 2 ** 31 - 1;

/** Watches while it has listeners. Keeps the process alive while one of them is not quiet. */
export class FolderWatch {
  readonly #queuePath: string;
  readonly #file: FileWatch;
  readonly #listeners = new Map<Listener, Listening>();
  readonly #rung = new Set<'state' | 'queue'>();
  #endQueue: (() => void) | undefined;
  #alive: NodeJS.Timeout | undefined;
  readonly #budget = new LookBudget();
  // The next look of listeners outside the queue.
  #next: NodeJS.Timeout | undefined;

  /** `file`: the file in the folder that commits change. */
  constructor(path: string, file: string) {
    this.#queuePath = join(path, 'waiting');
    this.#file = new FileWatch(join(path, file), () => this.#ring('state'));
  }

  /** Returns a function that removes the listener. */
  add(listener: Listener, listening: Listening = {}): () => void {
    // Wrapped so that one function can be added twice.
    const notify = () => listener();
    this.#listeners.set(notify, listening);
    this.#follow();
    return () => {
      if (this.#listeners.delete(notify)) this.#follow();
    };
  }

  /** Calls all listeners: something happened that the folder does not show. */
  ring(): void {
    this.#ring('state');
  }

  /** The path has another folder now. */
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

  // Without a watch, a waiter still looks twice a second.
  #watchQueue(): (() => void) | undefined {
    try {
      return watchFolder(this.#queuePath, IN_DELETE | IN_MOVED_FROM, () => this.#ring('queue'));
    } catch {
      return undefined;
    }
  }

  // Calls listeners once for all events in one turn of the event loop.
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

  // True if listeners outside the queue may look now. If not, a timer rings later, and until then
  // commits do not wake this process unless it also has a waiter.
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
