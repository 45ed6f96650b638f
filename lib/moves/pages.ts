// Pages: the memory of a grant that moves goes to its new nodes, as far as this process may move it.
import type { MovingPod, Place } from '../account/moves/move-steps.js';
import { threadShares } from '../account/pod-holdings.js';
import { groupOf } from '../admission/grants/grant-record.js';
import { assignmentsOf } from '../admission/on-record.js';
import type { Site } from '../admission/site.js';
import { native } from '../base/native.js';
import { followMemory, type MemoryMigration, migrate } from '../threads/memory.js';
import { memoryNodesAt } from './answer.js';

/**
 * What the kernel cannot move is told, and fails nothing: the memory is booked where it goes. Pages
 * belong to a process and not to a grant: those on nodes of another grant of this process stay.
 * `before`: where it was. null where there was nothing to move.
 */
export function movePages(site: Site, pod: MovingPod, before: Place): MemoryMigration | null {
  const { topology, ledger } = site;
  const [from, to] = [memoryNodesAt(topology, before), memoryNodesAt(topology, pod)];
  if (topology.isSimulated || from.equals(to)) return null;
  const { uid } = pod;
  followMemory(uid, to);
  const group = groupOf(site, pod);
  if (group?.hasMemoryNodes) group.setMemoryNodes(to);
  if (!threadShares(pod).some(({ part }) => native.grantThreads(uid, part).length > 0)) return null;
  const { pods } = assignmentsOf(site, ledger.read());
  const kept = pods
    .filter((each) => each.uid !== uid && ledger.owners.isOwn(each.owner))
    .reduce((nodes, each) => nodes.union(memoryNodesAt(topology, each)), to);
  return migrate(from.difference(kept), to);
}
