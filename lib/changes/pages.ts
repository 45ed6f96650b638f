// Pages: moves the memory of a grant to its new nodes, as far as this process may.
import { type MovingPod, threadShares } from '../account/pod-holdings.js';
import { groupOf } from '../admission/grants/grant-record.js';
import { assignmentsOf } from '../admission/on-record.js';
import type { Site } from '../admission/site.js';
import { native } from '../base/native.js';
import type { Place } from '../decision/changes/move-steps.js';
import { tenantPids } from '../enforcement/relocation.js';
import { moveBuffers } from '../threads/buffers.js';
import { childrenOn } from '../threads/children.js';
import { followMemory, type MemoryMigration, migrate } from '../threads/memory.js';
import { memoryNodesAt } from './answer.js';

/**
 * Moves pages from the nodes of `before` to those of `pod`. Reports pages that the kernel cannot
 * move, but does not fail: the memory is booked on the new nodes already. Pages belong to a
 * process, not to a grant, so pages of this process stay on nodes of its other grants. Null if
 * there is nothing to move.
 */
export function movePages(site: Site, pod: MovingPod, before: Place): MemoryMigration | null {
  const { topology, ledger } = site;
  const [from, to] = [memoryNodesAt(topology, before), memoryNodesAt(topology, pod)];
  if (topology.isSimulated || from.equals(to)) return null;
  const { uid } = pod;
  followMemory(uid, to);
  const group = groupOf(site, pod);
  if (group?.memory.isStrict) group.memory.restrict(to);
  const refusal = moveBuffers(uid, to);
  const migrations = tenantPids(site, pod, childrenOn(ledger, uid)).map((pid) =>
    migrate(from.difference(to), to, pid),
  );
  if (threadShares(pod).some(({ part }) => native.grantThreads(uid, part).length > 0)) {
    const { pods } = assignmentsOf(site, ledger.read());
    const kept = pods
      .filter((each) => each.uid !== uid && ledger.owners.isOwn(each.owner))
      .reduce((nodes, each) => nodes.union(memoryNodesAt(topology, each)), to);
    migrations.push(migrate(from.difference(kept), to));
  }
  return together(migrations, refusal);
}

// Ignores processes that have ended (ESRCH).
function together(all: readonly MemoryMigration[], refusal: string | null): MemoryMigration | null {
  const left = all.filter(({ reason }) => reason !== 'ESRCH');
  if (left.length === 0 && refusal === null) return null;
  const done = left.flatMap(({ notMoved }) => notMoved ?? []);
  return {
    notMoved: done.length === 0 ? null : done.reduce((sum, pages) => sum + pages, 0),
    reason: left.find(({ reason }) => reason !== null)?.reason ?? refusal,
  };
}
