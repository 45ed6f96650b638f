// RuntimeUpdates: a cpuset that numalign has written itself is unknown to the runtime, and to systemd,
// which write theirs again at the next occasion. The runtime is told after a while.
import type { Log } from '../base/log.js';
import type { ContainerUpdate } from '../nri/messages.js';
import { update } from './container-placement.js';
import type { Inventory, KnownContainer } from './inventory.js';
import { fieldsOf } from './reports.js';

/** Tells the runtime where a container runs; rejects if that is not possible now. */
export type TellRuntime = (update: ContainerUpdate) => Promise<unknown>;

export interface RuntimeUpdatesOptions {
  readonly inventory: Inventory;
  readonly tell: TellRuntime;
  readonly log: Log;
}

// Pools change in bursts, and each update is a process of the runtime's.
const DELAY_MS = 1000;

export class RuntimeUpdates {
  readonly #options: RuntimeUpdatesOptions;
  readonly #owed = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #isTelling = false;
  #lastFailure = '';
  #isClosed = false;

  constructor(options: RuntimeUpdatesOptions) {
    this.#options = options;
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  /** `isUrgent`: numalign could not write it, and only the runtime can. */
  owe({ id }: KnownContainer, { isUrgent = false } = {}): void {
    this.#owed.add(id);
    if (this.#isTelling || (this.#timer && !isUrgent)) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#tellAll(), isUrgent ? 0 : DELAY_MS).unref();
  }

  /** What an answer tells is not owed any more. */
  told(updates: readonly ContainerUpdate[]): void {
    for (const { container_id } of updates) this.#owed.delete(container_id);
  }

  async #tellAll(): Promise<void> {
    this.#timer = undefined;
    this.#isTelling = true;
    // One after the other: a runtime that creates containers must not wait for these.
    for (const id of this.#owed) {
      this.#owed.delete(id);
      const container = this.#options.inventory.find(id);
      if (container && !this.#isClosed) await this.#tell(container);
    }
    this.#isTelling = false;
  }

  async #tell({ id, subject, cpus, placement }: KnownContainer): Promise<void> {
    if (!cpus) return;
    const { tell, log } = this.#options;
    try {
      await tell(update(id, placement?.cpus ?? cpus, placement?.memoryNodes, true));
      this.#lastFailure = '';
    } catch (error) {
      const { message } = error as Error;
      if (message !== this.#lastFailure)
        log('warn', `the runtime was not told where a container runs: ${message}`, {
          ...fieldsOf(subject),
          id,
        });
      this.#lastFailure = message;
    }
  }
}
