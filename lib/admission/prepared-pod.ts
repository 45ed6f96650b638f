// PreparedPod: a pod whose request is read and checked once, to be planned again and again.
import { checkPlacement } from '../input/placement.js';
import type { AdmissionRequest } from '../input/request.js';
import { type PlanOnRecord, planFor } from './plan.js';
import type { ReadOnlySite } from './site.js';

/** Made by {@link Manager.prepare}. */
export class PreparedPod {
  readonly #site: () => ReadOnlySite;
  readonly #request: AdmissionRequest;

  /** Use {@link Manager.prepare}. `site`: throws where the manager is closed. */
  constructor(site: () => ReadOnlySite, request: AdmissionRequest) {
    this.#site = site;
    this.#request = request;
  }

  /**
   * What {@link Manager.plan} would answer for the pod now, on the state, the machine and the
   * registered devices as they are.
   * @throws ERR_HINT_PROVIDER, ERR_POD_CONFLICT, ERR_STATE_*, ERR_MANAGER_CLOSED; ERR_INVALID_OPTION
   *   where the machine has changed, and does not allow such placement any more
   */
  plan(): PlanOnRecord {
    const site = this.#site();
    checkPlacement(this.#request.placement, site.topology);
    return planFor(site, this.#request);
  }
}
