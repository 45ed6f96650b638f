// GrantAudits: the accounts of grants that this environment audits, from one look to the next.

import type { PodAssignment } from '../account/pod-assignment.js';
import { presentCpus } from '../account/pod-holdings.js';
import type { ReadOnlyHost } from '../admission/host.js';
import { checkOptions, invalidOption } from '../base/check-options.js';
import { type Account, advance, auditOf, type GrantAudit, openAccount } from './account.js';
import { type Beginning, begin } from './beginning.js';
import { snapshotCpus, snapshotOf, takeSnapshot } from './snapshot.js';
import { ownRoots, subjectOf } from './subject.js';
import { scanTasks } from './task-scan.js';

/** The options of {@link Grant.audit} and {@link Manager.audit}. */
export interface AuditOptions {
  /**
   * Resets all counters to 0 first.
   * @default `false`
   */
  reset?: boolean;
  /**
   * Finds the tasks of other processes on the CPUs. It looks at every process that /proc shows.
   * @default `true`
   */
  foreign?: boolean;
  /**
   * Counts interrupts. On a machine with many CPUs the kernel takes milliseconds to write the table.
   * @default `true`
   */
  interrupts?: boolean;
  /**
   * Finds the NUMA nodes of the memory. The time grows with the amount of memory.
   * @default `false`
   */
  memory?: boolean;
}

function checkAudit(options: AuditOptions): AuditOptions {
  const names = ['reset', 'foreign', 'interrupts', 'memory'] as const;
  const fields = checkOptions(options, names, 'audit') as AuditOptions;
  for (const name of names) {
    const value: unknown = fields[name];
    if (value !== undefined && typeof value !== 'boolean') invalidOption(name, value, 'true or false');
  }
  return fields;
}

interface Kept {
  readonly counts: Beginning | Account;
  /** True if it counts since the first pin, which is when this process came to run there. */
  readonly isPinned: boolean;
}

const accountOf = ({ counts }: Kept): Account =>
  'rows' in counts ? openAccount(snapshotOf(counts)) : counts;

// Keyed by grant, not by object.
const audits = () => new Map<string, Kept>();

type AuditHost = Pick<ReadOnlyHost, 'topology' | 'ledger'>;

const auditsOf = ({ ledger }: AuditHost) => ledger.registry.of(audits);

/**
 * Begins a grant's audit. Call it when threads of this process are pinned for a grant; only the
 * first call counts.
 */
export function beginAudit(host: AuditHost, pod: PodAssignment): void {
  const audits = auditsOf(host);
  if (audits.get(pod.uid)?.isPinned) return;
  audits.set(pod.uid, { counts: begin(presentCpus(pod), ownRoots(pod)), isPinned: true });
}

/** Ends a grant's audit. Call it when this process no longer has the grant. */
export function endAudit(host: AuditHost, pod: Pick<PodAssignment, 'uid'>): void {
  auditsOf(host).delete(pod.uid);
}

/**
 * What has happened since the beginning; an audit without a beginning begins now.
 * @throws ERR_INVALID_OPTION
 */
export function auditGrant(host: AuditHost, pod: PodAssignment, options: AuditOptions): GrantAudit {
  const { reset = false, foreign = true, interrupts = true, memory = false } = checkAudit(options);
  const audits = auditsOf(host);
  const kept = audits.get(pod.uid);
  const isPinned = kept?.isPinned ?? false;
  const before = kept && accountOf(kept);
  const threads = before?.last.threads ?? [];
  const subject = subjectOf(host.topology, pod, isPinned || host.ledger.owners.isOwn(pod.owner), threads);
  const snapshot = takeSnapshot(subject, {
    scan: foreign ? scanTasks(subject.cpus) : null,
    cpus: snapshotCpus(subject.cpus, interrupts),
    memory,
  });
  const account = before && !reset ? advance(before, snapshot) : openAccount(snapshot);
  audits.set(pod.uid, { counts: account, isPinned });
  return auditOf(account, pod.uid, pod.enforcement.level);
}
