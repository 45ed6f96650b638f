// Waits for what others commit.
import type { Manager } from '../../lib/index.js';

/** Once the state is so; looks after each commit. */
export function seenState(manager: Manager, isIt: () => boolean): Promise<void> {
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
