// CpuEvents: the kernel's notices about CPUs, by one socket for all of this environment.

import { ENVIRONMENT } from '../base/collections/registry.js';
import { unlessRefused } from '../base/errors.js';
import { native } from '../base/native.js';
import type { NativeNotices } from '../base/native-files.js';

class CpuEvents {
  readonly #listeners = new Set<() => void>();
  #notices: NativeNotices | undefined;

  watch(listener: () => void): () => void {
    // A wrapper lets one function listen twice.
    const wrapper = () => listener();
    this.#listeners.add(wrapper);
    this.#notices ??= unlessRefused(
      () =>
        new native.CpuEvents(() => {
          for (const each of [...this.#listeners]) each();
        }),
    );
    return () => {
      this.#listeners.delete(wrapper);
      if (this.#listeners.size > 0) return;
      this.#notices?.close();
      this.#notices = undefined;
    };
  }
}

const cpuEvents = () => new CpuEvents();

/**
 * Calls the listener when CPUs have gone offline or come online. Does not keep the process alive.
 * Returns a function that ends this. There are no notices in containers with their own user
 * namespace, or in sandboxes without such sockets.
 */
export function watchCpus(listener: () => void): () => void {
  return ENVIRONMENT.of(cpuEvents).watch(listener);
}
