// Pod: the containers that Manager.admit has placed, until released.
import { type InspectOptions, inspect } from 'node:util';
import type { PodAssignment, PodBooking } from '../account/pod-assignment.js';
import type { Admission } from '../admission/admit.js';
import { type Attachment, type AttachOptions, attachProcess } from '../admission/grants/attachment.js';
import { GrantRecord } from '../admission/grants/grant-record.js';
import { markStarted, setOwner } from '../admission/grants/held-grant.js';
import { tracedApply } from '../admission/grants/traced.js';
import type { Host } from '../admission/host.js';
import { flagsNow } from '../admission/on-record.js';
import { type PodContainer, podContainer } from '../admission/pod-container.js';
import type { Warning } from '../admission/warnings.js';
import { isNumalignError, NumalignError } from '../base/errors.js';
import type { Flag } from '../decision/flags/flags.js';
import type { MemoryBinding } from '../enforcement/memory-binding.js';
import { type LastingOwner, parseLastingOwner } from '../input/requests/owner.js';
import { CpuSet } from '../machine/cpu-set.js';
import type { QuietOutcome } from '../quiet/outcome.js';
import { factsOf } from './facts.js';
import { release } from './release.js';

const FACTS = [
  'uid',
  'name',
  'policy',
  'scope',
  'alreadyAdmitted',
  'containers',
  'booking',
  'memoryEnforcement',
  'quiet',
] as const;

/**
 * An admitted pod; {@link Manager.admit} and {@link Manager.pod} make it. `await using` releases
 * it.
 */
export class Pod {
  /** Identifies the pod: {@link Manager.release} and {@link Manager.pod} take it. */
  readonly uid: string;
  /** The name of the pod, else its uid. */
  readonly name: string;
  /** The topology policy at its admission. */
  readonly policy: string;
  /** The topology scope at its admission. */
  readonly scope: string;
  /** Whether it was admitted before, and stays as it was. */
  readonly alreadyAdmitted: boolean;
  /** Whether it replaces a pod of its uid, see {@link Manager.admitAll}. */
  readonly replaced: boolean;
  /** What the owner should know, at the time of the admission. */
  readonly warnings: readonly Warning[];
  /** As {@link Grant.explanation}. */
  readonly explanation: string | null;
  readonly #host: Host;
  #pod: PodAssignment;

  /** Use {@link Manager.admit}. */
  constructor(
    host: Host,
    { pod, warnings, alreadyAdmitted, replaced = false, explanation = null }: Admission,
  ) {
    this.#host = host;
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

  /** What each container has: init containers and sidecars first, in the order of the request. */
  get containers(): readonly PodContainer[] {
    return Object.freeze(this.#pod.containers.map(podContainer));
  }

  /**
   * What is booked for the pod as a whole (`cpus`, `held`, `memory`), of which its containers have
   * parts; null if they are booked one by one.
   */
  get booking(): PodBooking | null {
    return this.#pod.booking;
  }

  /** What does not hold any more, as {@link Grant.flags}. */
  flags(): readonly Flag[] {
    return flagsNow(this.#host, this.#pod);
  }

  /** As {@link Grant.memoryEnforcement}. */
  get memoryEnforcement(): readonly MemoryBinding[] {
    return new GrantRecord(this.#host, this.#pod).memoryBindings();
  }

  /** As {@link Grant.quiet}. */
  get quiet(): QuietOutcome | null {
    return new GrantRecord(this.#host, this.#pod).quietOutcome();
  }

  /**
   * Returns a container. Its `attach` moves a process onto its CPUs as {@link Grant.attach} does; a
   * process of a container in the shared pool becomes a shared member.
   * @throws ERR_UNKNOWN_CONTAINER
   */
  container(
    name: string,
  ): PodContainer & { attach(pid: number, options?: AttachOptions): Promise<Attachment> } {
    const match = this.containers.find((container) => container.name === name);
    if (match) {
      const attach = (pid: number, options: AttachOptions = {}) =>
        tracedApply({ host: this.#host, uid: this.uid, cpus: match.cpus ?? CpuSet.EMPTY }, 'attach', () =>
          attachProcess(this.#host, { grant: this.#pod, container: name }, pid, options),
        );
      return { ...match, attach };
    }
    throw new NumalignError('ERR_UNKNOWN_CONTAINER', `pod ${this.uid} has no container ${name}`, {
      value: name,
      valid: this.containers.map((container) => container.name),
    });
  }

  /**
   * Reports that a container, and every one before it, has started. Init containers before it have
   * ended: their memory is released, their CPUs and devices stay with the pod, as in the kubelet.
   * @throws ERR_UNKNOWN_CONTAINER, ERR_UNKNOWN_GRANT, ERR_OWNER_ALIVE
   */
  async markStarted(container: string): Promise<void> {
    this.container(container);
    this.#pod = await markStarted(this.#host, this.#pod, container);
  }

  /**
   * Gives the pod another owner: `persistent`, or `{ cgroup }` with the absolute path of a cgroup's
   * folder that has a process in it or below it. It commits nothing if that is the owner already.
   * See docs/grants.md.
   * @throws ERR_INVALID_OPTION for no cgroup or an empty one; ERR_UNKNOWN_GRANT, also if the former
   *   owner has ended; ERR_OWNER_ALIVE if another living process owns it; ERR_LOCK_TIMEOUT,
   *   ERR_STATE_*, ERR_SYSCALL. An error changes nothing
   */
  async setOwner(owner: LastingOwner): Promise<void> {
    this.#pod = await setOwner(this.#host, this.#pod, parseLastingOwner(owner));
  }

  /**
   * Releases everything that the pod holds.
   * @throws ERR_UNKNOWN_GRANT if it was released before; ERR_OWNER_ALIVE
   */
  async release(): Promise<void> {
    await release(this.#host, this.#pod);
  }

  /** As {@link release}; a second release is not an error here. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.release();
    } catch (error) {
      if (!isNumalignError(error, 'ERR_UNKNOWN_GRANT')) throw error;
    }
  }

  /** All facts as a plain object. */
  toJSON() {
    return { ...factsOf(this as Pod, FACTS), flags: this.flags(), warnings: this.warnings };
  }

  /** What console.log shows. */
  [inspect.custom](_depth: number, options: InspectOptions): string {
    return `Pod ${inspect(this.toJSON(), options)}`;
  }
}
