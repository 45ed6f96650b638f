// Exit: what a process still does for others when it calls process.exit(), or an error ends it. It has
// no time to release its grants, as it does when it has nothing more to do: the next transaction of
// any process takes them back.
import type { PodAssignment } from '../account/pod-assignment.js';
import { removePods } from '../account/pod-changes.js';
import type { Host } from '../admission/host.js';
import { ENVIRONMENT } from '../base/collections/registry.js';
import { native } from '../base/native.js';
import { hasChild } from '../threads/children.js';

const openHosts = () => new Set<Host>();

/**
 * Opens the CPUs of this environment's grants to others when the process exits, until the returned
 * function is called. The end of a Worker leaves a process that does that.
 */
export function openAtExit(host: Host): () => void {
  if (native.threadId() !== process.pid) return () => {};
  const hosts = ENVIRONMENT.of(openHosts);
  // Node calls no listener after one of the user's that throws.
  if (hosts.size === 0) process.prependListener('exit', openAll);
  hosts.add(host);
  return () => {
    if (hosts.delete(host) && hosts.size === 0) process.off('exit', openAll);
  };
}

// Nothing else of this process runs meanwhile, and transactions of others take less.
const PAUSE_MS = 1;
const MOST_PAUSES = 20;
const pause = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);

function openAll(): void {
  const hostOf = new Map([...ENVIRONMENT.of(openHosts)].map((host) => [host.ledger, host]));
  for (const host of hostOf.values()) {
    try {
      if (host.ledger.owners.ownFd() === undefined) continue;
      for (let pauses = 0; !isOpened(host) && pauses < MOST_PAUSES; pauses++) pause();
    } catch {
      // Another process does it.
    }
  }
}

// A grant may have ended in a transaction that has not come to this.
const isOpened = ({ ledger, enforcer }: Host): boolean =>
  ledger.atOnce?.(({ assignments }) => {
    const isEnding = ({ uid, owner }: PodAssignment) =>
      owner.kind === 'process' && ledger.owners.isOwn(owner) && !hasChild(ledger, uid);
    const uids = assignments.pods.filter(isEnding).map(({ uid }) => uid);
    enforcer.apply(removePods(assignments, new Set(uids)), [], true);
  }) !== false;
