// PathWatch: waits for changes at a path, reported by the kernel: inotify(7).
import { statSync, watch } from 'node:fs';
import { dirname } from 'node:path';
import { nearestPresent } from '../base/folder-watch.js';

/**
 * The identity of the file at a path. It changes when the file, or a folder on its path, is made,
 * removed or made again.
 */
export function identityOf(path: string): string {
  try {
    const found = statSync(path, { bigint: true, throwIfNoEntry: false });
    if (found) return `${found.dev}:${found.ino}:${found.ctimeNs}`;
    // A folder that is made again has another inode, or another birth time if the inode is reused.
    const folder = nearestPresent(dirname(path));
    const { dev, ino, birthtimeNs } = statSync(folder, { bigint: true });
    return `${folder}:${dev}:${ino}:${birthtimeNs}`;
  } catch (error) {
    return (error as Error).message;
  }
}

/**
 * Resolves once the identity at the path is not `identity`, possibly at once.
 * @throws the signal's reason; Error if the kernel refuses a watch
 */
export function changeOf(path: string, identity: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const watcher = watch(nearestPresent(dirname(path)));
    const settle = () => {
      watcher.close();
      signal.removeEventListener('abort', abort);
    };
    const fail = (error: unknown) => {
      settle();
      reject(error);
    };
    const abort = () => fail(signal.reason);
    const look = () => {
      if (identityOf(path) === identity) return;
      settle();
      resolve();
    };
    signal.addEventListener('abort', abort);
    watcher.on('change', look);
    watcher.on('error', fail);
    // There is no event for what changed before the watch existed.
    look();
  });
}
