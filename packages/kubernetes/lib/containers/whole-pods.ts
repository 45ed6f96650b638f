// WholePods: pods that are one pod for the managers, admitted with all their containers when the first
// one is created. Then all fit or none, init containers and sidecars count as a kubelet counts them,
// and the scope of the policy may be the pod.
import type { CpuSet, Manager, Pod } from 'numalign';
import { isNumalignError } from 'numalign/tools';
import type { Log } from '../base/log.js';
import type { PodSandbox } from '../nri/messages.js';
import { admitOptions, type ContainerPolicy } from '../placement/container-policy.js';
import { type FindManifest, usesClaims, type WholePod, wholePodOf } from '../placement/whole-pod.js';
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
      if (isNumalignError(error, 'ERR_UNKNOWN_GRANT')) return null;
      throw error;
    }
  }

  /** Admits a pod at its first container. `choice`: the CPUs to choose from. @throws like Manager.admit */
  async admit({ pod, request }: WholePod, container: string, choice?: CpuSet): Promise<Placement | null> {
    const options = admitOptions(this.#options.policy(), request, choice);
    return partOf(await this.#options.manager.admit(pod, options), container);
  }

  /**
   * A pod that is to be admitted with all its containers; undefined: they are placed one by one.
   * @throws NodeError ERR_INVALID_ANNOTATION
   */
  async wholeOf(pod: PodSandbox): Promise<WholePod | undefined> {
    const { findManifest, hasClaims = false, prefix, policy } = this.#options;
    if (!findManifest) return undefined;
    try {
      const manifest = await findManifest(pod);
      const isOfClaims = hasClaims && manifest !== null && usesClaims(manifest);
      const whole = manifest && !isOfClaims ? wholePodOf(prefix, pod, manifest, policy().rules) : undefined;
      this.#lastFailure = '';
      return whole;
    } catch (error) {
      if ((error as { code?: string }).code === 'ERR_INVALID_ANNOTATION') throw error;
      this.#report(pod, (error as Error).message);
      return undefined;
    }
  }

  #report({ namespace, name }: PodSandbox, message: string): void {
    const text = `the containers of pod ${name} are placed one by one: ${message}`;
    if (text !== this.#lastFailure) this.#options.log('warn', text, { pod: `${namespace}/${name}` });
    this.#lastFailure = text;
  }
}

function partOf({ uid, containers }: Pod, name: string): Placement | null {
  const container = containers.find((each) => each.name === name);
  return container ? { ...placementOf(uid, true, container), partOfPod: name } : null;
}
