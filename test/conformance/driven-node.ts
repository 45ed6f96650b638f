// A node driven through the operations of a scenario, and what can be seen of it.
import type { Manager, ManagerOptions } from '../../lib/index.js';
import type { Numalign } from './case.js';
import { recordedHint } from './hint.js';
import { type Holdings, isSameHoldings, type Placement } from './placement.js';
import { podSpec, type RecordedPod } from './pod.js';
import { readPods, type StoredPod, writePods } from './state-file.js';

/** How an admission ended. */
export interface Answer {
  readonly admitted: boolean;
  /** Empty where it was admitted. */
  readonly reason: string;
  readonly containers?: Holdings;
}

export const REASONS = ['TopologyAffinityError', 'SMTAlignmentError', 'UnexpectedAdmissionError'];

type NodeOptions = ManagerOptions & { readonly stateDir: string };

export class DrivenNode {
  readonly #numalign: Numalign;
  readonly #options: NodeOptions;
  #manager: Manager;

  private constructor(numalign: Numalign, options: NodeOptions, manager: Manager) {
    this.#numalign = numalign;
    this.#options = options;
    this.#manager = manager;
  }

  static async open(numalign: Numalign, options: NodeOptions): Promise<DrivenNode> {
    return new DrivenNode(numalign, options, await numalign.openManager(options));
  }

  get reserved(): string {
    return this.#manager.settings.reservedSystemCPUs.toString();
  }

  /** @throws what the package throws, where that is no rejection */
  async admit(pod: RecordedPod): Promise<Answer> {
    try {
      const { containers } = await this.#manager.admit(podSpec(pod), { owner: 'persistent' });
      const holdings = containers.map(({ name, cpus, hint }) => [
        name,
        { cpus: cpus === null ? null : cpus.toString(), hint: recordedHint(hint) },
      ]);
      return { admitted: true, reason: '', containers: Object.fromEntries(holdings) };
    } catch (error) {
      const reason = error instanceof this.#numalign.NumalignError ? error.details.reason : undefined;
      if (!REASONS.includes(reason as string)) throw error;
      return { admitted: false, reason: reason as string };
    }
  }

  release(uid: string): Promise<void> {
    return this.#manager.release(uid);
  }

  /** Closes the manager and opens another on the same folder. */
  async restart(): Promise<void> {
    this.#manager.close();
    this.#manager = await this.#numalign.openManager(this.#options);
  }

  /** Goes on with other pods than there are. */
  async load(pods: readonly StoredPod[]): Promise<void> {
    this.#manager.close();
    writePods(this.#options.stateDir, pods);
    this.#manager = await this.#numalign.openManager(this.#options);
  }

  /** What the state file says, of which the manager must say the same. */
  observe(): Placement {
    const pods = readPods(this.#options.stateDir);
    for (const [uid, holdings] of pods) {
      const told = Object.entries(holdings).map(([name, { cpus }]) => [
        name,
        { cpus, hint: recordedHint(this.#manager.getAffinity(uid, name)) },
      ]);
      if (!isSameHoldings(Object.fromEntries(told), holdings)) {
        throw new Error(`getAffinity says of ${uid} what its state file does not: ${JSON.stringify(told)}`);
      }
    }
    return { pods, sharedPool: this.#manager.sharedPool.toString() };
  }

  close(): void {
    this.#manager.close();
  }
}
