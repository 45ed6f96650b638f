// Planner: plans several pods on top of each other.
import { randomUUID } from 'node:crypto';
import { type Assignments, findPod } from '../../account/assignments.js';
import type { PodAssignment } from '../../account/pod-assignment.js';
import { removePods } from '../../account/pod-changes.js';
import { type Holding, holdingOf } from '../../account/pod-holdings.js';
import { freeCpus, sharedPool } from '../../account/pools.js';
import { isObject } from '../../base/shapes.js';
import { whyShared } from '../../decision/cpus/cpu-choices.js';
import { type DeviceEntry, deviceTable } from '../../decision/devices/device-draft.js';
import { type MemoryTable, memoryTables } from '../../decision/memory/memory-tables.js';
import type { Placement } from '../../input/placement.js';
import type { PodSpec } from '../../input/pods/pod-spec.js';
import { type AdmissionRequest, parseAdmit } from '../../input/requests/request.js';
import { type AdmitOptions, NO_OPTIONS } from '../../input/requests/request-options.js';
import { option } from '../../input/values/option-values.js';
import { CpuSet } from '../../machine/cpu-set.js';
import { managedPod } from '../on-record.js';
import { placedOrOld } from '../placed-pod.js';
import { checkRequest } from '../request-check.js';
import type { ReadOnlySite } from '../site.js';
import { type Plan, plan, planOfPlaced } from './plan.js';
import { type PlanningGround, planningGround, planningQuestion } from './planning-ground.js';

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
  readonly #site: ReadOnlySite;
  readonly #placement: Placement;
  #ground: PlanningGround;

  /** Use {@link Manager.planner}. @throws ERR_STATE_CORRUPT */
  constructor(site: ReadOnlySite, placement: Placement) {
    this.#site = site;
    this.#placement = placement;
    this.#ground = planningGround(site);
    this.generation = this.#ground.generation;
  }

  /**
   * Returns what {@link Manager.admit} would decide. A rejected pod takes nothing.
   * @throws as {@link Manager.plan}; ERR_POD_CONFLICT for a pod without uid that has the name of
   *   one before it
   */
  plan(spec: PodSpec, options: PlannerOptions = NO_OPTIONS): PodPlan {
    const { replace, rest } = replaceOf(options);
    const request = requestFor(this.#site, this.#placement, spec, rest);
    const { placed, old } = placedOrOld(this.#ground.state, request.pod, replace);
    const replaced = old !== undefined;
    if (placed) {
      const { uid, policy, scope } = placed;
      const plan = planOfPlaced(placed);
      return { ...plan, uid, alreadyAdmitted: true, replaced, policy, scope, ...holdingOf(placed) };
    }
    const uid = request.pod.uid ?? randomUUID();
    const { topologyPolicy, scope } = request.placement;
    const question = planningQuestion(this.#site, without(this.#ground, old), request, uid);
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
    this.#ground = { ...this.#ground, state: { ...next, pods } };
  }

  /** As {@link Manager.memory}, with what was planned so far and without what dead owners had. */
  memory(): readonly MemoryTable[] {
    return memoryTables(this.#ground.state, this.#site.topology);
  }

  /** As {@link Manager.freeCpus}, with what was planned so far and without what dead owners had. */
  freeCpus(): CpuSet {
    return freeCpus(this.#ground.state, this.#ground.present);
  }

  /**
   * As {@link Manager.sharedPool}, with what was planned so far and without what dead owners had.
   */
  sharedPool(): CpuSet {
    return sharedPool(this.#ground.state, this.#ground.present);
  }

  /**
   * All devices that the manager knows, with what was planned so far and without what dead owners
   * had.
   */
  devices(): readonly DeviceEntry[] {
    return deviceTable(this.#ground.state, this.#site.resources);
  }
}

function replaceOf(options: PlannerOptions): { replace: boolean; rest: AdmitOptions } {
  if (!isObject(options) || !('replace' in options)) return { replace: false, rest: options };
  const { replace = false, ...rest } = options;
  return { replace: option.flag(replace, 'replace'), rest };
}

function without(ground: PlanningGround, pod: PodAssignment | undefined): PlanningGround {
  return pod ? { ...ground, state: removePods(ground.state, new Set([pod.uid])) } : ground;
}

/** The checked request for a pod. @throws as {@link Manager.plan} */
export function requestFor(
  site: ReadOnlySite,
  placement: Placement,
  pod: PodSpec,
  options: AdmitOptions,
): AdmissionRequest {
  const request = parseAdmit(pod, options, placement);
  checkRequest(site, request);
  return request;
}

/** Why containers get no exclusive CPUs, whatever is free; null for one that gets some. */
export function reasonsToShare(site: ReadOnlySite, request: AdmissionRequest): (string | null)[] {
  const pod = managedPod(site, request.pod);
  return pod.containers.map((container) => whyShared(pod, container, request.placement));
}
