// HintProviders: the custom providers of one manager, and the pods for which they hold something.
import { invalidOption } from './check-options.js';
import { askToRelease, checkProvider, type HintProvider } from './hint-provider.js';

interface Named {
  readonly uid: string;
  readonly name: string;
}

export class HintProviders {
  readonly #providers: HintProvider[] = [];
  readonly #pods = new Map<string, Named>();

  /** In the order in which they are asked. */
  get list(): readonly HintProvider[] {
    return this.#providers;
  }

  /** @throws ERR_INVALID_OPTION */
  add(provider: HintProvider): void {
    checkProvider(provider);
    if (this.#providers.some(({ name }) => name === provider.name)) {
      invalidOption('name', provider.name, 'another name: there is a hint provider of this one');
    }
    this.#providers.push(provider);
  }

  /** The pod is committed: what was allocated for it stays until it is off the record. */
  keep({ uid, name }: Named): void {
    if (this.#providers.length > 0) this.#pods.set(uid, { uid, name });
  }

  /**
   * Releases what is held for pods that are not on record any more, however they went: by this manager, another one, another process, or with their
   * owner.
   * @throws ERR_HINT_PROVIDER where a provider fails; all have been asked all the same
   */
  releaseAllBut(pods: readonly { readonly uid: string }[]): void {
    if (this.#pods.size === 0) return;
    const onRecord = new Set(pods.map(({ uid }) => uid));
    let first: unknown;
    for (const pod of [...this.#pods.values()]) {
      if (onRecord.has(pod.uid)) continue;
      this.#pods.delete(pod.uid);
      first ??= askToRelease(this.#providers, { pod, dryRun: false });
    }
    if (first !== undefined) throw first;
  }
}
