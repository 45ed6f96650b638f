// GrantRecord: a grant as it is on record, for the handles of it that this environment has.
import type { PodAssignment } from '../../account/pod-assignment.js';
import { presentCpus, runningCpus } from '../../account/pod-holdings.js';
import { NumalignError, unlessRefused } from '../../base/errors.js';
import { GrantGroup } from '../../enforcement/grant-group.js';
import { inheritedLock, isStartedBy } from '../../enforcement/members/descent.js';
import { type MemoryBinding, memoryBindings } from '../../enforcement/memory-binding.js';
import type { PinResult } from '../../machine/affinity.js';
import type { CpuSet } from '../../machine/cpu-set.js';
import type { QuietOutcome } from '../../quiet/outcome.js';
import { vacateOf } from '../../threads/vacate.js';
import { assignmentsOf } from '../on-record.js';
import type { Site } from '../site.js';
import { findGrant, ownerAlive } from './held-grant.js';

// Grants that this environment is giving back: from when its threads have left nothing may go there
// any more.
const endingGrants = () => new Set<string>();

/** Does what ends a grant: until it is done or has failed, {@link GrantRecord.check} throws. */
export async function ending<T>(
  { ledger }: Site,
  { uid }: PodAssignment,
  action: () => Promise<T>,
): Promise<T> {
  const all = ledger.registry.of(endingGrants);
  all.add(uid);
  try {
    return await action();
  } finally {
    all.delete(uid);
  }
}

/** @throws ERR_SIMULATED_MACHINE */
export function checkRealMachine({ topology }: Pick<Site, 'topology'>): void {
  if (!topology.isSimulated) return;
  throw new NumalignError(
    'ERR_SIMULATED_MACHINE',
    'a decision about a simulated machine cannot be applied to this one',
  );
}

/** The cgroup of a grant, where it has one. */
export function groupOf(site: Site, pod: PodAssignment): GrantGroup | undefined {
  if (pod.enforcement.target === null) return undefined;
  return GrantGroup.of(site, assignmentsOf(site, site.ledger.read()).settings, pod);
}

/** How the threads of this process leave a grant. */
export function vacateGrant(site: Site, pod: PodAssignment) {
  return vacateOf(site.topology, groupOf(site, pod), pod);
}

export class GrantRecord {
  readonly site: Site;
  /** As it was last seen on record. */
  pod: PodAssignment;
  /** Set once the grant is released through this handle. */
  released: Promise<PinResult> | undefined;
  /** What puts on it whatever is born. */
  placements: readonly { readonly isActive: boolean; stop(): void }[] = [];

  constructor(site: Site, pod: PodAssignment) {
    this.site = site;
    this.pod = pod;
  }

  stopPlacements(): void {
    for (const placement of this.placements) placement.stop();
    this.placements = [];
  }

  /**
   * As it is; once it is off the record, or the record cannot be read, as it was. A stat, and a read
   * where the state has changed.
   */
  look(): PodAssignment {
    try {
      this.pod = this.#find() ?? this.pod;
    } catch (error) {
      if (!(error instanceof NumalignError)) throw error;
    }
    return this.pod;
  }

  /** What its groups are bound to now; nothing of a grant that is off the record. */
  memoryBindings(): readonly MemoryBinding[] {
    return this.isThere ? memoryBindings(this.look()) : Object.freeze([]);
  }

  /**
   * What of its quiet is reached; null where it asks for none, is off the record, or that cannot be
   * read.
   */
  quietOutcome(): QuietOutcome | null {
    if (!this.isThere || !this.look().quiet) return null;
    const { ledger, quieter } = this.site;
    return unlessRefused(() => quieter.outcome(assignmentsOf(this.site, ledger.read()), this.pod.uid), null);
  }

  /** Where the record cannot be read, as it was. */
  get isThere(): boolean {
    return unlessRefused(() => this.#find() !== undefined, true);
  }

  #find(): PodAssignment | undefined {
    const { ledger } = this.site;
    return findGrant(assignmentsOf(this.site, ledger.read()), this.pod);
  }

  /** The CPUs to run on. */
  get cpus(): CpuSet {
    return runningCpus(this.look());
  }

  /** CPUs that are kept from others though nothing runs on them. */
  get held(): CpuSet {
    const pod = this.look();
    return presentCpus(pod).difference(runningCpus(pod));
  }

  /**
   * Without those that an announced resize is about to take away. Where it moves its threads are
   * taken along.
   */
  get cpusToStay(): CpuSet {
    const pod = this.look();
    const cpus = runningCpus(pod);
    return pod.upcoming && !pod.upcoming.move ? pod.upcoming.cpus.intersection(cpus) : cpus;
  }

  get group(): GrantGroup | undefined {
    return groupOf(this.site, this.pod);
  }

  /** Whether this environment is giving it back, which may fail. */
  get isEnding(): boolean {
    return this.site.ledger.registry.of(endingGrants).has(this.pod.uid);
  }

  /**
   * @throws ERR_GRANT_RELEASED where it is off the record, or on its way
   */
  check(): PodAssignment {
    const pod = this.#find();
    const { uid } = this.pod;
    if (this.released || !pod || this.isEnding) {
      throw new NumalignError('ERR_GRANT_RELEASED', `grant ${uid} has been released`, { value: uid });
    }
    this.pod = pod;
    return pod;
  }

  /**
   * On record, and ours or nobody's: what is somebody else's must not be run on.
   * @throws ERR_OWNER_ALIVE, as {@link check}
   */
  checkHeld(): void {
    const { owner, uid } = this.check();
    if (owner.kind === 'process' && !this.site.ledger.owners.isOwn(owner)) throw ownerAlive(uid, owner);
  }

  /**
   * Held, and on this machine.
   * @throws ERR_SIMULATED_MACHINE, as {@link checkHeld}
   */
  checkUsable(): void {
    this.checkHeld();
    checkRealMachine(this.site);
  }

  /**
   * Usable, or the owner has started this process, which lives on the CPUs then: it may run there,
   * and change nothing of the grant.
   * @throws as {@link checkUsable}
   */
  checkRunnable(): void {
    const { owner } = this.check();
    if (owner.kind === 'process' && isStartedBy(owner, process.pid)) checkRealMachine(this.site);
    else this.checkUsable();
  }

  /** A descriptor of the owner's lock, for a child that shall keep the grant alive. */
  lockFd(): number | undefined {
    const { owner } = this.pod;
    if (owner.kind !== 'process') return undefined;
    const { owners } = this.site.ledger;
    return owners.isOwn(owner) ? owners.ownFd() : inheritedLock(owner);
  }
}
