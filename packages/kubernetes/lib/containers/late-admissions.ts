// LateAdmissions: containers that were created without numalign, and for which there was no place when
// it came. They run in the shared pool, and are admitted as soon as something is released.
import type { Log } from '../base/log.js';
import type { Container, PodSandbox } from '../nri/messages.js';
import type { ContainerRequest } from '../placement/container-request.js';
import type { CensusEntry } from './census.js';
import type { GrantedContainers } from './granted-containers.js';
import type { Grants } from './grants.js';
import type { Inventory, KnownContainer } from './inventory.js';
import { fieldsOf, type Reports } from './reports.js';

export interface LateAdmissionsOptions {
  readonly inventory: Inventory;
  readonly grants: Grants;
  readonly granted: GrantedContainers;
  readonly reports: Pick<Reports, 'admitted'>;
  /** Moves what runs in the shared pool to where that is now. */
  readonly followPool: () => void;
  readonly log: Log;
}

interface Waiting {
  readonly pod: PodSandbox;
  readonly container: Container;
  readonly request: ContainerRequest;
}

export class LateAdmissions {
  readonly #options: LateAdmissionsOptions;
  // In the order in which the runtime has reported them.
  readonly #waiting = new Map<string, Waiting>();
  #isDue = false;
  #isRunning = false;
  #isClosed = false;

  constructor(options: LateAdmissionsOptions) {
    this.#options = options;
  }

  close(): void {
    this.#isClosed = true;
    this.#waiting.clear();
  }

  /** Containers that were looked at: those wait that ask for something and have nothing. */
  found(entries: readonly CensusEntry[]): void {
    for (const { pod, container, request, placement } of entries)
      if (request.pod && !placement) this.#waiting.set(container.id, { pod, container, request });
  }

  /** A container asks for something else now. */
  asks(id: string, request: ContainerRequest): void {
    const waiting = this.#waiting.get(id);
    if (waiting) this.#waiting.set(id, { ...waiting, request });
  }

  /**
   * The record has changed. Returns at once. A grant that was made and released since the last change
   * is in none of its lists, so each change may have made room.
   */
  changed(): void {
    if (this.#waiting.size === 0) return;
    this.#isDue = true;
    if (this.#isRunning) return;
    this.#isRunning = true;
    void this.#run().finally(() => {
      this.#isRunning = false;
    });
  }

  async #run(): Promise<void> {
    while (this.#isDue) {
      this.#isDue = false;
      for (const [id, waiting] of this.#waiting) await this.#try(id, waiting);
    }
  }

  async #try(id: string, waiting: Waiting): Promise<void> {
    const { inventory, grants, log } = this.#options;
    const known = inventory.find(id);
    if (!known || known.placement) return void this.#waiting.delete(id);
    try {
      const placement = await grants.place(waiting.pod, waiting.container, waiting.request);
      const current = inventory.find(id);
      if (this.#isClosed || !placement) return;
      if (current) this.#settle(current, waiting, placement);
      this.#waiting.delete(id);
      // It has ended meanwhile, and nothing else would release its grant.
      if (!current && !placement.isOfPod) await grants.end(placement);
    } catch (error) {
      const text = `${known.title} still has no place: ${(error as Error).message}`;
      log('debug', text, { ...fieldsOf(known.subject), id });
    }
  }

  #settle(
    known: KnownContainer,
    { pod, container }: Waiting,
    placement: NonNullable<KnownContainer['placement']>,
  ): void {
    const { granted, reports, followPool } = this.#options;
    // The event of the commit may come later.
    followPool();
    granted.settle(known, placement);
    const { cpus, memoryNodes } = placement;
    reports.admitted(pod, container, {
      ...{ kind: cpus ? 'exclusive' : 'booked', cpus: `${cpus ?? ''}`, mems: `${memoryNodes}` },
    });
  }
}
