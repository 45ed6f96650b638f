// Planner: plans several pods on top of each other. PreparedPod: plans one pod again and again.
import { type Assignments, findPod } from '../account/assignments.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { removePods } from '../account/pod-changes.js';
import { type Holding, holdingOf } from '../account/pod-holdings.js';
import { freeCpus, sharedPool } from '../account/pools.js';
import { native } from '../base/native.js';
import { isObject } from '../base/shapes.js';
import { whyShared } from '../decision/cpus/cpu-choices.js';
import { type DeviceEntry, deviceTable } from '../decision/devices/device-draft.js';
import type { DeviceResource } from '../decision/devices/device-resources.js';
import { type MemoryTable, memoryTables } from '../decision/memory/memory-tables.js';
import { checkPlacement, type Placement } from '../input/placement.js';
import type { PodSpec } from '../input/pods/pod-spec.js';
import type { AdmissionRequest } from '../input/requests/request.js';
import { type AdmitOptions, NO_OPTIONS } from '../input/requests/request-options.js';
import { pageBytes } from '../input/values/memory-types.js';
import { option } from '../input/values/option-values.js';
import { CpuSet } from '../machine/cpu-set.js';
import type { Topology } from '../machine/topology.js';
import type { ReadOnlyHost } from './host.js';
import { managedPod } from './on-record.js';
import { placedOrOld } from './placed-pod.js';
import {
  onRecord,
  type Plan,
  type PlanningState,
  type PlanOnRecord,
  plan,
  planningQuestion,
  planningState,
  planOfPlaced,
  planOn,
} from './plan.js';
import { requestFor } from './request-check.js';

const NOTHING: Holding = { cpus: CpuSet.EMPTY, memory: [], devices: {} };

/** The answer of {@link Planner.plan}, with everything that the pod would keep from others. */
export interface PodPlan extends Plan, Holding {
  /** The uid of the pod; a new one if it has none. */
  readonly uid: string;
  /** Whether the pod is admitted already and keeps what it has. */
  readonly alreadyAdmitted: boolean;
  /** Whether the pod is admitted with another request, which this one would replace. */
  readonly replaced: boolean;
  /** The topology policy. */
  readonly policy: string;
  /** The topology scope. */
  readonly scope: string;
}

/** The options of {@link Planner.plan}. */
export interface PlannerOptions extends AdmitOptions {
  /**
   * As {@link AdmitAllOptions.replace}.
   * @default `false`
   */
  replace?: boolean;
}

/**
 * Plans several pods on top of each other; {@link Manager.planner} makes it. Each plan counts the
 * pods before it that would be admitted. It locks and changes nothing. Custom hint providers see
 * each pod as if it were the only one.
 */
export class Planner {
  /** The generation of the state that it plans on. */
  readonly generation: number;
  readonly #host: ReadOnlyHost;
  readonly #placement: Placement;
  #current: PlanningState;

  /** Use {@link Manager.planner}. @throws ERR_STATE_CORRUPT */
  constructor(host: ReadOnlyHost, placement: Placement) {
    this.#host = host;
    this.#placement = placement;
    this.#current = planningState(host);
    this.generation = this.#current.generation;
  }

