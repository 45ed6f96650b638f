// GrantRecord: a grant as it is on record, for the handles of this environment.
import type { PodAssignment } from '../../account/pod-assignment.js';
import { firstNodes, memoryOf, nodesOf, presentCpus, runningCpus } from '../../account/pod-holdings.js';
import { NumalignError, unlessRefused } from '../../base/errors.js';
import { GrantGroup } from '../../enforcement/grant-group.js';
import { inheritedLock, isStartedBy } from '../../enforcement/members/descent.js';
import { type MemoryBinding, memoryBindings } from '../../enforcement/memory-binding.js';
import type { PinResult } from '../../machine/affinity.js';
import type { CpuSet, NodeSet } from '../../machine/cpu-set.js';
import type { QuietOutcome } from '../../quiet/outcome.js';
import type { Host } from '../host.js';
import { recordedState } from '../on-record.js';
import { findGrant, ownerAlive } from './held-grant.js';

/** Grants that this environment is releasing: {@link GrantRecord.check} throws. */
export const endingGrants = () => new Set<string>();

/** @throws ERR_SIMULATED_MACHINE */
export function checkRealMachine({ topology }: Pick<Host, 'topology'>): void {
  if (!topology.isSimulated) return;
  throw new NumalignError(
    'ERR_SIMULATED_MACHINE',
    'a decision about a simulated machine cannot be applied to this one: open the manager without topology',
  );
}

/** The cgroup of a grant, if it has one. */
export function groupOf(host: Host, pod: PodAssignment): GrantGroup | undefined {
  if (pod.enforcement.target === null) return undefined;
  return GrantGroup.of(host, recordedState(host).settings, pod);
}

export class GrantRecord {
  /** The grant at the last look at the record. */
  pod: PodAssignment;
  /** Set once the grant is released through this handle. */
  released: Promise<PinResult> | undefined;
  /** Placements that put new Workers on the grant. */
  placements: readonly { readonly isActive: boolean; stop(): void }[] = [];

  constructor(
    readonly host: Host,
    pod: PodAssignment,
  ) {
    this.pod = pod;
  }

  stopPlacements(): void {
    for (const placement of this.placements) placement.stop();
    this.placements = [];
  }

  /**
   * The present grant; the last known one if it is off the record, or the record cannot be read. It
   * costs a stat, and a read if the state has changed.
   */
  look(): PodAssignment {
    try {
      this.pod = this.#find() ?? this.pod;
    } catch (error) {
      if (!(error instanceof NumalignError)) throw error;
    }
    return this.pod;
  }

  /** The memory nodes that its cgroups are bound to; empty if the grant is off the record. */
  memoryBindings(): readonly MemoryBinding[] {
    return this.isThere ? memoryBindings(this.look()) : Object.freeze([]);
  }

  /** Which quiet settings hold; null if it asks for none, is off the record, or cannot be read. */
  quietOutcome(): QuietOutcome | null {
    if (!this.isThere || !this.look().quiet) return null;
    return unlessRefused(() => this.host.quieter.outcome(recordedState(this.host), this.pod.uid), null);
  }

  /** True also if the record cannot be read. */
  get isThere(): boolean {
    return unlessRefused(() => this.#find() !== undefined, true);
  }

  #find(): PodAssignment | undefined {
    return findGrant(recordedState(this.host), this.pod);
  }

  get uid(): string {
    return this.pod.uid;
  }

  /** The NUMA nodes of the booked memory, else those of `cpus`. */
  memoryNodesNear(cpus: CpuSet, pod = this.look()): NodeSet {
    const booked = nodesOf(memoryOf(pod));
    return booked.isEmpty ? this.host.topology.nodesOf(cpus) : booked;
  }

  /** Those of {@link memoryNodesNear} that memory is to come from first. */
  preferredNodesNear(cpus: CpuSet, pod = this.look()): NodeSet {
    const booked = firstNodes(this.host.topology, memoryOf(pod));
    return booked.isEmpty ? this.memoryNodesNear(cpus, pod) : booked;
  }

  /** The CPUs that the grant runs on. */
  get cpus(): CpuSet {
    return runningCpus(this.look());
  }

  /** The CPUs that the grant keeps idle. */
  get held(): CpuSet {
    const pod = this.look();
    return presentCpus(pod).difference(runningCpus(pod));
  }

  /** The CPUs that an announced resize keeps. A move takes its threads along, and keeps all. */
  cpusToStay(pod = this.look()): CpuSet {
    const cpus = runningCpus(pod);
    return pod.upcoming && !pod.upcoming.move ? pod.upcoming.cpus.intersection(cpus) : cpus;
  }

  get group(): GrantGroup | undefined {
    return groupOf(this.host, this.pod);
  }

  /** True while this environment releases the grant, which may fail. */
  get isEnding(): boolean {
    return this.host.ledger.registry.of(endingGrants).has(this.pod.uid);
  }

  /** @throws ERR_GRANT_RELEASED if it is off the record, or is being released */
  check(): PodAssignment {
    const pod = this.#find();
    const { uid } = this.pod;
    if (this.released || !pod || this.isEnding) {
      throw new NumalignError('ERR_GRANT_RELEASED', `grant ${uid} has been released: acquire another`, {
        value: uid,
      });
    }
    this.pod = pod;
    return pod;
  }

  /**
   * Checks that no other process owns the grant.
   * @throws ERR_OWNER_ALIVE, as {@link check}
   */
  checkHeld(): void {
    const { owner, uid } = this.check();
    if (owner.kind === 'process' && !this.host.ledger.owners.isOwn(owner)) throw ownerAlive(uid, owner);
  }

  /**
   * {@link checkHeld}, on a real machine.
   * @throws ERR_SIMULATED_MACHINE, as {@link checkHeld}
   */
  checkUsable(): void {
    this.checkHeld();
    checkRealMachine(this.host);
  }

  /**
   * {@link checkUsable}, or the owner started this process, which may then run on the CPUs but not
   * change the grant.
   * @throws as {@link checkUsable}
   */
  checkRunnable(): void {
    const { owner, uid } = this.check();
    const isOthers = owner.kind === 'process' && !this.host.ledger.owners.isOwn(owner);
    if (isOthers && !isStartedBy(owner, process.pid)) throw ownerAlive(uid, owner);
    checkRealMachine(this.host);
  }

  /** A descriptor of the owner's lock, for a child that is to keep the grant alive. */
  lockFd(): number | undefined {
    const { owner } = this.pod;
    if (owner.kind !== 'process') return undefined;
    const { owners } = this.host.ledger;
    return owners.isOwn(owner) ? owners.ownFd() : inheritedLock(owner);
  }
}
