// When something comes to a path or goes from it, by the kernel's word: inotify(7).
import { statSync, watch } from 'node:fs';
import { dirname } from 'node:path';
import { nearestPresent } from '../base/folder-watch.js';

/** What is at the path: changes when it is made again, comes, goes, or a folder on its way does. */
export function identityOf(path: string): string {
  try {
    const found = statSync(path, { bigint: true, throwIfNoEntry: false });
    if (found) return `${found.dev}:${found.ino}:${found.ctimeNs}`;
    // A folder that was made again has another number, or another birth where numbers are used again.
    const folder = nearestPresent(dirname(path));
    const { dev, ino, birthtimeNs } = statSync(folder, { bigint: true });
    return `${folder}:${dev}:${ino}:${birthtimeNs}`;
  } catch (error) {
    return (error as Error).message;
  }
}

/**
 * Resolves once what is at the path is not `identity` any more, which may be so already.
 * @throws the signal's reason; Error where the kernel refuses a watch
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
    // What changed before the watch was there has no event.
    look();
  });
}
