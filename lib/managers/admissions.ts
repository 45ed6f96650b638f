// Admissions: how requests become grants of a manager, and those that it made for this process.
import type { PodAssignment } from '../account/pod-assignment.js';
import { type Admission, admit } from '../admission/admit.js';
import { type AdmitAllOptions, admitAll, parseBatch } from '../admission/grants/admit-all.js';
import { findGrant } from '../admission/grants/held-grant.js';
import { tracedAdmission } from '../admission/grants/traced.js';
import { takeOver } from '../admission/grants/transfer.js';
import type { Host } from '../admission/host.js';
import { recordedState } from '../admission/on-record.js';
import { checkRequest, requestFor } from '../admission/request-check.js';
import type { Room } from '../admission/room.js';
import { adopt } from '../adoption/adopt.js';
import { type AdoptedPod, type AdoptOptions, parseAdoption } from '../adoption/adoption-request.js';
import { anySignal } from '../base/notices/any-signal.js';
import { followGrowth } from '../changes/adjuster.js';
import { answerMoves } from '../changes/mover.js';
import { requestRoom } from '../changes/request-room.js';
import { release } from '../grants/release.js';
import type { Placement } from '../input/placement.js';
import type { PodSpec } from '../input/pods/pod-spec.js';
import {
  type AdmissionRequest,
  checkAcquirable,
  checkParts,
  parseAcquire,
} from '../input/requests/request.js';
import type { AcquireOptions, AdmitOptions } from '../input/requests/request-options.js';
import type { ManagerParts } from './manager-parts.js';

export class Admissions {
  readonly own: OwnGrants;

  constructor(private readonly parts: ManagerParts) {
    this.own = new OwnGrants(parts.host);
  }

  // The manager shares one host with its grants, so that all see its changes.
  get #host(): Host {
    this.parts.lifetime.check();
    return this.parts.host;
  }

  get #placement(): Placement {
    return this.parts.config.placement;
  }

  /** @throws as {@link Manager.acquire} */
  async acquire(options: AcquireOptions): Promise<Admission> {
    const host = this.#host;
    const request = parseAcquire(options, this.#placement);
    checkRequest(host, request);
    checkParts(request, host.topology);
    checkAcquirable(request, this.parts.resources.keys(), !host.providers.isEmpty);
    return this.#admit(request, options.signal);
  }

  /** @throws as {@link Manager.admit} */
  async admit(pod: PodSpec, options: AdmitOptions): Promise<Admission> {
    return this.#admit(requestFor(this.#host, this.#placement, pod, options), options.signal);
  }

  #admit(request: AdmissionRequest, signal: AbortSignal | undefined): Promise<Admission> {
    const { host } = this.parts;
    const end = request.wait ? this.#untilClosed(signal) : signal;
    const room = this.#roomFor(request, request.pod.uid, end);
    return this.own.note(
      tracedAdmission(host, request, () => admit(host, request, end, room)),
      newPod,
    );
  }

  /** @throws as {@link Manager.admitAll} */
  async admitAll(pods: readonly PodSpec[], options: AdmitAllOptions): Promise<Admission[]> {
    const host = this.#host;
    const batch = parseBatch(pods, options, this.#placement);
    for (const request of batch.requests) checkRequest(host, request);
    if (batch.requests.length === 0) return [];
    const room = this.#roomFor(batch.requests[0]!, undefined, options.signal);
    const pending = admitAll(host, batch, options.signal, room);
    const each = batch.requests.map((request, i) => {
      const admission = tracedAdmission(host, request, () => pending.then((all) => all[i]!));
      return this.own.note(admission, newPod);
    });
    return Promise.all(each);
  }

  /** @throws as {@link Manager.takeOver} */
  takeOver(token: string, signal: AbortSignal | undefined): Promise<PodAssignment> {
    return this.own.note(takeOver(this.#host, token, signal), (pod) => pod);
  }

  /** @throws as {@link Manager.adopt} */
  async adopt(pod: AdoptedPod, options: AdoptOptions): Promise<Admission> {
    const host = this.#host;
    const request = parseAdoption(pod, options, this.#placement);
    return tracedAdmission(host, request, () => adopt(host, request, options.signal));
  }

  #roomFor({ placement }: AdmissionRequest, uid: string | undefined, signal: AbortSignal | undefined): Room {
    const isDynamic = placement.cpuPolicy === 'dynamic';
    return requestRoom(this.parts.host, { uid, isDynamic, signal: () => this.#untilClosed(signal) });
  }

  // A closed manager has no use for what a request gets.
  #untilClosed(signal: AbortSignal | undefined): AbortSignal {
    const closing = this.parts.lifetime.signal;
    return signal ? anySignal(signal, closing) : closing;
  }
}

const newPod = ({ pod, alreadyAdmitted }: Admission) => (alreadyAdmitted ? undefined : pod);

const FIRST_LIMIT = 64;

class OwnGrants {
  readonly #host: Host;
  #pods: PodAssignment[] = [];
  #limit = FIRST_LIMIT;
  readonly #pending = new Set<Promise<unknown>>();

  constructor(host: Host) {
    this.#host = host;
  }

  /** Adds the pod of a pending admission once it is admitted; none if `podOf` returns undefined. */
  async note<T>(pending: Promise<T>, podOf: (admission: T) => PodAssignment | undefined): Promise<T> {
    this.#pending.add(pending);
    try {
      const admission = await pending;
      const pod = podOf(admission);
      if (pod) this.#add(pod);
      return admission;
    } finally {
      this.#pending.delete(pending);
    }
  }

  #add(pod: PodAssignment): void {
    this.#pods.push(pod);
    answerMoves(this.#host, pod);
    if (pod.elastic) followGrowth(this.#host, pod);
    if (this.#pods.length < this.#limit) return;
    this.#pods = this.#held();
    this.#limit = Math.max(FIRST_LIMIT, 2 * this.#pods.length);
  }

  /**
   * Releases all grants that this process still owns, even if one release fails.
   * @throws the error of the failed release; an AggregateError if several fail
   */
  async release(): Promise<void> {
    await Promise.allSettled(this.#pending);
    const errors: unknown[] = [];
    for (const pod of this.#held()) {
      await release(this.#host, pod).catch((error) => errors.push(error));
    }
    this.#pods = [];
    if (errors.length > 1) throw new AggregateError(errors, `${errors.length} grants could not be released`);
    if (errors.length === 1) throw errors[0];
  }

  // The other grants were released or handed to another process, or outlive this one.
  #held(): PodAssignment[] {
    const { ledger } = this.#host;
    const state = recordedState(this.#host);
    return this.#pods.flatMap((pod) => {
      const now = findGrant(state, pod);
      return now && ledger.owners.isOwn(now.owner) ? [now] : [];
    });
  }
}
