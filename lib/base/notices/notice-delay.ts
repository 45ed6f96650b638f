// NoticeDelay: how long this environment waits before it opens inotify(7) for notices of files. The
// kernel takes 8 to 20 ms to close it with a watch: a process that becomes another program within
// this time never opens it.
import { ENVIRONMENT } from '../registry.js';

const newDelay = () => ({ ms: 0 });

/** Delays notices that no caller waits for. */
export function delayNotices(ms: number): void {
  ENVIRONMENT.of(newDelay).ms = ms;
}

/** The delay in milliseconds; 0 without one. */
export const noticeDelayMs = (): number => ENVIRONMENT.of(newDelay).ms;
