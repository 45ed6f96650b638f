// The state of a machine with the default settings and without grants.

import { type Assignments, emptyAssignments } from '../../lib/account/assignments.js';
import { DEFAULT_SETTINGS } from '../../lib/decision/machine-settings.js';

export function emptyState(simulated = false): Assignments {
  return emptyAssignments({ ...DEFAULT_SETTINGS, simulated });
}
