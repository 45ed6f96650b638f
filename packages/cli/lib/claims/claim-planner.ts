// ClaimPlanner: plans the claims of pods before them, on numalign's own devices.
import {
  type Allocated,
  allocate,
  type Claim,
  type ClaimPart,
  type DeviceUnit,
  DRIVER,
  devicesOf,
  machineNow,
  NOTHING_TAKEN,
  parametersOf,
  partsOf,
  requestFor,
} from '@numalign/claims';
import { type AdmitOptions, CpuSet, type ManagerView, type PodSpec } from 'numalign';
import type { Planner, PlannerOptions } from 'numalign/diagnostics';
import { parsePod, withUid } from 'numalign/tools';
import { inPlace } from '../arguments/documents.js';
import type { FilePod } from '../arguments/pod-file.js';
import { type Fields, fieldsOf, listOf } from '../gate/findings.js';
import type { PlannedPod } from '../pages/plan-text.js';
import type { ClaimObjects } from './claim-objects.js';
import { type PlannedClaim, type SharingPod, sharingContainers } from './claimed-pod.js';

export interface ClaimPlannerOptions {
  readonly view: ManagerView;
  readonly planner: Planner;
  readonly objects: ClaimObjects;
  readonly unit: DeviceUnit;
  readonly request: PlannerOptions;
  /** Prints what is not planned, and what differs from what was asked for. */
  readonly note: (text: string) => void;
}

export interface ClaimedPod extends SharingPod {
  /** What its claims would get; one that is rejected is the last. */
  readonly claims: readonly PlannedPod[];
  /** Why the pod cannot run; undefined: its claims have what they ask for. */
  readonly rejection: string | undefined;
}

export class ClaimPlanner {
  readonly #options: ClaimPlannerOptions;
  readonly #notes = new Set<string>();
  #taken = NOTHING_TAKEN;
  // What the grants of claims hold.
  readonly #held: PlannedPod['plan'][] = [];
  // The pods that ResourceClaims are for: one each.
  readonly #users = new Map<string, string>();

  constructor(options: ClaimPlannerOptions) {
    this.#options = options;
  }

  plan(pod: FilePod): ClaimedPod {
    const references = listOf(fieldsOf((pod.spec as Fields).spec).resourceClaims).map(fieldsOf);
    const claims: PlannedPod[] = [];
    const planned: PlannedClaim[] = [];
    for (const reference of references) {
      const claim = this.#find(reference, pod);
      if (!claim) continue;
      const answer = typeof claim === 'string' ? claim : this.#claim(claim, String(reference.name), pod);
      if (typeof answer === 'string') return { pod, claimOf: new Map(), claims, rejection: answer };
      claims.push(...answer.claims);
      planned.push({ name: String(reference.name), results: answer.results });
      const rejected = answer.claims.find(({ plan }) => !plan.admitted);
      if (rejected)
        return { pod, claimOf: new Map(), claims, rejection: `${rejected.plan.uid} cannot be prepared` };
    }
    const sharing = sharingContainers(pod, planned, (text) => this.#note(text));
    return { ...sharing, claims, rejection: undefined };
  }

  /** The claim, or why the pod cannot have it; undefined: it is not planned. */
  #find(
    { name, resourceClaimName, resourceClaimTemplateName }: Fields,
    pod: FilePod,
  ): Claim | string | undefined {
    const { objects } = this.#options;
    const namespace = pod.request.namespace ?? 'default';
    const kind = resourceClaimName === undefined ? 'ResourceClaimTemplate' : 'ResourceClaim';
    const object = String(resourceClaimName ?? resourceClaimTemplateName);
    const claim = objects.find(kind, namespace, object);
    if (!claim)
      this.#note(`${pod.place}: claim ${name} is not planned: no file has ${kind} ${namespace}/${object}`);
    if (!claim || kind === 'ResourceClaimTemplate') return claim;
    const user = this.#users.get(`${namespace}/${object}`);
    this.#users.set(`${namespace}/${object}`, user ?? titleOf(pod));
    return user === undefined ? claim : `ResourceClaim ${object} is for ${user}: its CPUs are for one pod`;
  }

  #claim(claim: Claim, name: string, pod: FilePod) {
    const { objects, unit } = this.#options;
    const devices = devicesOf(this.#machine(), unit);
    const answer = allocate(claim, devices, objects.classes, this.#taken);
    for (const what of answer.notPlanned) this.#note(`${pod.place}: claim ${name}: ${what} is not planned`);
    if ('reason' in answer) return `claim ${name}: ${answer.reason}`;
    this.#taken = answer.taken;
    const claims: PlannedPod[] = [];
    for (const part of partsOf(answer.results)) {
      const planned = this.#part(claim, part, name, pod);
      if (planned) claims.push(planned);
      if (planned && !planned.plan.admitted) break;
    }
    return { claims, results: answer.results };
  }

  #machine() {
    const { view, planner } = this.#options;
    return machineNow({
      ...{ topology: view.topology, settings: view.settings(), placement: view.placement },
      ...{ freeCpus: planner.freeCpus(), memory: planner.memory() },
      claims: {
        cpus: this.#held.reduce((all, { cpus }) => all.union(cpus), CpuSet.EMPTY),
        memory: this.#held.flatMap(({ memory }) => memory),
      },
    });
  }

  #part(claim: Claim, part: ClaimPart<Allocated>, name: string, pod: FilePod): PlannedPod | undefined {
    const { planner, request, view } = this.#options;
    const devices = part.results.map(({ device }) => device.name).join(', ');
    const uid = `claim ${name} of ${titleOf(pod)}: ${part.request} of ${devices}`;
    const { limits, options } = inPlace(pod.place, () =>
      requestFor(part, parametersOf(DRIVER, claim.configs, part.request), view.topology, {
        ...{ manager: view.placement, request },
      }),
    );
    if (!limits.cpu) {
      this.#note(`${pod.place}: ${uid}: its memory counts for other claims only`);
      return undefined;
    }
    const spec: PodSpec = { qosClass: 'Guaranteed', containers: [{ name, limits }] };
    const plan = inPlace(pod.place, () =>
      planner.plan(withUid(spec, uid), { ...request, ...plannedOptions(options) }),
    );
    if (plan.admitted) this.#held.push(plan as PlannedPod['plan']);
    const containers = plan.containers.map((container) => ({ ...container, whyShared: null }));
    return { pod: { spec, place: pod.place, request: parsePod(spec) }, plan: { ...plan, containers } };
  }

  #note(text: string): void {
    if (!this.#notes.has(text)) this.#options.note(text);
    this.#notes.add(text);
  }
}

export const titleOf = ({ request: { name } }: FilePod) => (name === undefined ? 'a pod' : `pod ${name}`);

// What a plan cannot tell is left out.
function plannedOptions({
  quiet: _,
  require: __,
  enforcement: ___,
  ...options
}: AdmitOptions): PlannerOptions {
  return options;
}
