// Primary: the workers of a cluster, each on its own CPUs.
import type { ClusterSettings, Cluster as NodeCluster } from 'node:cluster';
import { obstacleOf } from '../base/refusal.js';
import type { ManagerOptions } from '../input/config.js';
import type { EmptyManager } from '../managers/empty-manager.js';
import { late } from '../managers/late-classes.js';
import type { Manager } from '../managers/manager.js';
import { openManager } from '../opening/open-manager.js';
import { type ForkOptions, parseFork, type WorkerPlan } from './fork-options.js';
import type { GrantedWorker, WorkerGrant } from './granted-worker.js';
import { parseRestart, type Replacement, type RestartOptions, restartAll } from './rolling-restart.js';
import { Slot, type SlotOwner } from './slot.js';

/** The settings of `node:cluster`, and the manager that the CPUs come from. */
export interface PrimarySettings extends ClusterSettings {
  /**
   * The manager that the CPUs come from, or its options; it is opened at the first fork.
   * @default the machine's
   */
  manager?: Manager | EmptyManager | ManagerOptions;
}

/** The members of {@link Cluster} that are numalign's own, or that extend those of node:cluster. */
export class Primary implements SlotOwner {
  readonly slots = new Set<Slot>();
  #managerOption: Manager | EmptyManager | ManagerOptions = {};
  #manager: Promise<Manager> | undefined;
  #restart: Promise<unknown> = Promise.resolve();
  // The slot whose worker's end is being emitted.
  #ending: Slot | undefined;

  constructor(readonly cluster: NodeCluster) {}

  readonly setupPrimary = ({ manager, ...settings }: PrimarySettings = {}): void => {
    if (manager !== undefined) {
      this.#managerOption = manager;
      this.#manager = undefined;
    }
    this.cluster.setupPrimary(settings);
  };

  // Not async: it returns the promise of the next worker unchanged.
  readonly fork = (options: ForkOptions = {}): Promise<GrantedWorker> => {
    const ending = this.#ending;
    this.#ending = undefined;
    try {
      const plan = parseFork(options);
      return ending?.next(plan) ?? this.#fork(plan);
    } catch (error) {
      return Promise.reject(error);
    }
  };

  async #fork(plan: WorkerPlan): Promise<GrantedWorker> {
    const slot = new Slot(this, plan);
    this.slots.add(slot);
    try {
      return await slot.start();
    } catch (error) {
      this.forget(slot);
      slot.giveBack();
      throw error;
    }
  }

  readonly disconnect = (callback?: () => void): void => {
    for (const slot of this.slots) slot.close();
    this.cluster.disconnect(callback);
  };

  readonly restart = async (options: RestartOptions = {}): Promise<Replacement[]> => {
    const request = parseRestart(options);
    const restart = this.#restart.then(() => restartAll(this, request));
    this.#restart = restart.catch(() => {});
    return restart;
  };

  ending(slot: Slot): void {
    this.#ending = slot;
    // Runs before what the slot itself does.
    process.nextTick(() => {
      this.#ending = undefined;
    });
  }

  forget(slot: Slot): void {
    this.slots.delete(slot);
  }

  async grantFor({ request, isOptional }: WorkerPlan): Promise<WorkerGrant> {
    let manager: Manager | undefined;
    try {
      manager = await this.#open();
      return { grant: await manager.acquire(request), refusal: null };
    } catch (error) {
      if (isOptional) return { grant: null, refusal: obstacleOf(error), manager };
      throw error;
    }
  }

  // Opens the manager once; a failure is not kept.
  #open(): Promise<Manager> {
    const managerOption = this.#managerOption;
    if (managerOption instanceof late.EmptyManager) return Promise.reject(managerOption.reason);
    this.#manager ??=
      managerOption instanceof late.Manager ? Promise.resolve(managerOption) : openManager(managerOption);
    const opening = this.#manager;
    opening.catch(() => {
      if (this.#manager === opening) this.#manager = undefined;
    });
    return opening;
  }
}
