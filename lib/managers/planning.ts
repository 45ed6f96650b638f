// Planning: what a manager would decide, without a lock or a change.

import type { ReadOnlyHost } from '../admission/host.js';
import { type PlanOnRecord, planFor } from '../admission/plan.js';
import { Planner, PreparedPod, reasonsToShare } from '../admission/planner.js';
import { requestFor } from '../admission/request-check.js';
import { invalidOption } from '../base/check-options.js';
import { turnIfDue } from '../base/steps.js';
import {
  type Defragmentation,
  type DefragmentOptions,
  parseDefragment,
  planDefragmentation,
} from '../changes/defragment.js';
import type { Placement } from '../input/placement.js';
import type { PodSpec } from '../input/pods/pod-spec.js';
import { type AdmitOptions, NO_OPTIONS } from '../input/requests/request-options.js';

/** Plans pods: see {@link ManagerView}. */
export class Planning {
  /** `host`: throws once the manager is closed. `placement`: that of requests that choose none. */
  constructor(
    private readonly host: () => ReadOnlyHost,
    private readonly placement: Placement,
  ) {}

  /**
   * Returns what {@link Manager.admit} would decide now, without a lock or a change. Custom hint
   * providers allocate and release with `dryRun` set.
   * @throws what {@link Manager.admit} throws before it decides; ERR_HINT_PROVIDER
   */
  plan(pod: PodSpec, options: AdmitOptions = NO_OPTIONS): PlanOnRecord {
    const host = this.host();
    return planFor(host, requestFor(host, this.placement, pod, options));
  }

  /**
   * Checks a pod once, to plan it often: its `plan()` answers as {@link plan}, in less time. Later
   * changes of `pod` and `options` have no effect. See docs/admission.md.
   * @throws as {@link plan}
   */
  prepare(pod: PodSpec, options: AdmitOptions = NO_OPTIONS): PreparedPod {
    return new PreparedPod(this.host, requestFor(this.host(), this.placement, pod, options));
  }

  /** Plans several pods on top of each other. @throws ERR_STATE_CORRUPT as {@link sharedPool} */
  planner(): Planner {
    return new Planner(this.host(), this.placement);
  }

  /**
   * Says for each container of a pod why it gets no exclusive CPUs even on an empty machine: the
   * CPU policy, the QoS class, or a request that is not a whole number of CPUs; null for one that gets
   * some.
   * @throws as {@link plan}
   */
  whyShared(pod: PodSpec, options: AdmitOptions = NO_OPTIONS): readonly (string | null)[] {
    return reasonsToShare(this.host(), requestFor(this.host(), this.placement, pod, options));
  }

  /**
   * Returns what {@link Manager.defragment} would move now, without a lock or a change.
   * @throws ERR_INVALID_OPTION without `dryRun: true`; ERR_STATE_*; the signal's reason
   */
  async defragment(options: DefragmentOptions & { dryRun: true }): Promise<Defragmentation> {
    const { dryRun, signal } = parseDefragment(options);
    if (!dryRun) invalidOption('dryRun', dryRun, 'true: this manager only reads');
    await turnIfDue();
    return planDefragmentation(this.host(), this.placement, signal);
  }
}
