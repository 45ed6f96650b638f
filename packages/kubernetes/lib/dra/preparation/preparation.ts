// Preparation: what a kubelet asks for a claim before its pod starts, and after it has ended. Each call
// may come again, at any time, also at another process after a crash: it then finds what was done.

import { formatBytes } from 'numalign/tools';
import type { KubernetesObject } from '../../api-server/resource.js';
import type { Condition } from '../../base/condition.js';
import { NodeError } from '../../base/errors.js';
import type { Log } from '../../base/log.js';
import { claimNameIn, claimOfGrant, isClaimUid } from '../../claims/claim-names.js';
import type { RecordEvent } from '../../events/event.js';
import type { Counter, Histogram, Metrics } from '../../metrics/metrics.js';
import { disturbances } from '../../placement/quiet.js';
import { type AllocatedClaim, allocatedClaim } from '../allocation/allocated-claim.js';
import { type ClaimPart, claimParts } from '../allocation/claim-parts.js';
import { baseRequest } from '../devices.js';
import type { ClaimName, PreparedDevice } from '../protocol/dra-server.js';
import type { CdiFiles, ClaimRecord } from './cdi-files.js';
import { type ClaimGrant, ClaimGrants, type ClaimGrantsOptions } from './claim-grants.js';
import { Turns } from './turns.js';

/** What places the containers that use claims. */
export interface ClaimedContainers {
  /** One with processes, for people, that has one of these grants. */
  userOf(grants: readonly string[]): string | undefined;
  /** Whether new ones are placed. */
  readonly condition: Condition;
}

/** How preparing a claim has ended. */
export interface ClaimOutcome {
  /** The code of an error; undefined: it is prepared. */
  readonly code: string | undefined;
  readonly message: string;
}

/** The API server. */
export interface ClaimSource {
  /** @throws ApiError: ERR_API_NOT_FOUND if there is none */
  read(claim: Pick<ClaimName, 'namespace' | 'name'>): Promise<KubernetesObject>;
  /** Whether there is no claim with this uid. @throws ApiError if it is not known */
  isGone(claim: ClaimName): Promise<boolean>;
}

