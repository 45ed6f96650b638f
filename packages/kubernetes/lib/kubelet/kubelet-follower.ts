// KubeletFollower: records what the kubelet assigns, and follows its changes.
import { basename, dirname } from 'node:path';
import { CPU_MANAGER_STATE, MEMORY_MANAGER_STATE } from 'numalign/kubelet';
import type { Condition } from '../base/condition.js';
import { FolderWatch } from '../base/folder-watch.js';
import type { Log } from '../base/log.js';
import { reported } from '../base/reported.js';
import { Rounds } from '../base/rounds.js';
import { NO_EVENTS, type RecordEvent, THIS_NODE } from '../events/event.js';
import { DEVICE_CHECKPOINT } from './device-checkpoint.js';
import { type PodHoldings, withoutDevices } from './holdings.js';
import { DEVICE_FOLDER, KUBELET_FOLDER, POD_RESOURCES_SOCKET, PodResources } from './pod-resources.js';

export interface KubeletFollowerOptions {
  /** Replaces the record by everything that the kubelet has assigned. */
  readonly record: (holdings: readonly PodHoldings[]) => Promise<unknown>;
  /** Rejects for a kubelet that must not run beside, which is logged. Default: any may. */
  readonly check?: () => Promise<void>;
  /** Default: {@link POD_RESOURCES_SOCKET}. */
  readonly podResourcesSocket?: string;
  /** Default: {@link KUBELET_FOLDER}. */
  readonly stateFolder?: string;
  /** Default: {@link DEVICE_FOLDER}. */
  readonly deviceFolder?: string;
  /** Resources of numalign's own device plugins, whose assignments are already on record. */
  readonly ownResources?: readonly string[];
  readonly log: Log;
  readonly recordEvent?: RecordEvent;
}

// Pauses after failures, such as a half-written file or a starting kubelet. Afterwards it waits for
// the next change.
const FAILURE_PAUSES_MS = [100, 1_000, 10_000];
// A kubelet that has started lists its pods one after the other, and no file shows that.
const START_PAUSES_MS = [500, 2_000, 10_000];

/**
 * Asks the kubelet when the kernel reports that it has written a checkpoint file, or that its
 * socket has appeared (inotify(7)). It does nothing in between.
 */
export class KubeletFollower {
  readonly #options: KubeletFollowerOptions;
  readonly #podResources: PodResources;
  readonly #watches: readonly FolderWatch[];
  readonly #ownResources: ReadonlySet<string>;
  readonly #rounds = new Rounds(() => this.#follow());
  #failures = 0;
  // Why its assignments are not on record; undefined if they are.
  #flaw: string | undefined = 'it was not asked yet';
  #pauses: readonly number[] = START_PAUSES_MS;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: KubeletFollowerOptions) {
    const log = reported(options.log);
    const { podResourcesSocket: socket = POD_RESOURCES_SOCKET } = options;
    const { stateFolder = KUBELET_FOLDER, deviceFolder = DEVICE_FOLDER, ownResources = [] } = options;
    this.#options = { ...options, log };
    this.#ownResources = new Set(ownResources);
    this.#podResources = new PodResources({ socket, stateFolder, deviceFolder });
    const watches: readonly [folder: string, names: readonly string[]][] = [
      [stateFolder, [CPU_MANAGER_STATE, MEMORY_MANAGER_STATE]],
      [deviceFolder, [DEVICE_CHECKPOINT]],
      [dirname(socket), [basename(socket)]],
    ];
    this.#watches = watches.map(
      ([folder, names]) =>
        new FolderWatch({
          folder,
          changed: (name) => {
            if (name === null || folder === dirname(socket)) this.#pauses = START_PAUSES_MS;
            if (name === null || names.includes(name)) void this.look();
          },
          failed: (error) => log('error', `${folder} cannot be watched: ${error.message}`),
        }),
    );
  }

  /**
   * Returns once the kubelet's assignments are on record, or could not be read (which is logged).
   * @throws what the kernel refuses
   */
  async start(): Promise<void> {
    try {
      for (const watch of this.#watches) watch.start();
    } catch (error) {
      await this.close();
      throw error;
    }
    await this.look();
  }

  /** Whether what the kubelet has assigned is on record, and it may run beside. */
  get condition(): Condition {
    const text = this.#flaw ?? "the kubelet's assignments are on record";
    return { part: 'kubelet', isMet: this.#flaw === undefined, isVital: false, text };
  }

  /**
   * Asks the kubelet now; resolves once its answer is on record. Never rejects: failures are
   * logged.
   */
  look(): Promise<void> {
    clearTimeout(this.#timer);
    return this.#rounds.ask();
  }

  /** The record stays. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const watch of this.#watches) watch.close();
    await this.#rounds.end();
    clearTimeout(this.#timer);
  }

  async #follow(): Promise<void> {
    const { record, check, log } = this.#options;
    const failures: string[] = [];
    try {
      // CPUs that are not on record would be granted again.
      const holdings = await this.#podResources.holdings(({ message }) =>
        failures.push(`memory or devices that the kubelet assigns may not be on record: ${message}`),
      );
      await record(withoutDevices(holdings, this.#ownResources));
    } catch (error) {
      failures.push(`the kubelet's assignments are not on record: ${(error as Error).message}`);
    }
    await check?.().catch(({ message }: Error) => failures.push(message));
    for (const message of failures) log('error', message);
    this.#flaw = failures[0];
    if (failures.length > 0) {
      const pause = FAILURE_PAUSES_MS[this.#failures++];
      if (pause === undefined) this.#tell(failures.join('; '));
      this.#lookAfter(pause);
    } else {
      this.#failures = 0;
      const [pause, ...rest] = this.#pauses;
      this.#pauses = rest;
      this.#lookAfter(pause);
    }
  }

  // A kubelet that starts fails for a moment.
  #tell(message: string): void {
    const { recordEvent = NO_EVENTS } = this.#options;
    recordEvent({ about: THIS_NODE, type: 'Warning', reason: 'KubeletNotFollowed', message });
  }

  // Undefined: not before the next change.
  #lookAfter(pause: number | undefined): void {
    clearTimeout(this.#timer);
    if (pause === undefined) this.#failures = 0;
    else if (!this.#isClosed) this.#timer = setTimeout(() => void this.look(), pause).unref();
  }
}
