// NoticeDelay: how long after it first asks for notices of files this environment gets none. The
// kernel takes 8 to 20 ms to close inotify(7) where something is watched: a process that becomes
// another program within this time does without it.
import { ENVIRONMENT } from '../registry.js';

const newDelay = () => ({ ms: 0 });

/** For notices that no caller waits for. */
export function delayNotices(ms: number): void {
  ENVIRONMENT.of(newDelay).ms = ms;
}

/** Milliseconds; 0: notices come at once. */
export const noticeDelayMs = (): number => ENVIRONMENT.of(newDelay).ms;
