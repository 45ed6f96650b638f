// The audits of grants that this environment asks for: their accounts, from look to look.
import type { PodAssignment } from '../account/pod-assignment.js';
import type { ReadOnlySite } from '../admission/site.js';
import { type Account, advance, auditOf, type GrantAudit, openAccount } from './account.js';
import { type AuditOptions, checkAudit } from './audit-options.js';
import { snapshotCpus, takeSnapshot } from './snapshot.js';
import { subjectOf } from './subject.js';
import { scanTasks } from './task-scan.js';

interface Kept {
  readonly account: Account;
  /** It counts since the first pin, which is when this process came to run there. */
  readonly isPinned: boolean;
}

// By grant, whichever object asks.
const audits = () => new Map<string, Kept>();

type Place = Pick<ReadOnlySite, 'topology' | 'ledger'>;

const auditsOf = ({ ledger }: Place) => ledger.registry.of(audits);

/**
 * To be called when threads of this process have been pinned for a grant: with the first of them
 * its audit begins.
 */
export function beginAudit(place: Place, pod: PodAssignment): void {
  const kept = auditsOf(place);
  if (kept.get(pod.uid)?.isPinned) return;
  const subject = subjectOf(place.topology, pod, true, []);
  // Who else is on the CPUs is not worth the time of a pin.
  const views = { scan: null, cpus: snapshotCpus(subject.cpus, true), memory: false };
  kept.set(pod.uid, { account: openAccount(takeSnapshot(subject, views)), isPinned: true });
}

/** To be called when a grant is no longer this process's. */
export function endAudit(place: Place, pod: Pick<PodAssignment, 'uid'>): void {
  auditsOf(place).delete(pod.uid);
}

/**
 * What has happened since the beginning, which is now where there is none yet.
 * @throws ERR_INVALID_OPTION
 */
export function auditGrant(place: Place, pod: PodAssignment, options: AuditOptions): GrantAudit {
  const { reset = false, foreign = true, interrupts = true, memory = false } = checkAudit(options);
  const kept = auditsOf(place);
  const before = kept.get(pod.uid);
  const isPinned = before?.isPinned ?? false;
  const threads = before?.account.last.threads ?? [];
  const subject = subjectOf(place.topology, pod, isPinned || place.ledger.owners.isOwn(pod.owner), threads);
  const snapshot = takeSnapshot(subject, {
    scan: foreign ? scanTasks(subject.cpus) : null,
    cpus: snapshotCpus(subject.cpus, interrupts),
    memory,
  });
  const account = before && !reset ? advance(before.account, snapshot) : openAccount(snapshot);
  kept.set(pod.uid, { account, isPinned });
  return auditOf(account, pod.uid, pod.enforcement.level);
}
