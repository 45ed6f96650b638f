// Prepare: what every opener does with the state first.
import type { Assignments } from '../account/assignments.js';
import { withIdentities } from '../account/cpu-identities.js';
import { cpusNow } from '../account/cpus-now.js';
import { withoutPods } from '../account/pod-changes.js';
import type { Site } from '../admission/site.js';
import { commitEnforced, withoutDead } from '../admission/transact.js';
import { grantWarnings, settingWarnings, stateArchived, type Warning } from '../admission/warnings.js';
import { defaultCgroupRoot } from '../cgroups/files/cgroup-namespace.js';
import { checkRecorded, firstState } from '../decision/machine-settings.js';
import { totalsOf } from '../decision/memory/memory-tables.js';
import type { Config } from '../input/config.js';
import { allowing } from '../machine/topology-refresh.js';
import type { QuietReview } from '../quiet/quieter.js';
import { isQuietUnsettled } from '../reconcile/quiet-settings.js';
import type { Store } from '../state/store.js';
import { refuseBesideKubelet } from './beside-kubelet.js';
import { joinPool } from './pool-membership.js';

const ALL_QUIET: QuietReview = { isGivenUp: () => false };

// The first opener records the settings; later openers must agree with them. Grants of an earlier
// boot are archived, and those of dead owners dropped. Changes of the machine do not prevent
// opening. Returns warnings for the opener.
export function prepare(site: Site, config: Config): Promise<readonly Warning[]> {
  const { ledger, topology, resources, lockTimeoutMs } = site;
  return ledger.transact({ lockTimeoutMs, totalOn: totalsOf(topology) }, async (checkpoint, commit) => {
    const now = cpusNow(topology, checkpoint?.assignments.pods);
    const { cgroupRoot } = config.settings;
    const recordChoice = () => cgroupRoot !== undefined && ledger.rootChoice?.record(cgroupRoot);
    if (!checkpoint) {
      const first = withCgroupRoot(firstState(config, topology, now), config, ledger);
      refuseBesideKubelet(site, config, first);
      recordChoice();
      await commit(withIdentities(first, first, topology));
      joinPool(site, config, first);
      return settingWarnings(first, topology, now.online);
    }
    const assignments = checkpoint.assignments;
    // CPUs within reach are available once they are given back.
    site.topology = allowing(topology, site.enforcer.cpusWithinReach(assignments));
    checkRecorded(assignments, config, { topology, now, path: ledger.path });
    refuseBesideKubelet(site, config, assignments);
    // Such a state can only be looked at.
    if (checkpoint.refusal) return [];
    recordChoice();
    const archived = ledger.isOfThisBoot(checkpoint)
      ? []
      : [stateArchived(checkpoint, await ledger.archive(checkpoint))];
    const state = archived.length > 0 ? withoutPods(assignments) : withoutDead(site, assignments);
    // This kernel does not have the settings of an earlier boot.
    const before = archived.length > 0 ? { ...assignments, quiet: null } : assignments;
    const isUnsettled = await isQuietUnsettled(site, state);
    if (state !== assignments || isUnsettled)
      await commitEnforced(
        site,
        { before, wanted: state, commit },
        isUnsettled ? { quietReview: ALL_QUIET } : {},
      );
    joinPool(site, config, state);
    return [
      ...archived,
      ...settingWarnings(state, topology, now.online),
      ...grantWarnings(state, topology, resources, now),
    ];
  });
}

function withCgroupRoot(state: Assignments, { settings }: Config, { scope }: Store): Assignments {
  if (settings.cgroupRoot !== undefined) return state;
  return { ...state, settings: { ...state.settings, cgroupRoot: defaultCgroupRoot(scope) } };
}
