// What the threads of members have chosen, as stored in files next to their registrations.
import type { Native } from '../../base/native-surface.js';
import type { ProcessIdentity } from '../../processes/process-identity.js';
import type { UnpinnedThread } from './confinement.js';

export type Choices = ReturnType<Native['askedMasks']>;

/** What threads have chosen, by pid. */
export type AskedMasks = ReadonlyMap<number, Choices>;

export const NO_CHOICES: AskedMasks = new Map();

const NONE: readonly never[] = [];

/** Of threads that have left their grants, those of a process, for the addon. */
export function unpinnedOf({ pid }: ProcessIdentity, unpinned: readonly UnpinnedThread[]) {
  if (unpinned.length === 0 || pid !== globalThis.process.pid) return NONE;
  return unpinned.map(({ tid, earlier: { words } }) => ({ tid, earlier: words }));
}
