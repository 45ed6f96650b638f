// HintProviders: the custom providers of one manager, and the pods for which they hold something.
import type { PodAssignment } from '../../account/pod-assignment.js';
import { invalidOption } from '../../base/check-options.js';
import { askToRelease, checkProvider, type HintProvider } from './hint-provider.js';

type Held = Pick<PodAssignment, 'uid' | 'name' | 'admittedAt'>;

export class HintProviders {
  readonly #providers: HintProvider[] = [];
  readonly #held = new Map<string, Held>();
  // Pods whose release has failed and was told; it is tried again.
  readonly #failed = new Set<string>();

  /** In the order in which they are asked; a copy. */
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
      invalidOption('name', checked.name, 'another name: there is a hint provider of this one');
    }
    this.#providers.push(checked);
  }

  /** The pod is on record: what was allocated for it stays until it is off. */
  keep({ uid, name, admittedAt }: Held): void {
    if (this.#providers.length > 0) this.#held.set(uid, { uid, name, admittedAt });
  }

  /**
   * Releases what is held for pods that are not on record any more, however they went: by this
   * manager, another one, another process, or with their owner. Answers the error for `uid`,
   * ERR_HINT_PROVIDER; of others the process is warned, once. REQUIRES: the state's lock, and its
   * newest pods.
   */
  releaseAllBut(pods: readonly Held[], uid?: string): unknown {
    if (this.#held.size === 0) return undefined;
    // A pod of the same uid may have come since.
    const onRecord = new Map(pods.map((pod) => [pod.uid, pod.admittedAt]));
    let own: unknown;
    for (const held of [...this.#held.values()]) {
      if (onRecord.get(held.uid) === held.admittedAt || !this.#held.delete(held.uid)) continue;
      const error = askToRelease(this.#providers, { pod: { uid: held.uid, name: held.name }, dryRun: false });
      if (error === undefined) {
        this.#failed.delete(held.uid);
        continue;
      }
      if (!onRecord.has(held.uid)) this.#held.set(held.uid, held);
      if (held.uid === uid) own = error;
      else if (!this.#failed.has(held.uid))
        process.emitWarning(`pod ${held.uid}: ${(error as Error).message}`, 'NumalignWarning');
      this.#failed.add(held.uid);
    }
    return own;
  }
}