export interface PreparationOptions extends ClaimGrantsOptions {
  readonly driver: string;
  readonly cdiFiles: CdiFiles;
  readonly claims: ClaimSource;
  /** Tells those who look at the claim, which is as it was read. */
  readonly tellStatus: (claim: KubernetesObject, outcome: ClaimOutcome) => void;
  readonly containers: ClaimedContainers;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly recordEvent: RecordEvent;
}

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export class Preparation {
  readonly #options: PreparationOptions;
  readonly #grants: ClaimGrants;
  readonly #turns = new Turns();
  #isClosed = false;
  readonly #calls: Counter;
  readonly #seconds: Histogram;

  constructor(options: PreparationOptions) {
    this.#options = options;
    this.#grants = new ClaimGrants(options);
    const { metrics, cdiFiles } = options;
    const labels = ['call', 'reason'];
    this.#calls = metrics.counter(
      'claim_calls_total',
      'Claims that the kubelet had prepared or unprepared, by the call, and the code of the error.',
      labels,
    );
    for (const call of ['prepare', 'unprepare']) this.#calls.add({ call, reason: '' }, 0);
    const help = 'How long the kubelet waited for a claim.';
    this.#seconds = metrics.histogram('claim_seconds', help, SECONDS, ['call']);
    metrics.gauge('prepared_claims', 'Claims that are prepared.', [], () => [
      [{}, cdiFiles.claimUids.length],
    ]);
  }

  /** The claim with this uid, if it is prepared. */
  readonly find = (uid: string): ClaimRecord | undefined => this.#options.cdiFiles.read(uid);

  /** All prepared claims. */
  get claims(): readonly ClaimRecord[] {
    return this.#options.cdiFiles.claimUids.flatMap((uid) => this.find(uid) ?? []);
  }

  /**
   * Grants what a scheduler has allocated, and tells the runtime of it.
   * @throws ERR_CLAIM_*; ApiError; like Manager.admit. Nothing is granted then
   */
  prepare(name: ClaimName): Promise<readonly PreparedDevice[]> {
    return this.#call('prepare', name, () => this.#prepare(name));
  }

  /**
   * Gives everything back. It does nothing for a claim that is not prepared.
   * @throws ERR_CLAIM_IN_USE while a container has its CPUs or memory; like Manager.release
   */
  unprepare(name: ClaimName): Promise<void> {
    return this.#call('unprepare', name, () => this.#unprepare(name));
  }

  async #call<T>(call: string, name: ClaimName, work: () => Promise<T>): Promise<T> {
    const begin = performance.now();
    let reason = '';
    try {
      checkName(name);
      return await this.#turns.take(name.uid, work);
    } catch (error) {
      const { code = 'ERR_INTERNAL', message } = error as Error & { code?: string };
      reason = code;
      const fields = { claim: `${name.namespace}/${name.name}`, uid: name.uid, call, code };
      this.#options.log('warn', `claim ${fields.claim} is not ${call}d: ${message}`, fields);
      throw error;
    } finally {
      this.#calls.add({ call, reason });
      this.#seconds.observe((performance.now() - begin) / 1000, { call });
    }
  }

  async #prepare(name: ClaimName): Promise<readonly PreparedDevice[]> {
    const { driver, claims, manager, containers, cdiFiles, tellStatus, policy } = this.#options;
    const object = await claims.read(name);
    const claim = allocatedClaim(object, driver, name.uid);
    try {
      checkPlacing(containers);
      const inEffect = { manager: manager.placement, request: policy().placement };
      const parts = claimParts(claim, manager.topology, driver, inEffect);
      checkPods(claim, parts);
      const granted = await this.#grantAll(claim, parts);
      tellStatus(object, { code: undefined, message: heldBy(granted) });
      return parts.flatMap((part, i) => devicesOf(part, cdiFiles.idOf(granted[i]!.uid)));
    } catch (error) {
      const { code = 'ERR_INTERNAL', message } = error as Error & { code?: string };
      this.#tell(claim, 'Warning', 'ClaimRefused', `is not prepared: ${message}`);
      tellStatus(object, { code, message });
      throw error;
    }
  }

  async #grantAll(claim: AllocatedClaim, parts: readonly ClaimPart[]): Promise<readonly ClaimGrant[]> {
    const { cdiFiles, log } = this.#options;
    const before = cdiFiles.read(claim.uid);
    const known = this.#grants.of(claim.uid, before?.grants.length).map(({ uid }) => uid);
    const granted: ClaimGrant[] = [];
    const mayReplace = (uid: string) => this.#refuseUsed([uid]);
    try {
      for (const [index, part] of parts.entries())
        granted.push(await this.#grants.grant(claim, part, index, mayReplace));
      await this.#releaseOthers(known, granted);
    } catch (error) {
      await this.#undo(claim.uid, granted, before ? known : []);
      throw error;
    }
    const { namespace, name, uid, pods } = claim;
    const grants = granted.map((grant) => grant.uid);
    const devices = parts.flatMap(({ results }, i) =>
      results.map(({ result: { pool, device } }) => ({ grant: grants[i]!, pool, device })),
    );
    cdiFiles.write({ namespace, name, uid, pods: pods.map((pod) => pod.uid), grants, devices });
    if (!grants.every((each) => known.includes(each))) {
      const fields = { claim: `${namespace}/${name}`, uid, grants: grants.join(',') };
      log('info', `claim ${fields.claim} is prepared: ${heldBy(granted)}`, fields);
      this.#reportDisturbed(claim, granted, parts);
    }
    return granted;
  }

  // Another allocation of the claim had more parts.
  async #releaseOthers(known: readonly string[], granted: readonly ClaimGrant[]): Promise<void> {
    const kept = new Set(granted.map(({ uid }) => uid));
    for (const uid of known) {
      if (kept.has(uid)) continue;
      this.#refuseUsed([uid]);
      await this.#options.manager.release(uid);
    }
  }

  // A claim is granted as a whole or not at all. One that was prepared before (`kept`) stays: the next call
  // may find all of it.
  async #undo(claimUid: string, granted: readonly ClaimGrant[], kept: readonly string[]): Promise<void> {
    try {
      const grants = this.#grants.of(claimUid, granted.length);
      await this.#grants.release(grants.filter(({ uid }) => !kept.includes(uid)));
    } catch (error) {
      const { message } = error as Error;
      const { log } = this.#options;
      log('warn', `what claim ${claimUid} had is not released: ${message}`, { uid: claimUid });
    }
  }

  /**
   * Gives back what claims have that the API server has no more: a kubelet unprepares a claim unless it
   * has lost its own record. It may reject if the state cannot be read.
   */
  async sweep(): Promise<void> {
    for (const claim of this.#knownClaims()) {
      const { namespace, name, uid } = claim;
      const title = `${namespace}/${name}`;
      try {
        const isGone = await this.#options.claims.isGone(claim);
        if (this.#isClosed) return;
        if (!isGone) continue;
        await this.#turns.take(uid, () => this.#unprepare(claim));
      } catch (error) {
        const { message } = error as Error;
        this.#options.log('debug', `claim ${title} may be left over: ${message}`, { claim: title, uid });
      }
    }
  }

  /** Those that are prepared, and those of which a process that ended has left a part. */
  #knownClaims(): readonly ClaimName[] {
    const { claims } = this;
    const uids = new Set(claims.map(({ uid }) => uid));
    const parts = this.#options.manager.grants().flatMap((grant) => {
      const [uid, name] = [claimOfGrant(grant.uid), claimNameIn(grant.name)];
      return uid !== undefined && name && !uids.has(uid) ? [{ ...name, uid }] : [];
    });
    return [...claims, ...parts];
  }

  async #unprepare({ uid }: Pick<ClaimName, 'uid'>): Promise<void> {
    const { cdiFiles, log } = this.#options;
    const claim = cdiFiles.read(uid);
    const grants = this.#grants.of(uid, claim?.grants.length);
    this.#refuseUsed(grants.map((grant) => grant.uid));
    // From now on no container can be created with it.
    cdiFiles.remove(uid);
    await this.#grants.release(grants);
    if (!claim && grants.length === 0) return;
    const title = claim ? `${claim.namespace}/${claim.name}` : uid;
    const cpus = grants.map((grant) => `${grant.cpus}`).filter((text) => text !== '');
    const what = cpus.length > 0 ? `CPUs ${cpus.join(',')}` : 'what was booked';
    log('info', `claim ${title} has ended: ${what} can be granted again`, { claim: title, uid });
  }

  #refuseUsed(grants: readonly string[]): void {
    const user = this.#options.containers.userOf(grants);
    if (user === undefined) return;
    throw new NodeError('ERR_CLAIM_IN_USE', `${user} still runs with it`, {
      value: user,
      valid: 'a claim whose containers have ended',
    });
  }

  #reportDisturbed(claim: AllocatedClaim, granted: readonly ClaimGrant[], parts: readonly ClaimPart[]): void {
    const all = granted.flatMap(({ pod }, i) => (parts[i]!.parameters.quiet ? disturbances(pod.quiet) : []));
    if (all.length > 0) this.#tell(claim, 'Warning', 'NotQuiet', `is not fully quiet: ${all.join('; ')}`);
  }

  #tell(
    { namespace, name, pods }: AllocatedClaim,
    type: 'Normal' | 'Warning',
    reason: string,
    what: string,
  ): void {
    for (const pod of pods)
      this.#options.recordEvent({
        about: { kind: 'Pod', namespace, ...pod },
        ...{ type, reason, message: `claim ${name} ${what}` },
      });
  }

  /** Resolves once no call is in progress. */
  close(): Promise<void> {
    this.#isClosed = true;
    return this.#turns.idle();
  }
}

