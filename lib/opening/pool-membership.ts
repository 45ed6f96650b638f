// PoolMembership: this process as a shared member, which leaves CPUs that become exclusive.
import type { Assignments } from '../account/assignments.js';
import type { Site } from '../admission/site.js';
import { transact } from '../admission/transact.js';
import type { Config } from '../input/config.js';

// The sites through which this process is a member.
const joined = () => new Set<Site>();

// Makes this process a member, and moves it off exclusive CPUs at once. This also repairs what a
// crash has left behind.
export function joinPool(site: Site, { sharedMember }: Config, state: Assignments): void {
  const { enforcer, ledger } = site;
  const members = ledger.registry.of(joined);
  const onReopen = () => void transact(site, undefined, async (now) => enforcer.apply(now)).catch(() => {});
  if (sharedMember) {
    enforcer.join(state, onReopen);
    members.add(site);
  }
  try {
    enforcer.apply(state);
  } catch (error) {
    if (members.delete(site)) enforcer.leave();
    throw error;
  }
}

/** The process stays a member while another of its managers uses the site. */
export function leavePool(site: Site): void {
  if (site.ledger.registry.of(joined).delete(site)) site.enforcer.leave();
}
