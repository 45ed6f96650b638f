// The state of a machine with the default settings and without grants.
import { DEFAULT_SETTINGS } from '../../lib/machine-settings.js';
import { type Assignments, emptyAssignments } from '../../lib/state/assignments.js';

export function emptyState(simulated = false): Assignments {
  return emptyAssignments({ ...DEFAULT_SETTINGS, simulated });
}
