// ClaimHealth: whether claims have what they were granted.
import type { GrantInfo } from 'numalign';
import { isNumalignError } from 'numalign/tools';
import type { ClaimRecord } from '../preparation/cdi-files.js';
import type { ClaimManager } from '../preparation/claim-grants.js';
import type { DeviceHealth } from '../protocol/health-streams.js';

/**
 * Those of the node (`offered`), and those of prepared claims. One of several claims works only if it
 * does for all.
 */
export function healthOf(
  manager: Pick<ClaimManager, 'grantInfo'>,
  claims: readonly ClaimRecord[],
  offered: readonly DeviceHealth[],
): DeviceHealth[] {
  const byDevice = new Map(offered.map((each) => [`${each.pool}/${each.device}`, each]));
  for (const { devices } of claims)
    for (const { grant, pool, device } of devices) {
      const flaw = flawOf(manager, grant);
      const key = `${pool}/${device}`;
      if (flaw !== undefined || !byDevice.has(key)) byDevice.set(key, { pool, device, flaw });
    }
  return [...byDevice.values()];
}

function flawOf(manager: Pick<ClaimManager, 'grantInfo'>, uid: string): string | undefined {
  let grant: GrantInfo;
  try {
    grant = manager.grantInfo(uid);
  } catch (error) {
    if (isNumalignError(error, 'ERR_UNKNOWN_GRANT')) return 'its grant was released';
    throw error;
  }
  const messages = grant.flags.map(({ message }) => message);
  return messages.length > 0 ? messages.join('; ') : undefined;
}