  /**
   * Returns what {@link Manager.admit} would decide. A rejected pod takes nothing.
   * @throws as {@link Manager.plan}; ERR_POD_CONFLICT for a pod without uid that has the name of
   *   one before it
   */
  plan(spec: PodSpec, options: PlannerOptions = NO_OPTIONS): PodPlan {
    const { replace, rest } = replaceOf(options);
    const request = requestFor(this.#host, this.#placement, spec, rest);
    const { placed, old } = placedOrOld(this.#current.state, request.pod, replace);
    const replaced = old !== undefined;
    if (placed) {
      const { uid, policy, scope } = placed;
      const plan = planOfPlaced(placed);
      return { ...plan, uid, alreadyAdmitted: true, replaced, policy, scope, ...holdingOf(placed) };
    }
    const uid = request.pod.uid ?? native.randomUuid();
    const { topologyPolicy, scope } = request.placement;
    const question = planningQuestion(this.#host, without(this.#current, old), request, uid);
    const { plan: answer, next: withPod } = plan(question);
    const next = withPod?.();
    const pod = next && findPod(next, question.uid);
    if (pod) this.#add(next, pod, uid);
    const holding = pod ? holdingOf(pod) : NOTHING;
    return { ...answer, uid, alreadyAdmitted: false, replaced, policy: topologyPolicy, scope, ...holding };
  }

  // Custom providers decided on the pod under another uid.
  #add(next: Assignments, pod: PodAssignment, uid: string): void {
    const planned = { ...pod, uid, name: pod.name === pod.uid ? uid : pod.name };
    const pods = next.pods.map((each) => (each === pod ? planned : each));
    this.#current = { ...this.#current, state: { ...next, pods } };
  }

  /** As {@link Manager.memory}, with what was planned so far and without what dead owners had. */
  memory(): readonly MemoryTable[] {
    return memoryTables(this.#current.state, this.#host.topology);
  }

  /** As {@link Manager.freeCpus}, with what was planned so far and without what dead owners had. */
  freeCpus(): CpuSet {
    return freeCpus(this.#current.state, this.#current.present);
  }

  /**
   * As {@link Manager.sharedPool}, with what was planned so far and without what dead owners had.
   */
  sharedPool(): CpuSet {
    return sharedPool(this.#current.state, this.#current.present);
  }

  /**
   * All devices that the manager knows, with what was planned so far and without what dead owners
   * had.
   */
  devices(): readonly DeviceEntry[] {
    return deviceTable(this.#current.state, this.#host.resources);
  }
}

function replaceOf(options: PlannerOptions): { replace: boolean; rest: AdmitOptions } {
  if (!isObject(options) || !('replace' in options)) return { replace: false, rest: options };
  const { replace = false, ...rest } = options;
  return { replace: option.flag(replace, 'replace'), rest };
}

function without(current: PlanningState, pod: PodAssignment | undefined): PlanningState {
  return pod ? { ...current, state: removePods(current.state, new Set([pod.uid])) } : current;
}

/** Why containers get no exclusive CPUs, whatever is free; null for one that gets some. */
export function reasonsToShare(host: ReadOnlyHost, request: AdmissionRequest): (string | null)[] {
  const pod = managedPod(host, request.pod);
  return pod.containers.map((container) => whyShared(pod, container, request.placement));
}

/** A plan, and everything besides the request that it follows from. */
interface LastPlan {
  readonly plan: Plan;
  readonly topology: Topology;
  readonly current: PlanningState;
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
  readonly #host: () => ReadOnlyHost;
  readonly #request: AdmissionRequest;
  readonly #names: readonly string[];
  #last: LastPlan | undefined;

  /** Use {@link Manager.prepare}. `host` throws if the manager is closed. */
  constructor(host: () => ReadOnlyHost, request: AdmissionRequest) {
    this.#host = host;
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
    const host = this.#host();
    const current = planningState(host);
    const last = this.#last;
    if (last && this.#holds(last, host, current)) return onRecord(last.plan, current.generation);
    this.#last = undefined;
    checkPlacement(this.#request.placement, host.topology);
    const plan = planOn(host, current, this.#request);
    const { topology } = host;
    const resources = this.#names.map((name) => host.resources.get(name));
    if (this.#followsFrom(host, resources, plan))
      this.#last = { plan: frozenPlan(plan), topology, current, resources };
    return onRecord(plan, current.generation);
  }

  #holds({ topology, current, resources }: LastPlan, host: ReadOnlyHost, now: PlanningState): boolean {
    if (topology !== host.topology || current.state !== now.state || current.present !== now.present)
      return false;
    if (!host.providers.isEmpty) return false;
    for (let i = 0; i < resources.length; i++) {
      if (resources[i] !== host.resources.get(this.#names[i]!)) return false;
    }
    return true;
  }

  // Callbacks may change their answers at any time, and so may the kernel's free hugepages. Grants
  // that moved within the hour may move again later.
  #followsFrom(
    { topology, providers }: ReadOnlyHost,
    resources: LastPlan['resources'],
    { repacking }: Plan,
  ): boolean {
    if (repacking) return false;
    const hasCallback = resources.some((resource) => resource?.preferredAllocation !== undefined);
    const readsKernel = !topology.isSimulated && this.#names.some((name) => pageBytes(name) !== undefined);
    return providers.isEmpty && !hasCallback && !readsKernel;
  }
}
