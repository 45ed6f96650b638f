// FolderWatch: reports commits of other processes. Nothing else wakes the process. A stream of
// commits wakes a process that does not wait for one once a second at most.
import { join } from 'node:path';
import { FileWatch } from './file-watch.js';
import { LookBudget } from './look-budget.js';

/** Called when holdings may have changed. It says only that a look is worthwhile. */
export type Listener = () => void;

/** How a listener listens. */
export interface Listening {
  /** The watch does not keep the process alive. */
  readonly isQuiet?: boolean;
  /** The listener waits for a commit, and hears of each at once. */
  readonly atOnce?: boolean;
}

// The longest delay of a Node timer. It keeps the process alive and wakes it every 24 days.
const LONGEST_MS = 2 ** 31 - 1;

/** Watches while it has listeners. Keeps the process alive while one of them is not quiet. */
export class FolderWatch {
  readonly #file: FileWatch;
  readonly #listeners = new Map<Listener, Listening>();
  #isRung = false;
  #alive: NodeJS.Timeout | undefined;
  readonly #budget = new LookBudget();
  // The next look of listeners that do not hear of each commit.
  #next: NodeJS.Timeout | undefined;

  /** `file`: the file in the folder that commits change. */
  constructor(path: string, file: string) {
    this.#file = new FileWatch(join(path, file), () => this.ring());
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

  /** The path has another folder now. */
  restart(): void {
    this.#file.restart();
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
    if (all.some(({ atOnce }) => atOnce)) this.#file.resume();
    const isKept = all.some(({ isQuiet }) => !isQuiet);
    if (isKept === (this.#alive !== undefined)) return;
    clearInterval(this.#alive);
    this.#alive = isKept ? setInterval(() => {}, LONGEST_MS) : undefined;
  }

  /** Calls listeners, once for all events in one turn of the event loop. */
  ring(): void {
    if (this.#isRung) return;
    this.#isRung = true;
    setImmediate(() => {
      this.#isRung = false;
      const isDue = this.#isDue();
      for (const [listener, { atOnce }] of [...this.#listeners]) if (atOnce || isDue) listener();
    });
  }

  // True if the other listeners may look now. If not, a timer rings later, and until then commits do
  // not wake this process unless a listener hears of each.
  #isDue(): boolean {
    const all = [...this.#listeners.values()];
    if (all.every(({ atOnce }) => atOnce)) return false;
    // performance.now() would make Node load another module.
    const waitMs = this.#budget.take(process.uptime() * 1000);
    if (waitMs === 0) return true;
    if (!all.some(({ atOnce }) => atOnce)) this.#file.pause();
    this.#next ??= setTimeout(() => {
      this.#next = undefined;
      this.#file.resume();
      this.ring();
    }, waitMs).unref();
    return false;
  }
}
