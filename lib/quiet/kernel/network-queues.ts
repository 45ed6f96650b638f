// Queues of the network devices of this namespace, as the kernel's networking/scaling describes
// them.
import type { KernelFiles } from './kernel-files.js';

export const NETWORK_DEVICES = '/sys/class/net';

export interface NetworkQueue {
  /** The folder of its files. */
  readonly path: string;
  readonly device: string;
  /** For example `rx-0`. */
  readonly name: string;
}

export function networkQueues(files: KernelFiles, direction: 'rx' | 'tx'): NetworkQueue[] {
  return files.list(NETWORK_DEVICES).flatMap((device) => {
    const folder = `${NETWORK_DEVICES}/${device}/queues`;
    const names = files.list(folder).filter((name) => name.startsWith(`${direction}-`));
    return names.map((name) => ({ path: `${folder}/${name}`, device, name }));
  });
}
