// Neighbours: containers without exclusive CPUs leave granted CPUs, and return when these are
// released.
import { CpuSet, type GrantInfo, type Manager } from 'numalign';
import { cpusOfGrants } from 'numalign/tools';
import { NodeError } from '../base/errors.js';
import type { Log } from '../base/log.js';
import { podGrantUid } from '../placement/container-request.js';
import { describeContainer, fullName } from './container-names.js';
import type { ContainerRuntime, RunningContainer, RuntimeContainer } from './container-runtime.js';
import { NarrowedContainers } from './narrowed-containers.js';

export interface NeighboursOptions {
  readonly manager: Manager;
  readonly runtime: ContainerRuntime;
  readonly log: Log;
  /** The folder that records what shared containers had before. */
  readonly folder: string;
}

/** A container whose CPUs were changed. */
export interface ContainerMove {
  readonly container: RunningContainer;
  readonly before: CpuSet;
  readonly after: CpuSet;
}

/**
 * Whether a grant belongs to a container: it has the container's id, its pod's uid, both its pod's
 * and its name, or the container's name.
 */
export function isGrantOf(
  { uid, name }: Pick<GrantInfo, 'uid' | 'name'>,
  container: RuntimeContainer,
): boolean {
  const uids = [container.id, container.podUid, podGrantUid(container.podUid, container.name)];
  return uids.includes(uid) || name === fullName(container);
}

export const union = (sets: readonly CpuSet[]) => sets.reduce((all, set) => all.union(set), CpuSet.EMPTY);

export class Neighbours {
  readonly #manager: Manager;
  readonly #runtime: ContainerRuntime;
  readonly #log: Log;
  readonly #narrowed: NarrowedContainers;

  constructor({ manager, runtime, log, folder }: NeighboursOptions) {
    this.#manager = manager;
    this.#runtime = runtime;
    this.#log = log;
    this.#narrowed = new NarrowedContainers(folder);
  }

  /**
   * Gives every running container without a grant the CPUs that it had, without those that are
   * granted now. Returns what has changed; writes nothing if nothing differs. `except`: the id of a
   * container to leave alone. `cpusToLeave`: CPUs that all of them must leave.
   * @throws ERR_CONTAINER_UNMOVABLE if a container has no other CPUs than those to be cleared,
   *   before anything changes; like {@link ContainerRuntime}
   */
  async fit(except: string, cpusToLeave: CpuSet = CpuSet.EMPTY): Promise<ContainerMove[]> {
    const grants = this.#manager.grants().filter(({ alive }) => alive);
    // A resize or a move that is announced takes its CPUs next; one that has begun leaves some later.
    const granted = cpusOfGrants(grants);
    const containers = await this.#runtime.containers();
    this.#narrowed.keepOnly(new Set(containers.map(({ id }) => id)));
    const isShared = (each: RuntimeContainer) =>
      each.id !== except && !grants.some((grant) => !grant.cpus.isEmpty && isGrantOf(grant, each));
    const moves: ContainerMove[] = [];
    for (const container of await this.#inspect(containers.filter(isShared))) {
      const move = this.#moveOf(container, granted, cpusToLeave);
      if (move) moves.push(move);
    }
    for (const move of moves) await this.#unlessEnded(move.container, () => this.#carryOut(move));
    return moves;
  }

  async #inspect(containers: readonly RuntimeContainer[]): Promise<RunningContainer[]> {
    const found = await Promise.all(
      containers.map((each) => this.#unlessEnded(each, () => this.#runtime.inspect(each))),
    );
    return found.filter((each) => each !== undefined);
  }

  // The move of a container, if its CPUs must change.
  #moveOf(container: RunningContainer, granted: CpuSet, cpusToLeave: CpuSet): ContainerMove | undefined {
    const { id, cpuset } = container;
    const now = cpuset.effectiveCpus;
    const narrowing = this.#narrowed.get(id);
    const before = narrowing?.after.equals(now) ? narrowing.before : now;
    const after = before.difference(granted);
    if (after.equals(now)) {
      if (narrowing && before.equals(now)) this.#narrowed.delete(id);
      return undefined;
    }
    if (!after.isEmpty) return { container, before, after };
    const message = `${describeContainer(container)} only has CPUs ${now}, which are granted`;
    if (now.intersects(cpusToLeave)) {
      throw new NodeError('ERR_CONTAINER_UNMOVABLE', message, {
        value: id,
        valid: 'other containers with CPUs that are not to be granted',
      });
    }
    this.#log('warn', message, { container: id, cpus: `${now}` });
    return undefined;
  }

  async #carryOut({ container, before, after }: ContainerMove): Promise<void> {
    const { id } = container;
    const former = this.#narrowed.get(id);
    // The record is written before the change. After a crash in between, it describes a change that
    // has not happened, and has no effect.
    this.#narrowed.set(id, { before, after });
    try {
      await this.#runtime.setCpuset(container, { cpus: after });
    } catch (error) {
      if (former) this.#narrowed.set(id, former);
      else this.#narrowed.delete(id);
      throw error;
    }
    if (after.equals(before)) this.#narrowed.delete(id);
  }

  async #unlessEnded<T>(container: RuntimeContainer, action: () => Promise<T>): Promise<T | undefined> {
    try {
      return await action();
    } catch (error) {
      if (await this.#runtime.isRunning(container)) throw error;
      return undefined;
    }
  }
}
