// AttachmentKeeper: keeps an attachment as it should be until its container ends.
import { basename, dirname } from 'node:path';
import type { Manager } from 'numalign';
import { Backoff } from 'numalign/tools';
import type { Log } from '../base/log.js';
import { reported } from '../base/reported.js';
import { CgroupWatch } from './cgroup-watch.js';
import type { ContainerAttachment } from './container-attachment.js';
import type { ContainerRuntime } from './container-runtime.js';
import { StartWatch } from './start-watch.js';

export interface AttachmentKeeperOptions {
  readonly attachment: ContainerAttachment;
  readonly manager: Manager;
  readonly runtime: Pick<ContainerRuntime, 'socketPath'>;
  readonly log: Log;
  /**
   * How often it looks besides its notices, in milliseconds: for changes that the kernel makes by
   * itself, and for starting containers if the runtime is not containerd. Default: 10,000, like the
   * kubelet's `cpuManagerReconcilePeriod`.
   */
  readonly reconcilePeriodMs?: number;
}

const PERIOD_MS = 10_000;
/** Keeps a conflict with another program from making both busy. */
const FIRST_PAUSE_MS = 20;

/**
 * Looks when a grant has changed, when another container has started, when the container's cpuset
 * was written or its cgroup is removed (by notices of the kernel), and periodically. If another
 * program keeps writing the cpuset, it waits longer each time, at most one period.
 */
export class AttachmentKeeper {
  readonly #attachment: ContainerAttachment;
  readonly #manager: Manager;
  readonly #log: Log;
  readonly #periodMs: number;
  readonly #watch = new CgroupWatch((path, name) => this.#see(path, name));
  readonly #starts: StartWatch;
  readonly #onChange = () => this.#look(FIRST_PAUSE_MS);
  #rounds: NodeJS.Timeout | undefined;
  #pause: NodeJS.Timeout | undefined;
  #pauseEnd = 0;
  // After writes.
  readonly #backoff: Backoff;
  #writesSinceRound = 0;
  #turn: Promise<void> = Promise.resolve();
  #end = () => {};
  /** Resolves when the container has ended and the others have returned, or at {@link close}. */
  readonly ended = new Promise<void>((resolve) => {
    this.#end = resolve;
  });

  constructor({ reconcilePeriodMs = PERIOD_MS, ...options }: AttachmentKeeperOptions) {
    const { attachment, manager, runtime } = options;
    this.#attachment = attachment;
    this.#starts = new StartWatch(runtime.socketPath, this.#onChange);
    this.#manager = manager;
    this.#log = reported(options.log);
    this.#periodMs = reconcilePeriodMs;
    this.#backoff = new Backoff({ firstMs: FIRST_PAUSE_MS, longestMs: reconcilePeriodMs });
  }

  /** REQUIRES: an attachment that has started. */
  async start(): Promise<void> {
    const { folder } = this.#attachment.attached.cpuset;
    // The folder above shows when the container's is removed.
    this.#watch.set([folder, dirname(folder)]);
    this.#manager.on('change', this.#onChange);
    this.#starts.open();
    this.#rounds = setInterval(() => this.#round(), this.#periodMs);
    // Repairs what has changed since the attachment.
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
    this.#starts.close();
    clearInterval(this.#rounds);
    clearTimeout(this.#pause);
    this.#rounds = undefined;
    this.#end();
  }

  #see(path: string, name: string | null): void {
    const { folder } = this.#attachment.attached.cpuset;
    const names = path === folder ? ['cpuset.cpus', 'cpuset.mems'] : [basename(folder)];
    if (name === null || names.includes(name)) this.#lookLater();
  }

  #round(): void {
    if (this.#writesSinceRound <= 1) this.#backoff.reset();
    this.#writesSinceRound = 0;
    this.#starts.open();
    this.#look(FIRST_PAUSE_MS);
  }

  #lookLater(): void {
    if (this.#pause !== undefined) return;
    this.#writesSinceRound++;
    this.#look(this.#backoff.next());
  }

  // Notices that arrive together cause one look.
  #look(pauseMs: number): void {
    const end = performance.now() + pauseMs;
    if (this.#rounds === undefined || (this.#pause !== undefined && this.#pauseEnd <= end)) return;
    clearTimeout(this.#pause);
    this.#pauseEnd = end;
    this.#pause = setTimeout(() => {
      this.#pause = undefined;
      this.#turn = this.#turn.then(() => this.#reconcile());
    }, pauseMs);
  }

  async #reconcile(): Promise<void> {
    if (this.#rounds === undefined) return;
    try {
      if (!(await this.#attachment.reconcile())) this.#stop();
    } catch (error) {
      const { message } = error as Error;
      this.#log('error', `the container's cpuset could not be compared: ${message}`, { error });
      this.#lookLater();
    }
  }
}
