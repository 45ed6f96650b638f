// PreparedPod: a pod whose request is read and checked once, to be planned again and again.
import type { DeviceResource } from '../../decision/devices/device-resources.js';
import { checkPlacement } from '../../input/placement.js';
import type { AdmissionRequest } from '../../input/request.js';
import { pageBytes } from '../../input/values/memory-types.js';
import type { Topology } from '../../machine/topology.js';
import type { ReadOnlySite } from '../site.js';
import { onRecord, type Plan, type PlanOnRecord, planOn } from './plan.js';
import { type PlanningGround, planningGround } from './planning-ground.js';

/** An answer, and all that it follows from beside the request. */
interface Known {
  readonly plan: Plan;
  readonly topology: Topology;
  readonly ground: PlanningGround;
  /** Those that are asked for; undefined where nobody gives them out. */
  readonly resources: readonly (DeviceResource | undefined)[];
}

// Who is given it must not change it for those who are given it later.
function lasting(plan: Plan): Plan {
  for (const list of [plan.containers, plan.hints, plan.warnings]) Object.freeze(list);
  return plan;
}

/** Made by {@link Manager.prepare}. */
export class PreparedPod {
  readonly #site: () => ReadOnlySite;
  readonly #request: AdmissionRequest;
  readonly #names: readonly string[];
  #known: Known | undefined;

  /** Use {@link Manager.prepare}. `site`: throws where the manager is closed. */
  constructor(site: () => ReadOnlySite, request: AdmissionRequest) {
    this.#site = site;
    this.#request = request;
    this.#names = [...new Set(request.pod.containers.flatMap(({ requests }) => Object.keys(requests)))];
  }

  /**
   * What {@link Manager.plan} would answer for the pod now, on the state, the machine and the
   * registered devices as they are. Where none of these has changed since the last call, nothing is
   * decided once more.
   * @throws ERR_HINT_PROVIDER, ERR_POD_CONFLICT, ERR_STATE_*, ERR_MANAGER_CLOSED; ERR_INVALID_OPTION
   *   where the machine has changed, and does not allow such placement any more
   */
  plan(): PlanOnRecord {
    const site = this.#site();
    const ground = planningGround(site);
    const known = this.#known;
    if (known && this.#holds(known, site, ground)) return onRecord(known.plan, ground.generation);
    this.#known = undefined;
    checkPlacement(this.#request.placement, site.topology);
    const plan = planOn(site, ground, this.#request);
    const { topology } = site;
    const resources = this.#names.map((name) => site.resources.get(name));
    if (this.#followsFrom(site, resources, plan))
      this.#known = { plan: lasting(plan), topology, ground, resources };
    return onRecord(plan, ground.generation);
  }

  #holds({ topology, ground, resources }: Known, site: ReadOnlySite, now: PlanningGround): boolean {
    if (topology !== site.topology || ground.state !== now.state || ground.present !== now.present)
      return false;
    if (!site.providers.isEmpty) return false;
    for (let i = 0; i < resources.length; i++) {
      if (resources[i] !== site.resources.get(this.#names[i]!)) return false;
    }
    return true;
  }

  // Callbacks may answer otherwise at any time, and the kernel of its free hugepages; and what has moved
  // within the hour may move again.
  #followsFrom(
    { topology, providers }: ReadOnlySite,
    resources: Known['resources'],
    { repacking }: Plan,
  ): boolean {
    if (repacking) return false;
    const isAsked = resources.some((resource) => resource?.preferredAllocation !== undefined);
    const readsKernel = !topology.isSimulated && this.#names.some((name) => pageBytes(name) !== undefined);
    return providers.isEmpty && !isAsked && !readsKernel;
  }
}
