// Audits: what happens on the CPUs of grants, from look to look.
import type { PodAssignment } from '../account/pod-assignment.js';
import { checkRealMachine } from '../admission/grants/grant-record.js';
import { findOnRecord } from '../admission/grants/held-grant.js';
import { recordedState } from '../admission/on-record.js';
import type { ReadOnlySite } from '../admission/site.js';
import type { GrantAudit } from '../audit/account.js';
import type { AuditOptions } from '../audit/grant-audits.js';
import { auditGrant } from '../audit/grant-audits.js';
import { WatchedGrants } from '../audit/watched-grants.js';
import { turnIfDue } from '../base/steps.js';
import { refreshSite } from '../machine/topology-refresh.js';
import type { ManagerWatch } from './manager-watch.js';

/** Audits grants of every process: see {@link ManagerView}. */
export class Audits {
  readonly #site: () => ReadOnlySite;
  readonly #watch: ManagerWatch;
  readonly #watched = new WatchedGrants('last look');

  /** `site`: throws once the manager is closed. */
  constructor(site: () => ReadOnlySite, watch: ManagerWatch) {
    this.#site = site;
    this.#watch = watch;
  }

  /**
   * As {@link Grant.audit}, of a grant of any process, since the first call for it.
   * @throws ERR_UNKNOWN_GRANT, ERR_INVALID_OPTION, ERR_SIMULATED_MACHINE
   */
  audit(uid: string, options: AuditOptions = {}): GrantAudit {
    const site = this.#site();
    const pod = findOnRecord(site, uid);
    checkRealMachine(site);
    return auditGrant(site, pod, options);
  }

  /**
   * Audits the grants of all living owners since the last call; a grant's first audit has no
   * counts. It looks at the machine once for all of them. See docs/audit.md.
   * @throws ERR_SIMULATED_MACHINE
   */
  async audits(): Promise<GrantAudit[]> {
    const site = this.#site();
    checkRealMachine(site);
    await turnIfDue();
    if (!(await refreshSite(site)).isEmpty) this.#watch.lookSoon();
    return this.#watched.look(site.topology, livingPods(site));
  }
}

/** The grants of living owners on record. */
export function livingPods(site: ReadOnlySite): readonly PodAssignment[] {
  const { pods } = recordedState(site);
  const dead = new Set(site.ledger.owners.deadPods(pods));
  return pods.filter((pod) => !dead.has(pod));
}
