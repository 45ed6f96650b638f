// Outsiders: processes that are in none of the shared pool's cgroups and on no grant of theirs.
import { pidNamespace } from '../processes/process-identity.js';
import type { Cpusets } from './cpusets/cpusets.js';
import type { Found } from './drift.js';
import type { Compared } from './group-comparison.js';
import type { Confinement } from './members/confinement.js';
import type { Registered } from './members/registration.js';

type Outsider = Extract<Registered['entry'], { kind: 'process' }>;

// Processes that were moved out of the shared group.
export function outsiders(
  { shared }: Cpusets,
  members: readonly Registered[],
  { pods }: Confinement,
): Outsider[] {
  return members.flatMap(({ entry }) => {
    if (entry.kind !== 'process' || entry.namespace !== pidNamespace()) return [];
    const isOutside = shared.couldJoin(entry.pid) && !pods.some(({ uid }) => uid === entry.grant);
    return isOutside ? [entry] : [];
  });
}

export function outsiderFound({ share }: Compared, entry: Outsider, { taken }: Confinement): Found {
  const { pid, command, start } = entry;
  return {
    kind: 'member',
    uid: null,
    what: `process ${pid} (${command}) is in no cgroup of the shared pool`,
    key: `member ${pid} ${start} cgroup ${taken}`,
    repair: () => {
      share(pid);
      return 0;
    },
  };
}
