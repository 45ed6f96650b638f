// This process as one of those that leave what becomes exclusive.
import type { Assignments } from '../account/assignments.js';
import type { Site } from '../admission/site.js';
import { transact } from '../admission/transact.js';
import type { Config } from '../input/config.js';

// The sites by which this process is a member.
const joined = () => new Set<Site>();

// This process is one of those who leave what becomes exclusive; at once, where something is. What
// a crash has left behind is made good with it.
export function joinPool(site: Site, { sharedMember }: Config, state: Assignments): void {
  const { enforcer, ledger } = site;
  const members = ledger.registry.of(joined);
  const reopened = () => void transact(site, undefined, async (now) => enforcer.apply(now)).catch(() => {});
  if (sharedMember) {
    enforcer.join(state, reopened);
    members.add(site);
  }
  try {
    enforcer.apply(state);
  } catch (error) {
    if (members.delete(site)) enforcer.leave();
    throw error;
  }
}

/** Where it is still in use by another manager of this process, the process stays a member. */
export function leavePool(site: Site): void {
  if (site.ledger.registry.of(joined).delete(site)) site.enforcer.leave();
}
