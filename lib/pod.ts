// Pod: the containers that Manager.admit has placed, until released.
import { type InspectOptions, inspect } from 'node:util';
import type { PodAssignment, PodBooking } from './account/pod-assignment.js';
import type { Admission } from './admission/admit.js';
import { type Attachment, type AttachOptions, attachProcess } from './admission/grants/attachment.js';
import { GrantRecord } from './admission/grants/grant-record.js';
import { markStarted } from './admission/grants/held-grant.js';
import { setOwner } from './admission/grants/ownership.js';
import { tracedApply } from './admission/grants/traced.js';
import { flagsNow } from './admission/on-record.js';
import { type PodContainer, podContainer } from './admission/pod-container.js';
import type { Site } from './admission/site.js';
import type { Warning } from './admission/warnings.js';
import { NumalignError } from './base/errors.js';
import type { Flag } from './decision/flags/flags.js';
import type { MemoryBinding } from './enforcement/memory-binding.js';
import { releaseGrant } from './grants/release-grant.js';
import { type LastingOwner, parseLastingOwner } from './input/owner.js';
import { CpuSet } from './machine/cpu-set.js';
import type { QuietOutcome } from './quiet/outcome.js';

/** An admitted pod, as {@link Manager.admit} and {@link Manager.pod} give it. */
export class Pod {
  readonly uid: string;
  readonly name: string;
  /** Under which it was admitted. */
  readonly policy: string;
  readonly scope: string;
  /** It was placed before, and stays as it was. */
  readonly alreadyAdmitted: boolean;
  /** It stands for one of its uid that asked for something else, see {@link Manager.admitAll}. */
  readonly replaced: boolean;
  /** What its owner should know; seen when it was admitted. */
  readonly warnings: readonly Warning[];
  /** As {@link Grant.explanation}. */
  readonly explanation: string | null;
  readonly #site: Site;
  #pod: PodAssignment;

  /** Use {@link Manager.admit}. */
  constructor(
    site: Site,
    { pod, warnings, alreadyAdmitted, replaced = false, explanation = null }: Admission,
  ) {
    this.#site = site;
    this.#pod = pod;
    this.uid = pod.uid;
    this.name = pod.name;
    this.policy = pod.policy;
    this.scope = pod.scope;
    this.alreadyAdmitted = alreadyAdmitted;
    this.replaced = replaced;
    this.warnings = warnings;
    this.explanation = explanation;
  }

  /** Init containers and sidecars first, each in the order of the request. */
  get containers(): readonly PodContainer[] {
    return Object.freeze(this.#pod.containers.map(podContainer));
  }

  /**
   * What is booked for the pod as a whole, of which its containers have parts; null: they are booked
   * one by one.
   */
  get booking(): PodBooking | null {
    return this.#pod.booking;
  }

  /** What of it does not hold any more, as {@link Grant.flags}. */
  flags(): readonly Flag[] {
    return flagsNow(this.#site, this.#pod);
  }

  /** As {@link Grant.memoryEnforcement}, of what is on record where that can be read. */
  get memoryEnforcement(): readonly MemoryBinding[] {
    return new GrantRecord(this.#site, this.#pod).memoryBindings();
  }

  /** As {@link Grant.quiet}. */
  get quiet(): QuietOutcome | null {
    return new GrantRecord(this.#site, this.#pod).quietOutcome();
  }

  /**
   * What a container has. `attach` moves a process onto its CPUs, as {@link Grant.attach}; of a
   * container of the shared pool the process becomes a shared member.
   * @throws ERR_UNKNOWN_CONTAINER
   */
  container(
    name: string,
  ): PodContainer & { attach(pid: number, options?: AttachOptions): Promise<Attachment> } {
    const found = this.containers.find((container) => container.name === name);
    if (found) {
      const attach = (pid: number, options: AttachOptions = {}) =>
        tracedApply(this.#site, { uid: this.uid, cpus: found.cpus ?? CpuSet.EMPTY }, 'attach', () =>
          attachProcess(this.#site, this.#pod, name, pid, options),
        );
      return { ...found, attach };
    }
    throw new NumalignError('ERR_UNKNOWN_CONTAINER', `pod ${this.uid} has no container ${name}`, {
      value: name,
      valid: this.containers.map((container) => container.name),
    });
  }

  /**
   * Tells that a container has started, and with it every one before. Init containers before it
   * have ended then, and their memory is given back; their CPUs and devices stay with the pod, as
   * in the kubelet.
   * @throws ERR_UNKNOWN_CONTAINER, ERR_UNKNOWN_GRANT, ERR_OWNER_ALIVE
   */
  async markStarted(container: string): Promise<void> {
    this.container(container);
    this.#pod = await markStarted(this.#site, this.#pod, container);
  }

  /**
   * Gives the pod another owner, in one step for all processes: `{ cgroup }`, the absolute path of a
   * cgroup's folder with a process in it or below it, by which the pod lives from now on, or
   * `persistent`. Commits nothing where that is the owner already.
   * @throws ERR_INVALID_OPTION for a cgroup that is none or is empty; ERR_UNKNOWN_GRANT, also where
   *   the owner before has ended; ERR_OWNER_ALIVE where another process that lives owns it;
   *   ERR_LOCK_TIMEOUT, ERR_STATE_*, ERR_SYSCALL. Then nothing is changed.
   */
  async setOwner(owner: LastingOwner): Promise<void> {
    this.#pod = await setOwner(this.#site, this.#pod, parseLastingOwner(owner));
  }

  /**
   * Gives back what the pod holds.
   * @throws ERR_UNKNOWN_GRANT where it was released before, ERR_OWNER_ALIVE
   */
  async release(): Promise<void> {
    await releaseGrant(this.#site, this.#pod);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.release();
    } catch (error) {
      if (!(error instanceof NumalignError && error.code === 'ERR_UNKNOWN_GRANT')) throw error;
    }
  }

  toJSON() {
    const { uid, name, policy, scope, alreadyAdmitted, containers, booking, quiet } = this;
    return {
      ...{ uid, name, policy, scope, alreadyAdmitted, containers, booking },
      ...{ memoryEnforcement: this.memoryEnforcement, quiet, flags: this.flags(), warnings: this.warnings },
    };
  }

  /** What console.log shows. */
  [inspect.custom](_depth: number, options: InspectOptions): string {
    return `Pod ${inspect(this.toJSON(), options)}`;
  }
}
