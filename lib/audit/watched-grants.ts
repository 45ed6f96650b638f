// WatchedGrants: all grants of a state folder, and what has happened to each of them from look to look.
import { CpuSet } from '../cpu-set.js';
import { type PodAssignment, presentCpus } from '../state/assignments.js';
import type { Topology } from '../topology.js';
import { advance, auditOf, type GrantAudit, openAccount } from './account.js';
import { type Snapshot, scanTasks, snapshotCpus, takeSnapshot } from './snapshot.js';
import { subjectOf } from './subject.js';

export class WatchedGrants {
  #snapshots: ReadonlyMap<string, Snapshot> = new Map();

  /** What has happened since the last look; of grants that were not there then nothing yet. The machine is looked at once for all of them. */
  look(topology: Topology, pods: readonly PodAssignment[]): GrantAudit[] {
    const cpus = pods.reduce((all, pod) => all.union(presentCpus(pod)), CpuSet.EMPTY);
    const views = { scan: scanTasks(cpus), cpus: snapshotCpus(cpus, true), memory: false };
    const before = this.#snapshots;
    this.#snapshots = new Map(
      pods.map((pod) => {
        const threads = before.get(pod.uid)?.threads ?? [];
        return [pod.uid, takeSnapshot(subjectOf(topology, pod, false, threads), views)];
      }),
    );
    return pods.map(({ uid, enforcement }) => {
      const now = this.#snapshots.get(uid)!;
      const last = before.get(uid);
      return auditOf(last ? advance(openAccount(last), now) : openAccount(now), uid, enforcement.level);
    });
  }
}
