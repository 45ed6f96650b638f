// NoticeDelay: how long this environment waits before it opens inotify(7) for notices of files. The
// kernel takes 8 to 20 ms to close it with a watch.
import { ENVIRONMENT } from '../collections/registry.js';

const newDelay = () => ({ ms: 0 });

/**
 * Opens inotify(7) for notices that no call waits for only after so many milliseconds. A process that
 * soon becomes another program (`grant.exec`) then never opens it, which saves 8 to 20 ms.
 */
export function delayNotices(ms: number): void {
  ENVIRONMENT.of(newDelay).ms = ms;
}

/** The delay in milliseconds; 0 without one. */
export const noticeDelayMs = (): number => ENVIRONMENT.of(newDelay).ms;
