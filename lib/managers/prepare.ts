// Prepare: what every opener does with the state first. Configure: how its settings change later.
import type { Assignments } from '../account/assignments.js';
import { withIdentities } from '../account/cpu-identities.js';
import { cpusNow } from '../account/cpus-now.js';
import { withoutPods } from '../account/pod-changes.js';
import { universe } from '../account/pools.js';
import type { Site } from '../admission/site.js';
import { commitEnforced, transact, withoutDead } from '../admission/transact.js';
import { grantWarnings, settingWarnings, stateArchived, type Warning } from '../admission/warnings.js';
import { defaultCgroupRoot } from '../cgroups/files/cgroup-namespace.js';
import {
  applySettings,
  checkCgroupRoot,
  checkKnown,
  checkLeavesPool,
  checkRecorded,
  chosenSettings,
  firstState,
} from '../decision/machine-settings.js';
import { totalsOf } from '../decision/memory/memory-tables.js';
import type { Config } from '../input/config.js';
import { parseMachineOptions } from '../input/given-settings.js';
import type { MachineOptions } from '../input/machine-options.js';
import { checkBesideKubelet } from '../kubelet/kubelet-conflict.js';
import { readKubeletFacts } from '../kubelet/kubelet-facts.js';
import { kubeletStatus } from '../kubelet/record/kubelet-status.js';
import { allowing } from '../machine/topology-refresh.js';
import type { QuietReview } from '../quiet/quieter.js';
import { isQuietUnsettled } from '../reconcile/quiet-settings.js';
import type { Store } from '../state/store.js';

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

/** @throws like {@link Manager.configure} */
export async function configure(site: Site, config: Config, options: MachineOptions): Promise<void> {
  const changes = parseMachineOptions(options);
  await transact(site, undefined, async (state, commit) => {
    checkKnown(changes, site.topology, state.settings);
    const now = cpusNow(site.topology, state.pods);
    const { placement } = config;
    const required = chosenSettings({ settings: changes, placement }, site.topology, now, state.settings);
    const settings = applySettings(state.settings, required);
    const next = { ...state, settings };
    checkLeavesPool(next, now);
    checkCgroupRoot(state, settings);
    refuseBesideKubelet(site, config, next);
    if (changes.cgroupRoot !== undefined) site.ledger.rootChoice?.checkPlace();
    await commit(next);
    if (changes.cgroupRoot !== undefined) site.ledger.rootChoice?.record(changes.cgroupRoot);
    site.enforcer.apply(next);
  });
}

export function refuseBesideKubelet(
  { ledger, topology }: Site,
  { besideKubelet }: Config,
  { settings, kubelet }: Pick<Assignments, 'settings' | 'kubelet'>,
): void {
  if (ledger.scope !== 'machine' || topology.isSimulated || besideKubelet) return;
  const record = kubeletStatus(kubelet, (uuid) => ledger.owners.isProcessAlive(uuid));
  const managed = universe(settings, { online: topology.cpus });
  checkBesideKubelet(readKubeletFacts(), managed, topology.cpus, record);
}