function checkName({ namespace, name, uid }: ClaimName): void {
  if (namespace !== '' && name !== '' && isClaimUid(uid)) return;
  throw new NodeError('ERR_CLAIM_NAME', `no claim is named ${namespace}/${name} with uid ${uid}`, {
    value: { namespace, name, uid },
    valid: 'a namespace, a name and a uid of letters, digits and hyphens',
  });
}

function checkPlacing({ condition: { isMet, text } }: ClaimedContainers): void {
  if (isMet) return;
  throw new NodeError('ERR_CLAIM_WITHOUT_NRI', `its containers could not be placed: ${text}`, {
    valid: 'a runtime with NRI',
  });
}

/** CPUs of several pods would be of none of them alone. */
function checkPods({ namespace, name, pods }: AllocatedClaim, parts: readonly ClaimPart[]): void {
  const title = `claim ${namespace}/${name}`;
  const valid = 'a claim for each pod, such as from a ResourceClaimTemplate';
  if (pods.length === 0)
    throw new NodeError('ERR_CLAIM_NOT_ALLOCATED', `${title} is reserved for no pod`, { value: name, valid });
  if (pods.length === 1 || parts.every(({ exclusive }) => exclusive === 0)) return;
  const names = pods.map((pod) => pod.name).join(', ');
  throw new NodeError('ERR_CLAIM_SHARED', `${title} has CPUs for one pod, and is reserved for ${names}`, {
    value: names,
    valid,
  });
}

const heldBy = (granted: readonly ClaimGrant[]): string => granted.map(({ pod }) => textOf(pod)).join('; ');

const textOf = ({ containers: [container] }: ClaimGrant['pod']): string => {
  const { cpus, memory } = container!;
  const blocks = memory.map(
    ({ bytes, type, nodes }) => `${formatBytes(bytes)} of ${type} on NUMA node ${nodes}`,
  );
  return [...(cpus ? [`CPUs ${cpus}`] : []), ...blocks].join(', ');
};

const devicesOf = ({ results }: ClaimPart, cdiId: string): PreparedDevice[] =>
  results.map(({ result: { request, pool, device, shareId } }) => ({
    ...{ requests: [baseRequest(request)], pool, device, shareId, cdiIds: [cdiId] },
  }));
