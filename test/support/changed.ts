// Waits for what others commit.
import type { Manager } from '../../lib/index.js';

/** Resolves with the next change that others commit, once `isIt` says so. */
export function changed(manager: Manager, isIt: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const look = () => {
      if (!isIt()) return;
      manager.off('change', look);
      resolve();
    };
    manager.on('change', look);
    look();
  });
}
