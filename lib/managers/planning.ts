// Planning: what a manager would decide, without a lock or a change.
import { type PlanOnRecord, planFor } from '../admission/planning/plan.js';
import { Planner, reasonsToShare, requestFor } from '../admission/planning/planner.js';
import { PreparedPod } from '../admission/planning/prepared-pod.js';
import type { ReadOnlySite } from '../admission/site.js';
import { invalidOption } from '../base/check-options.js';
import { turnIfDue } from '../base/steps.js';
import type { Placement } from '../input/placement.js';
import type { PodSpec } from '../input/pods/pod-request.js';
import { type AdmitOptions, NO_OPTIONS } from '../input/request.js';
import {
  type Defragmentation,
  type DefragmentOptions,
  parseDefragment,
  planDefragmentation,
} from '../repacking/defragment.js';

/** Plans pods: see {@link ManagerView}. */
export class Planning {
  readonly #site: () => ReadOnlySite;
  readonly #placement: Placement;

  /** `site`: throws once the manager is closed. `placement`: that of requests that choose none. */
  constructor(site: () => ReadOnlySite, placement: Placement) {
    this.#site = site;
    this.#placement = placement;
  }

  /**
   * Returns what {@link Manager.admit} would decide now, without a lock or a change. Custom hint
   * providers allocate and release with `dryRun` set.
   * @throws what {@link Manager.admit} throws before it decides; ERR_HINT_PROVIDER
   */
  plan(pod: PodSpec, options: AdmitOptions = NO_OPTIONS): PlanOnRecord {
    const site = this.#site();
    return planFor(site, requestFor(site, this.#placement, pod, options));
  }

  /**
   * Checks a pod once, to plan it often: its `plan()` answers as {@link plan}, in less time. Later
   * changes of `pod` and `options` have no effect. See docs/admission.md.
   * @throws as {@link plan}
   */
  prepare(pod: PodSpec, options: AdmitOptions = NO_OPTIONS): PreparedPod {
    return new PreparedPod(this.#site, requestFor(this.#site(), this.#placement, pod, options));
  }

  /** Plans several pods on top of each other. @throws ERR_STATE_CORRUPT as {@link sharedPool} */
  planner(): Planner {
    return new Planner(this.#site(), this.#placement);
  }

  /**
   * Says for each container of a pod why it gets no exclusive CPUs even on an empty machine: the
   * CPU policy, the QoS class, or a request that is not a whole number of CPUs; null for one that gets
   * some.
   * @throws as {@link plan}
   */
  whyShared(pod: PodSpec, options: AdmitOptions = NO_OPTIONS): readonly (string | null)[] {
    return reasonsToShare(this.#site(), requestFor(this.#site(), this.#placement, pod, options));
  }

  /**
   * Returns what {@link Manager.defragment} would move now, without a lock or a change.
   * @throws ERR_INVALID_OPTION without `dryRun: true`; ERR_STATE_*; the signal's reason
   */
  async defragment(options: DefragmentOptions & { dryRun: true }): Promise<Defragmentation> {
    const { dryRun, signal } = parseDefragment(options);
    if (!dryRun) invalidOption('dryRun', dryRun, 'true: this manager only reads');
    await turnIfDue();
    return planDefragmentation(this.#site(), this.#placement, signal);
  }
}
