// Retry: repeats an action that must succeed in the end, despite a held lock or a full disk.
import { publishError } from '../admission/diagnostics.js';
import type { Site } from '../admission/site.js';

const PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 30_000;

/**
 * Runs the action, and runs it again later if it throws or returns false. Never throws: errors are
 * published. Does not keep the process alive.
 */
export async function retry(site: Site, action: () => Promise<unknown>, pauseMs = PAUSE_MS): Promise<void> {
  try {
    if ((await action()) !== false) return;
  } catch (error) {
    publishError(site, 'apply', error);
  }
  setTimeout(retry, pauseMs, site, action, Math.min(2 * pauseMs, LONGEST_PAUSE_MS)).unref();
}
