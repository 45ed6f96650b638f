// Pod: the containers that Manager.admit has placed, until released.
import { NumalignError } from './errors.js';
import { releaseGrant } from './grant.js';
import { type PodContainer, podContainer } from './managers/plan.js';
import type { Admission, Site } from './managers/topology-manager.js';
import type { PodAssignment } from './state/assignments.js';

/** An admitted pod, as {@link Manager.admit} and {@link Manager.pod} give it. */
export class Pod {
  readonly uid: string;
  readonly name: string;
  /** Init containers and sidecars first, each in the order of the request. */
  readonly containers: readonly PodContainer[];
  /** Under which it was admitted. */
  readonly policy: string;
  readonly scope: string;
  /** It was placed before, and stays as it was. */
  readonly alreadyAdmitted: boolean;
  readonly #site: Site;
  readonly #pod: PodAssignment;

  /** Use {@link Manager.admit}. */
  constructor(site: Site, { pod, alreadyAdmitted }: Admission) {
    this.#site = site;
    this.#pod = pod;
    this.uid = pod.uid;
    this.name = pod.name;
    this.policy = pod.policy;
    this.scope = pod.scope;
    this.alreadyAdmitted = alreadyAdmitted;
    this.containers = Object.freeze(pod.containers.map(podContainer));
  }

  /** @throws ERR_UNKNOWN_CONTAINER */
  container(name: string): PodContainer {
    const found = this.containers.find((container) => container.name === name);
    if (found) return found;
    throw new NumalignError('ERR_UNKNOWN_CONTAINER', `pod ${this.uid} has no container ${name}`, {
      value: name,
      valid: this.containers.map((container) => container.name),
    });
  }

  /** Gives back what the pod holds. @throws ERR_UNKNOWN_GRANT where it was released before, ERR_OWNER_ALIVE */
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
    const { uid, name, policy, scope, alreadyAdmitted, containers } = this;
    return { uid, name, policy, scope, alreadyAdmitted, containers };
  }
}
