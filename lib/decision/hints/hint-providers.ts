// HintProviders: a manager's custom providers, and the pods that they hold something for.
import type { PodAssignment } from '../../account/pod-assignment.js';
import { invalidOption } from '../../base/check-options.js';
import { askToRelease, checkProvider, type HintProvider } from './hint-provider.js';

type Held = Pick<PodAssignment, 'uid' | 'name' | 'admittedAt'>;

export class HintProviders {
  readonly #providers: HintProvider[] = [];
  readonly #held = new Map<string, Held>();
  // Pods whose release failed and was reported. It is tried again.
  readonly #failed = new Set<string>();

  /** A copy, in the order of calls. */
  get list(): readonly HintProvider[] {
    return [...this.#providers];
  }

  get isEmpty(): boolean {
    return this.#providers.length === 0;
  }

  /** @throws ERR_INVALID_OPTION */
  add(provider: HintProvider): void {
    const checked = checkProvider(provider);
    if (this.#providers.some(({ name }) => name === checked.name)) {
      invalidOption('name', checked.name, 'another name: a hint provider with this name exists');
    }
    this.#providers.push(checked);
  }

  /** Notes a pod on record. What was allocated for it stays until the pod is off the record. */
  keep({ uid, name, admittedAt }: Held): void {
    if (this.#providers.length > 0) this.#held.set(uid, { uid, name, admittedAt });
  }

  /**
   * Releases pods that are off the record: released by this or another manager, by another process,
   * or with their owner. Returns the error for `uid`, ERR_HINT_PROVIDER; for other pods it emits a
   * warning once. REQUIRES: the state's lock, and the newest pods.
   */
  releaseAllBut(pods: readonly Held[], uid?: string): unknown {
    if (this.#held.size === 0) return undefined;
    // Another pod may have the same uid by now.
    const onRecord = new Map(pods.map((pod) => [pod.uid, pod.admittedAt]));
    let failure: unknown;
    for (const held of [...this.#held.values()]) {
      if (onRecord.get(held.uid) === held.admittedAt || !this.#held.delete(held.uid)) continue;
      const error = askToRelease(this.#providers, { pod: { uid: held.uid, name: held.name }, dryRun: false });
      if (error === undefined) {
        this.#failed.delete(held.uid);
        continue;
      }
      if (!onRecord.has(held.uid)) this.#held.set(held.uid, held);
      if (held.uid === uid) failure = error;
      else if (!this.#failed.has(held.uid))
        process.emitWarning(`pod ${held.uid}: ${(error as Error).message}`, 'NumalignWarning');
      this.#failed.add(held.uid);
    }
    return failure;
  }
}
