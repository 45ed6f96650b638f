import type { Manager, ManagerOptions } from '../../lib/index.js';

export function openQuietManager(
  folder: string,
  options: ManagerOptions & { stateDir: string },
  onRead?: (path: string) => void,
): Promise<Manager>;
