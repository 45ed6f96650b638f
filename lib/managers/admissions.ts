// Admissions: how requests become grants of a manager.

import type { PodAssignment } from '../account/pod-assignment.js';
import { type Admission, admit } from '../admission/admit.js';
import { type AdmitAllOptions, admitAll, parseBatch } from '../admission/grants/admit-all.js';
import { tracedAdmission } from '../admission/grants/traced.js';
import { takeOver } from '../admission/grants/transfer.js';
import { checkRequest } from '../admission/request-check.js';
import type { Room } from '../admission/room.js';
import type { Site } from '../admission/site.js';
import { adopt } from '../adoption/adopt.js';
import { type AdoptedPod, type AdoptOptions, parseAdoption } from '../adoption/adoption-request.js';
import type { Placement } from '../input/placement.js';
import type { PodSpec } from '../input/pods/pod-request.js';
import {
  type AcquireOptions,
  type AdmissionRequest,
  type AdmitOptions,
  checkAcquirable,
  checkParts,
  parseAcquire,
  parseAdmit,
} from '../input/request.js';
import { requestRoom } from '../repacking/request-room.js';
import type { ManagerParts } from './manager-parts.js';
import { OwnGrants } from './own-grants.js';

export class Admissions {
  readonly #parts: ManagerParts;
  readonly own: OwnGrants;

  constructor(parts: ManagerParts) {
    this.#parts = parts;
    this.own = new OwnGrants(parts.site);
  }

  // The manager shares one site with its grants, so that all see its changes.
  get #site(): Site {
    this.#parts.lifetime.check();
    return this.#parts.site;
  }

  get #placement(): Placement {
    return this.#parts.config.placement;
  }

  /** @throws as {@link Manager.acquire} */
  async acquire(options: AcquireOptions): Promise<Admission> {
    const site = this.#site;
    const request = parseAcquire(options, this.#placement);
    checkRequest(site, request);
    checkParts(request, site.topology);
    checkAcquirable(request, this.#parts.resources.keys(), !site.providers.isEmpty);
    return this.#admit(request, options.signal);
  }

  /** @throws as {@link Manager.admit} */
  async admit(pod: PodSpec, options: AdmitOptions): Promise<Admission> {
    const site = this.#site;
    const request = parseAdmit(pod, options, this.#placement);
    checkRequest(site, request);
    return this.#admit(request, options.signal);
  }

  #admit(request: AdmissionRequest, signal: AbortSignal | undefined): Promise<Admission> {
    const { site } = this.#parts;
    const end = request.wait ? this.#untilClosed(signal) : signal;
    const room = this.#roomFor(request, request.pod.uid, end);
    return this.own.note(
      tracedAdmission(site, request, () => admit(site, request, end, room)),
      newPod,
    );
  }

  /** @throws as {@link Manager.admitAll} */
  async admitAll(pods: readonly PodSpec[], options: AdmitAllOptions): Promise<Admission[]> {
    const site = this.#site;
    const batch = parseBatch(pods, options, this.#placement);
    for (const request of batch.requests) checkRequest(site, request);
    if (batch.requests.length === 0) return [];
    const room = this.#roomFor(batch.requests[0]!, undefined, options.signal);
    const pending = admitAll(site, batch, options.signal, room);
    const each = batch.requests.map((request, i) => {
      const admission = tracedAdmission(site, request, () => pending.then((all) => all[i]!));
      return this.own.note(admission, newPod);
    });
    return Promise.all(each);
  }

  /** @throws as {@link Manager.takeOver} */
  takeOver(token: string, signal: AbortSignal | undefined): Promise<PodAssignment> {
    return this.own.note(takeOver(this.#site, token, signal), (pod) => pod);
  }

  /** @throws as {@link Manager.adopt} */
  async adopt(pod: AdoptedPod, options: AdoptOptions): Promise<Admission> {
    const site = this.#site;
    const request = parseAdoption(pod, options, this.#placement);
    return tracedAdmission(site, request, () => adopt(site, request, options.signal));
  }

  #roomFor({ placement }: AdmissionRequest, uid: string | undefined, signal: AbortSignal | undefined): Room {
    const isDynamic = placement.cpuPolicy === 'dynamic';
    return requestRoom(this.#parts.site, { uid, isDynamic, signal: () => this.#untilClosed(signal) });
  }

  // A closed manager has no use for what a request gets.
  #untilClosed(signal: AbortSignal | undefined): AbortSignal {
    const closing = this.#parts.lifetime.signal;
    return signal ? AbortSignal.any([signal, closing]) : closing;
  }
}

const newPod = ({ pod, alreadyAdmitted }: Admission) => (alreadyAdmitted ? undefined : pod);
