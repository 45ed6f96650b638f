// PreparedPod: a pod whose request is parsed and checked once, for many plans.
import type { DeviceResource } from '../../decision/devices/device-resources.js';
import { checkPlacement } from '../../input/placement.js';
import type { AdmissionRequest } from '../../input/requests/request.js';
import { pageBytes } from '../../input/values/memory-types.js';
import type { Topology } from '../../machine/topology.js';
import type { ReadOnlySite } from '../site.js';
import { onRecord, type Plan, type PlanOnRecord, planOn } from './plan.js';
import { type PlanningGround, planningGround } from './planning-ground.js';

/** A plan, and everything besides the request that it follows from. */
interface Answer {
  readonly plan: Plan;
  readonly topology: Topology;
  readonly ground: PlanningGround;
  /** The requested resources; undefined for those that are not registered. */
  readonly resources: readonly (DeviceResource | undefined)[];
}

// Later calls return the same lists, so that no caller may change them.
function frozenPlan(plan: Plan): Plan {
  for (const list of [plan.containers, plan.hints, plan.warnings]) Object.freeze(list);
  return plan;
}

/** A checked pod; {@link Manager.prepare} makes it. */
export class PreparedPod {
  readonly #site: () => ReadOnlySite;
  readonly #request: AdmissionRequest;
  readonly #names: readonly string[];
  #last: Answer | undefined;

  /** Use {@link Manager.prepare}. `site` throws if the manager is closed. */
  constructor(site: () => ReadOnlySite, request: AdmissionRequest) {
    this.#site = site;
    this.#request = request;
    this.#names = [...new Set(request.pod.containers.flatMap(({ requests }) => Object.keys(requests)))];
  }

  /**
   * Returns what {@link Manager.plan} would return for the pod now. It decides again only if the
   * state, the machine or the registered devices have changed since the last call.
   * @throws ERR_HINT_PROVIDER, ERR_POD_CONFLICT, ERR_STATE_*, ERR_MANAGER_CLOSED;
   *   ERR_INVALID_OPTION if the machine has changed and no longer allows the placement
   */
  plan(): PlanOnRecord {
    const site = this.#site();
    const ground = planningGround(site);
    const last = this.#last;
    if (last && this.#holds(last, site, ground)) return onRecord(last.plan, ground.generation);
    this.#last = undefined;
    checkPlacement(this.#request.placement, site.topology);
    const plan = planOn(site, ground, this.#request);
    const { topology } = site;
    const resources = this.#names.map((name) => site.resources.get(name));
    if (this.#followsFrom(site, resources, plan))
      this.#last = { plan: frozenPlan(plan), topology, ground, resources };
    return onRecord(plan, ground.generation);
  }

  #holds({ topology, ground, resources }: Answer, site: ReadOnlySite, now: PlanningGround): boolean {
    if (topology !== site.topology || ground.state !== now.state || ground.present !== now.present)
      return false;
    if (!site.providers.isEmpty) return false;
    for (let i = 0; i < resources.length; i++) {
      if (resources[i] !== site.resources.get(this.#names[i]!)) return false;
    }
    return true;
  }

  // Callbacks may change their answers at any time, and so may the kernel's free hugepages. Grants
  // that moved within the hour may move again later.
  #followsFrom(
    { topology, providers }: ReadOnlySite,
    resources: Answer['resources'],
    { repacking }: Plan,
  ): boolean {
    if (repacking) return false;
    const hasCallback = resources.some((resource) => resource?.preferredAllocation !== undefined);
    const readsKernel = !topology.isSimulated && this.#names.some((name) => pageBytes(name) !== undefined);
    return providers.isEmpty && !hasCallback && !readsKernel;
  }
}
