// WholePods: pods that are one pod for the managers, admitted with all their containers when the first
// one is created. Then all fit or none, init containers and sidecars count as a kubelet counts them,
// and the scope of the policy may be the pod.
import { type Manager, NumalignError, type Pod } from 'numalign';
import type { PlainPod } from 'numalign/kubelet';
import type { Log } from '../base/log.js';
import type { PodSandbox } from '../nri/messages.js';
import type { ContainerPolicy } from '../placement/container-policy.js';
import { matching } from '../placement/rules.js';
import { type FindManifest, usesClaims, wholePodOf } from '../placement/whole-pod.js';
import { type Placement, placementOf } from './container-placement.js';

export interface WholePodsOptions {
  readonly manager: Manager;
  readonly prefix: string;
  /** Undefined: containers are placed one by one. */
  readonly findManifest: FindManifest | undefined;
  /** Whether claims may give CPUs to containers: then those of a pod with claims are placed one by one. */
  readonly hasClaims?: boolean;
  readonly policy: () => ContainerPolicy;
  readonly log: Log;
}

export class WholePods {
  readonly #options: WholePodsOptions;
  #lastFailure = '';

  constructor(options: WholePodsOptions) {
    this.#options = options;
  }

  /** A container's part of what its whole pod has on record; null if the pod, or it, is not there. */
  find({ uid }: Pick<PodSandbox, 'uid'>, container: string): Placement | null {
    if (uid === '') return null;
    try {
      return partOf(this.#options.manager.pod(uid), container);
    } catch (error) {
      if (error instanceof NumalignError && error.code === 'ERR_UNKNOWN_GRANT') return null;
      throw error;
    }
  }

  /**
   * Admits a pod at its first container. Null if that is to be placed by itself.
   * @throws like Manager.admit
   */
  async admit(pod: PodSandbox, container: string): Promise<Placement | null> {
    const whole = await this.#wholeOf(pod);
    if (!whole) return null;
    // The runtime writes the cpusets of containers, and makes others leave.
    const { placement } = this.#options.policy();
    const options = { owner: 'persistent', enforcement: 'members', ...placement } as const;
    return partOf(await this.#options.manager.admit(whole, options), container);
  }

  /** Whether a rule says what one of its containers gets: then they are placed one by one. */
  #hasRule(
    { namespace, labels, annotations }: PodSandbox,
    { containers, initContainers = [] }: Pick<PlainPod, 'containers' | 'initContainers'>,
  ): boolean {
    const { rules } = this.#options.policy();
    const pod = { namespace: namespace || 'default', labels, annotations, qosClass: 'Guaranteed' };
    return [...initContainers, ...containers].some(({ name }) =>
      matching(rules, { ...pod, container: name }),
    );
  }

  async #wholeOf(pod: PodSandbox) {
    const { findManifest, hasClaims = false, prefix, log } = this.#options;
    if (!findManifest) return undefined;
    try {
      const manifest = await findManifest(pod);
      const isOfClaims = hasClaims && manifest !== null && usesClaims(manifest);
      const whole = manifest && !isOfClaims ? wholePodOf(prefix, pod, manifest) : undefined;
      this.#lastFailure = '';
      return whole && !this.#hasRule(pod, whole) ? whole : undefined;
    } catch (error) {
      const { message } = error as Error;
      const fields = { pod: `${pod.namespace}/${pod.name}` };
      if (message !== this.#lastFailure)
        log('warn', `the containers of pod ${pod.name} are placed one by one: ${message}`, fields);
      this.#lastFailure = message;
      return undefined;
    }
  }
}

function partOf({ uid, containers }: Pod, name: string): Placement | null {
  const container = containers.find((each) => each.name === name);
  return container ? { ...placementOf(uid, true, container), partOfPod: name } : null;
}
