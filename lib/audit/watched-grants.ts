// WatchedGrants: the grants of a state folder, and what has happened to each of them since an
// earlier look.
import type { PodAssignment } from '../account/pod-assignment.js';
import { presentCpus } from '../account/pod-holdings.js';
import { CpuSet } from '../machine/cpu-set.js';
import type { Topology } from '../machine/topology.js';
import { type Account, advance, auditOf, type GrantAudit, openAccount } from './account.js';
import { snapshotCpus, takeSnapshot } from './snapshot.js';
import { subjectOf } from './subject.js';
import { scanTasks } from './task-scan.js';

/** Where their memory is, and how fast the CPUs are. */
type AlsoSeen = Record<'memory' | 'frequency', boolean>;

export class WatchedGrants {
  #accounts: ReadonlyMap<string, Account> = new Map();

  constructor(private readonly start: 'first look' | 'last look') {}

  /**
   * What has happened since; nothing yet at the first look at a grant. Looks at the machine once
   * for all of them.
   */
  look(topology: Topology, pods: readonly PodAssignment[], more: Partial<AlsoSeen> = {}): GrantAudit[] {
    const { memory = false, frequency = true } = more;
    const before = this.#accounts;
    if (pods.length === 0) {
      this.#accounts = new Map();
      return [];
    }
    const cpus = pods.reduce((all, pod) => all.union(presentCpus(pod)), CpuSet.EMPTY);
    const views = { scan: scanTasks(cpus), cpus: snapshotCpus(cpus, true, frequency), memory };
    const accounts = pods.map((pod) => {
      const account = before.get(pod.uid);
      const now = takeSnapshot(subjectOf(topology, pod, false, account?.last.threads ?? []), views);
      return [pod, account ? advance(account, now) : openAccount(now)] as const;
    });
    this.#accounts = new Map(
      accounts.map(([{ uid }, account]) => [
        uid,
        this.start === 'first look' ? account : openAccount(account.last),
      ]),
    );
    return accounts.map(([{ uid, enforcement }, account]) => auditOf(account, uid, enforcement.level));
  }
}
