// What the kernel says of CPUs: one socket for all of this environment.
import { unlessRefused } from '../base/errors.js';
import { native } from '../base/native.js';
import type { NativeNotices } from '../base/native-files.js';
import { ENVIRONMENT } from '../base/registry.js';

class CpuEvents {
  readonly #listeners = new Set<() => void>();
  #notices: NativeNotices | undefined;

  watch(listener: () => void): () => void {
    // Wrapped, so that one function can listen twice.
    const own = () => listener();
    this.#listeners.add(own);
    this.#notices ??= unlessRefused(
      () =>
        new native.CpuEvents(() => {
          for (const each of [...this.#listeners]) each();
        }),
    );
    return () => {
      this.#listeners.delete(own);
      if (this.#listeners.size > 0) return;
      this.#notices?.close();
      this.#notices = undefined;
    };
  }
}

const cpuEvents = () => new CpuEvents();

/**
 * Calls the listener when CPUs have gone offline or come online, and never keeps the process alive.
 * Answers how to end it. Nothing is told where the kernel does not tell: to containers with a user
 * namespace of their own, and in sandboxes without such sockets.
 */
export function watchCpus(listener: () => void): () => void {
  return ENVIRONMENT.of(cpuEvents).watch(listener);
}
