// Grants: what containers hold, on numalign's record. Owned by their cgroups: they outlive this
// process, and end with the container.
import { type CpuSet, type Manager, NumalignError, type Pod } from 'numalign';
import { NodeError } from '../base/errors.js';
import type { Log } from '../base/log.js';
import type { Container } from '../nri/messages.js';
import { allocationOf } from '../placement/allocation.js';
import type { ContainerRequest } from '../placement/container-request.js';
import { type Placement, placementOf } from './placement.js';

const isUnknown = (error: unknown) => error instanceof NumalignError && error.code === 'ERR_UNKNOWN_GRANT';

const RETRY_MS = 100;
const LONGEST_RETRY_MS = 30_000;

export class Grants {
  readonly #manager: Manager;
  readonly #prefix: string;
  readonly #log: Log;
  // To be released as soon as the state lets it.
  readonly #pending = new Set<string>();
  #retry: NodeJS.Timeout | undefined;

  /** `prefix`: of the names of grants that this process makes. */
  constructor({ manager, prefix, log }: { manager: Manager; prefix: string; log: Log }) {
    this.#manager = manager;
    this.#prefix = `${prefix}:`;
    this.#log = log;
  }

  close(): void {
    clearTimeout(this.#retry);
  }

  /** The shared pool, as it is on record now. */
  get pool(): CpuSet {
    return this.#manager.sharedPool();
  }

  /** What is on record for a container; null: nothing is. */
  find(uid: string): Placement | null {
    try {
      return this.#placement(this.#manager.pod(uid));
    } catch (error) {
      if (isUnknown(error)) return null;
      throw error;
    }
  }

  /**
   * The place of a container: what the device plugin has booked for it, else what it is admitted to.
   * @throws NodeError ERR_UNKNOWN_ALLOCATION; as {@link admit}
   */
  async place(container: Container, request: ContainerRequest): Promise<Placement | null> {
    const uid = allocationOf(container.env);
    if (uid === null) return this.admit(request);
    const allocation = this.find(uid);
    if (allocation) return allocation;
    throw new NodeError(
      'ERR_UNKNOWN_ALLOCATION',
      `container ${container.name} was allocated CPUs as grant ${uid}, which is not on record`,
      { value: uid },
    );
  }

  /**
   * Admits a container under the manager's policy. A grant that is on record already stays.
   * @throws as Manager.admit
   */
  async admit({ pod, smt }: ContainerRequest): Promise<Placement | null> {
    if (!pod) return null;
    // The runtime writes the cpusets of containers, and sees to it that others leave.
    return this.#placement(
      await this.#manager.admit(pod, { owner: 'persistent', enforcement: 'members', ...(smt && { smt }) }),
    );
  }

  /**
   * Records a container where it is.
   * @throws as Manager.adopt
   */
  async adopt({ pod }: ContainerRequest, cpus: CpuSet): Promise<Placement | null> {
    if (!pod) return null;
    const { uid, name, containers } = pod as { uid: string; name: string; containers: [{ name: string }] };
    const adopted = { uid, name, containers: [{ ...containers[0], cpus }] };
    return this.#placement(await this.#manager.adopt(adopted, { owner: 'persistent' }));
  }

  /** From now on the grant lives as long as a process is in the cgroup. */
  async setOwner(uid: string, cgroup: string): Promise<void> {
    await this.#manager.pod(uid).setOwner({ cgroup });
  }

  /** More CPUs, or fewer. @throws as Grant.resize */
  async resize(uid: string, cpu: number): Promise<Placement | null> {
    await this.#manager.grant(uid).resize({ cpu, noticeMs: 0 });
    return this.find(uid);
  }

  /** The uids of the grants that this plugin has made, its earlier processes too. */
  list(): readonly string[] {
    return this.#manager
      .grants()
      .filter(({ name }) => name.startsWith(this.#prefix))
      .map(({ uid }) => uid);
  }

  /** Whether a cgroup owns the grant in which processes still are. */
  isInUse(uid: string): boolean {
    const info = this.#manager.grants().find((each) => each.uid === uid);
    return info?.owner.kind === 'cgroup' && info.alive;
  }

  /** Gives back. What cannot be given back now is later. */
  async release(uid: string): Promise<void> {
    this.#pending.add(uid);
    await this.#releasePending(RETRY_MS);
  }

  async #releasePending(pauseMs: number): Promise<void> {
    clearTimeout(this.#retry);
    for (const uid of this.#pending) {
      try {
        await this.#manager.release(uid);
      } catch (error) {
        if (!isUnknown(error)) {
          this.#log('warn', `grant ${uid} is not given back yet: ${(error as Error).message}`);
          const next = Math.min(2 * pauseMs, LONGEST_RETRY_MS);
          this.#retry = setTimeout(() => void this.#releasePending(next), pauseMs).unref();
          return;
        }
      }
      this.#pending.delete(uid);
    }
  }

  #placement(pod: Pod): Placement {
    const [container] = pod.containers;
    return placementOf(pod.uid, container!);
  }
}
