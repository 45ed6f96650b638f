// ClaimStatuses: whether claims are prepared, as a condition of their devices at the API server. What
// does not succeed is logged only: no kubelet waits for it.
import { setMaxListeners } from 'node:events';
import { ApiError } from '../../api-server/api-error.js';
import type { ApiServer } from '../../api-server/api-server.js';
import { newBackoff, pause } from '../../api-server/backoff.js';
import type { KubernetesObject } from '../../api-server/resource.js';
import type { Log } from '../../base/log.js';
import { devicesOf, type ResultFields } from '../allocation/allocated-claim.js';
import type { ClaimOutcome } from '../preparation/preparation.js';
import { type ClaimsAtServer, claimsIn } from './claims-at-server.js';

export interface ClaimStatusesOptions {
  readonly driver: string;
  readonly apiServer: Pick<ApiServer, 'patch'>;
  readonly claims: Pick<ClaimsAtServer, 'read'>;
  readonly log: Log;
}

type DeviceKey = Pick<ResultFields, 'driver' | 'pool' | 'device' | 'shareID'>;

interface DeviceStatus extends DeviceKey {
  readonly conditions?: readonly DeviceCondition[];
  readonly [field: string]: unknown;
}

interface DeviceCondition {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
  readonly lastTransitionTime: string;
}

// The API's name for a device that has been configured as its claim says.
const READY = 'Ready';
// The API takes 32,768 characters, of each device.
const LONGEST_MESSAGE = 1024;
const MOST_TRIES = 4;
// Claims whose status waits for a server that fails. A node has fewer.
const MOST_DUE = 1000;

interface Told {
  readonly claim: KubernetesObject;
  readonly outcome: ClaimOutcome;
}

export class ClaimStatuses {
  readonly #options: ClaimStatusesOptions;
  // By uid: what is not written yet, and what writes it.
  readonly #due = new Map<string, Told>();
  readonly #writers = new Map<string, Promise<void>>();
  readonly #end = new AbortController();
  // Errors that are known: a missing right is missing for each claim.
  readonly #told = new Set<string>();

  constructor(options: ClaimStatusesOptions) {
    this.#options = options;
    // Each writer that pauses has one.
    setMaxListeners(0, this.#end.signal);
  }

  /**
   * `claim`: as it was read. Only the last outcome of a claim is written. Never throws; nothing waits
   * for it.
   */
  tell(claim: KubernetesObject, outcome: ClaimOutcome): void {
    if (this.#end.signal.aborted) return;
    const uid = claim.metadata.uid!;
    this.#due.delete(uid);
    this.#due.set(uid, { claim, outcome });
    // The one that has waited longest is given up.
    if (this.#due.size > MOST_DUE) this.#due.delete(this.#due.keys().next().value!);
    if (!this.#writers.has(uid)) this.#writers.set(uid, this.#writeAll(uid));
  }

  async #writeAll(uid: string): Promise<void> {
    const backoff = newBackoff();
    const { signal } = this.#end;
    for (let due = this.#due.get(uid); due && !signal.aborted; due = this.#due.get(uid)) {
      const failure = await this.#write(due);
      if (failure && mayPass(failure)) await pause(backoff.next(failure.retryAfterMs), signal);
      else if (this.#due.get(uid) === due) this.#due.delete(uid);
    }
    // At once: what is told from now on has another writer.
    this.#writers.delete(uid);
  }

  /** Returns why it is not written. */
  async #write({ claim, outcome }: Told): Promise<(Error & Partial<ApiError>) | undefined> {
    try {
      await this.#patch(claim, outcome);
      return undefined;
    } catch (error) {
      const failure = error as Error & Partial<ApiError>;
      if (this.#end.signal.aborted) return failure;
      const { code = 'ERR_INTERNAL', message } = failure;
      const title = `${claim.metadata.namespace}/${claim.metadata.name}`;
      const text = `the status of claim ${title} does not say whether it is prepared: ${message}`;
      this.#options.log(this.#told.has(code) ? 'debug' : 'warn', text, { claim: title, code });
      this.#told.add(code);
      return failure;
    }
  }

  // Other drivers write the same list: each writes what it has read.
  async #patch(read: KubernetesObject, outcome: ClaimOutcome): Promise<void> {
    const { driver, apiServer, claims } = this.#options;
    const { signal } = this.#end;
    const prepared = devicesOf(read, driver);
    let claim = read;
    for (let tries = 1; !signal.aborted; tries++) {
      // Under the same uid it may have been allocated again, to another node.
      const own = devicesOf(claim, driver).filter((each) => prepared.some((other) => isSame(each, other)));
      const devices = changedDevices(claim, own, outcome);
      if (!devices) return;
      const { name, namespace, uid, resourceVersion } = claim.metadata;
      const status = { ...claimsIn(claim.apiVersion, String(namespace)), subresource: 'status' };
      const change = { metadata: { uid, resourceVersion }, status: { devices } };
      try {
        await apiServer.patch(status, name, change, { signal });
        return;
      } catch (error) {
        if (!isConflict(error) || tries === MOST_TRIES) throw error;
        claim = await claims.read({ namespace: String(namespace), name }, { signal });
        if (claim.metadata.uid !== uid) return;
      }
    }
  }

  /** What is being written is given up. */
  async close(): Promise<void> {
    this.#end.abort();
    await Promise.all(this.#writers.values());
  }
}

const isConflict = (error: unknown) => error instanceof ApiError && error.code === 'ERR_API_CONFLICT';

const mayPass = (error: unknown) => isConflict(error) || (error instanceof ApiError && error.isPassing);

/** All of a claim's status, `own` with the condition; undefined: they have it already, or there are none. */
function changedDevices(
  claim: KubernetesObject,
  own: readonly ResultFields[],
  outcome: ClaimOutcome,
): readonly DeviceStatus[] | undefined {
  const { devices: before = [] } = (claim.status ?? {}) as { devices?: readonly DeviceStatus[] };
  const changed = own.map(({ driver, pool, device, shareID }): DeviceStatus => {
    const key = { driver, pool, device, ...(shareID !== undefined && { shareID }) };
    const known = before.find((each) => isSame(each, key));
    const others = (known?.conditions ?? []).filter(({ type }) => type !== READY);
    const ready = known?.conditions?.find(({ type }) => type === READY);
    return { ...known, ...key, conditions: [...others, conditionOf(outcome, ready)] };
  });
  if (changed.every((each) => isKnown(each, before))) return undefined;
  return [...before.filter((each) => !changed.some((other) => isSame(each, other))), ...changed];
}

const isSame = (one: DeviceKey, other: DeviceKey): boolean =>
  one.driver === other.driver &&
  one.pool === other.pool &&
  one.device === other.device &&
  one.shareID === other.shareID;

const isKnown = (device: DeviceStatus, before: readonly DeviceStatus[]) => {
  const [own, ready] = [before.find((each) => isSame(each, device)), device.conditions!.at(-1)!];
  return own?.conditions?.some(
    ({ type, status, reason, message }) =>
      type === READY && status === ready.status && reason === ready.reason && message === ready.message,
  );
};

function conditionOf({ code, message }: ClaimOutcome, before: DeviceCondition | undefined): DeviceCondition {
  const status = code === undefined ? 'True' : 'False';
  // The API has seconds.
  const now = `${new Date().toISOString().slice(0, 19)}Z`;
  return {
    ...{ type: READY, status, reason: code ?? 'Prepared' },
    message: message.slice(0, LONGEST_MESSAGE),
    lastTransitionTime: before?.status === status ? before.lastTransitionTime : now,
  };
}
