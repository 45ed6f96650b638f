// Holders: the grants on whose CPUs a process may run. Follows changes of the list of grants, at
// the cost of what changed.
import type { PodAssignment } from '../../account/pod-assignment.js';
import { cpusOf } from '../../account/pod-holdings.js';
import { podListChanges, podsAfter, podsBefore } from '../../account/pod-list-changes.js';
import { hasOpen, isHolder } from './descent.js';
import { type Process, processesIn } from './member-processes.js';

export class Holders {
  #pods: readonly PodAssignment[] = [];
  // The grants of processes by the pid of the owner; those of cgroups and without an owner by uid.
  readonly #grants = new Map<number | string | null, Set<PodAssignment>>();
  readonly #ofCgroups = new Set<PodAssignment>();
  // Those whose former owner has not left them yet.
  readonly #handedOver = new Set<PodAssignment>();

  /**
   * The grants of a list that a process holds, or has not left yet, or for which it has pinned threads
   * although no process owns them. See attachedCpus for the grant that it was attached to, and
   * {@link podsOfBoth} for two lists.
   */
  grantsOf(pods: readonly PodAssignment[], { pid, pinned = [] }: Process): readonly PodAssignment[] {
    this.#follow(pods);
    const found = new Set<PodAssignment>();
    const isHeld = new Map<string, boolean>();
    for (const pod of this.#grants.get(pid) ?? []) {
      const { owner } = pod;
      if (!isHeld.has(owner.uuid)) isHeld.set(owner.uuid, isHolder(owner, pid));
      if (isHeld.get(owner.uuid)) found.add(pod);
    }
    // Their pids are not on record.
    for (const pod of this.#handedOver) if (hasOpen(pid, `/owners/${pod.formerOwner}`)) found.add(pod);
    for (const uid of pinned) {
      for (const pod of this.#grants.get(uid) ?? []) found.add(pod);
    }
    for (const pod of this.#ofCgroups) {
      if (processesIn(pod.owner.cgroup!.path).includes(pid)) found.add(pod);
    }
    return [...found];
  }

  #follow(pods: readonly PodAssignment[]): void {
    if (pods === this.#pods) return;
    const changes = podListChanges(this.#pods, pods);
    this.#pods = pods;
    for (const pod of podsBefore(changes)) this.#drop(pod);
    for (const pod of podsAfter(changes)) if (!cpusOf(pod).isEmpty) this.#add(pod);
  }

  #add(pod: PodAssignment): void {
    const key = keyOf(pod);
    this.#grants.set(key, (this.#grants.get(key) ?? new Set()).add(pod));
    if (pod.owner.kind !== 'process' && pod.owner.cgroup !== null) this.#ofCgroups.add(pod);
    if (pod.formerOwner !== null) this.#handedOver.add(pod);
  }

  #drop(pod: PodAssignment): void {
    const key = keyOf(pod);
    const grants = this.#grants.get(key);
    if (grants?.delete(pod) && grants.size === 0) this.#grants.delete(key);
    this.#ofCgroups.delete(pod);
    this.#handedOver.delete(pod);
  }
}

const keyOf = ({ uid, owner }: PodAssignment) => (owner.kind === 'process' ? owner.pid : uid);
