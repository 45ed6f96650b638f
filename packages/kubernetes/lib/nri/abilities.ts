// Abilities: what a runtime can do by the version of its NRI, which it tells from 0.12 on.
import type { Runtime } from './messages.js';

function isAtLeast({ nriVersion }: Pick<Runtime, 'nriVersion'>, ...least: [number, number, number]): boolean {
  const found = /^v?(\d+)\.(\d+)\.(\d+)/.exec(nriVersion ?? '');
  if (!found) return false;
  const first = least.findIndex((number, i) => Number(found[i + 1]) !== number);
  return first === -1 || Number(found[first + 1]) > least[first]!;
}

/** Whether it sets a memory policy for a container that it creates. */
export const hasMemoryPolicy = (runtime: Pick<Runtime, 'nriVersion'>): boolean =>
  isAtLeast(runtime, 0, 12, 0);

/**
 * Whether a plugin may update containers outside of an answer. In runtimes before, such an update and
 * a call of the runtime's that meet wait for each other for ever
 * (https://github.com/containerd/containerd/issues/13733).
 */
export const hasSafeUpdates = (runtime: Pick<Runtime, 'nriVersion'>): boolean => isAtLeast(runtime, 0, 12, 2);
