// Retry: what has to be done in the end, and may not be possible now. A lock is held for long, a disk is
// full.
import { publishError } from '../admission/diagnostics.js';
import type { Site } from '../admission/site.js';

const PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 30_000;

/**
 * Does it, and where that fails, or answers false, tries again after a while. Never throws: what fails
 * is published. It does not keep the process alive.
 */
export async function retry(site: Site, action: () => Promise<unknown>, pauseMs = PAUSE_MS): Promise<void> {
  try {
    if ((await action()) !== false) return;
  } catch (error) {
    publishError(site, 'apply', error);
  }
  setTimeout(retry, pauseMs, site, action, Math.min(2 * pauseMs, LONGEST_PAUSE_MS)).unref();
}
