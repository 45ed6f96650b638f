// AttachmentKeeper: keeps an attachment right until its container ends.
import { basename, dirname } from 'node:path';
import type { Manager } from 'numalign';
import type { Log } from '../base/log.js';
import type { ContainerAttachment } from './container-attachment.js';
import { FolderWatch } from './folder-watch.js';

export interface AttachmentKeeperOptions {
  readonly attachment: ContainerAttachment;
  readonly manager: Manager;
  readonly log: Log;
  /**
   * How often it looks, in milliseconds, beside when it is told: this is for containers that start
   * meanwhile, and for what the kernel changes by itself. Default: 10,000, as the kubelet's
   * `cpuManagerReconcilePeriod`.
   */
  readonly reconcilePeriodMs?: number;
}

const PERIOD_MS = 10_000;
/** Somebody who puts it back each time must not keep both busy. */
const FIRST_PAUSE_MS = 20;

/**
 * Looks at once when a grant has changed, somebody has written the container's cpuset or its cgroup
 * is removed (the kernel tells of these), and in rounds. Where somebody else writes it again and again, it waits longer from
 * time to time, one period at most.
 */
export class AttachmentKeeper {
  readonly #attachment: ContainerAttachment;
  readonly #manager: Manager;
  readonly #log: Log;
  readonly #periodMs: number;
  readonly #watch = new FolderWatch((path, name) => this.#see(path, name));
  readonly #onChange = () => this.#look();
  #rounds: NodeJS.Timeout | undefined;
  #pause: NodeJS.Timeout | undefined;
  #pauseMs = FIRST_PAUSE_MS;
  #looksSinceRound = 0;
  #turn: Promise<void> = Promise.resolve();
  #end = () => {};
  /** Resolves when the container has ended and the others have come back, or at {@link close}. */
  readonly ended = new Promise<void>((resolve) => {
    this.#end = resolve;
  });

  constructor({ attachment, manager, log, reconcilePeriodMs = PERIOD_MS }: AttachmentKeeperOptions) {
    this.#attachment = attachment;
    this.#manager = manager;
    this.#log = log;
    this.#periodMs = reconcilePeriodMs;
  }

  /** The attachment is started before. */
  async start(): Promise<void> {
    const { folder } = this.#attachment.attached.cpuset;
    // The folder above tells that the container's is removed.
    this.#watch.set([folder, dirname(folder)]);
    this.#manager.on('change', this.#onChange);
    this.#rounds = setInterval(() => this.#round(), this.#periodMs);
    // What has changed since the attachment.
    this.#turn = this.#reconcile();
    await this.#turn;
  }

  /** Leaves everything as it is. */
  async close(): Promise<void> {
    this.#stop();
    await this.#turn;
  }

  #stop(): void {
    this.#manager.off('change', this.#onChange);
    this.#watch.close();
    clearInterval(this.#rounds);
    clearTimeout(this.#pause);
    this.#rounds = undefined;
    this.#end();
  }

  #see(path: string, name: string | null): void {
    const { folder } = this.#attachment.attached.cpuset;
    const names = path === folder ? ['cpuset.cpus', 'cpuset.mems'] : [basename(folder)];
    if (name === null || names.includes(name)) this.#look();
  }

  #round(): void {
    if (this.#looksSinceRound <= 1) this.#pauseMs = FIRST_PAUSE_MS;
    this.#looksSinceRound = 0;
    this.#look();
  }

  // Several writes that follow each other are one reason to look.
  #look(): void {
    if (this.#pause !== undefined || this.#rounds === undefined) return;
    this.#looksSinceRound++;
    this.#pause = setTimeout(() => {
      this.#pause = undefined;
      this.#turn = this.#turn.then(() => this.#reconcile());
    }, this.#pauseMs);
    this.#pauseMs = Math.min(this.#pauseMs * 2, this.#periodMs);
  }

  async #reconcile(): Promise<void> {
    if (this.#rounds === undefined) return;
    try {
      if (!(await this.#attachment.reconcile())) this.#stop();
    } catch (error) {
      const { message } = error as Error;
      this.#log('error', `the container's cpuset could not be compared: ${message}`, { error });
      this.#look();
    }
  }
}
