// Audits: what happens on the CPUs of grants, from look to look.
import type { PodAssignment } from '../account/pod-assignment.js';
import { checkRealMachine } from '../admission/grants/grant-record.js';
import { findOnRecord } from '../admission/grants/held-grant.js';
import type { ReadOnlyHost } from '../admission/host.js';
import { recordedState } from '../admission/on-record.js';
import type { GrantAudit } from '../audit/account.js';
import { type AuditOptions, auditGrant } from '../audit/grant-audits.js';
import { WatchedGrants } from '../audit/watched-grants.js';
import { turnIfDue } from '../base/steps.js';
import { refreshHost } from '../machine/topology-refresh.js';
import type { ManagerWatch } from './manager-watch.js';

/** Audits grants of every process: see {@link ManagerView}. */
export class Audits {
  readonly #watched = new WatchedGrants('last look');

  /** `host`: throws once the manager is closed. */
  constructor(
    private readonly host: () => ReadOnlyHost,
    private readonly watch: ManagerWatch,
  ) {}

  /**
   * As {@link Grant.audit}, of a grant of any process, since the first call for it.
   * @throws ERR_UNKNOWN_GRANT, ERR_INVALID_OPTION, ERR_SIMULATED_MACHINE
   */
  audit(uid: string, options: AuditOptions = {}): GrantAudit {
    const host = this.host();
    const pod = findOnRecord(host, uid);
    checkRealMachine(host);
    return auditGrant(host, pod, options);
  }

  /**
   * Audits the grants of all living owners since the last call; a grant's first audit has no
   * counts. It looks at the machine once for all of them. See docs/audit.md.
   * @throws ERR_SIMULATED_MACHINE
   */
  async audits(): Promise<GrantAudit[]> {
    const host = this.host();
    checkRealMachine(host);
    await turnIfDue();
    if (!(await refreshHost(host)).isEmpty) this.watch.lookSoon();
    return this.#watched.look(host.topology, livingPods(host));
  }
}

/** The grants of living owners on record; `living`: their uids, if known. */
export function livingPods(host: ReadOnlyHost, living?: ReadonlySet<string>): readonly PodAssignment[] {
  const { pods } = recordedState(host);
  if (living) return pods.filter(({ uid }) => living.has(uid));
  const dead = new Set(host.ledger.owners.deadPods(pods));
  return pods.filter((pod) => !dead.has(pod));
}
